//! The `chandler` command.
//!
//! | module | what it does |
//! |---|---|
//! | [`command`] | the commands, one per file |
//! | [`arguments`] | arguments that several commands share, how their values are parsed, and the options that they become |
//! | [`view`] | text and JSON; it has no client and changes nothing |
//! | [`read`] | reads the cluster, a bundle, a configuration or a kubeconfig; it changes nothing in the cluster |
//! | [`write`](mod@write) | every change that a command makes in the cluster |
//! | [`confirmation`] | asks the user at the terminal before a change |
//! | [`migrate`] | translates objects of other installers; it has no client and changes nothing |
//! | [`signals`] | SIGINT and SIGTERM; SIGUSR1 and SIGUSR2 |
//!
//! Dependencies point in one direction: `command` uses `arguments` and `write`, `write` uses `read`, and `read` uses `migrate`,
//! `signals` and `view`. What clap parses stays in `command` and `arguments`, whose `options` methods convert it: `read` and `write` take structs of
//! their own, such as `BundleOptions`. `tests/cli/layers.rs` checks both.
//!
//! Without the default feature `dev` the command has no `chandler dev`, and links neither the embedded control plane nor the
//! embedded registry. `cargo xtask dist` builds it so, for clusters.

pub mod arguments;
pub mod command;
pub mod confirmation;
pub mod migrate;
pub mod read;
pub mod signals;
pub mod view;
pub mod write;

mod logging;
mod start;

pub use command::Arguments;
pub use start::main;
pub use view::error::CommandError;
