//! One command on an SSH server, whose host key is checked. Nothing here opens a connection: the caller checks addresses.
//!
//! | item | purpose |
//! |---|---|
//! | [`KnownHosts`], [`Known`] | a known_hosts file, and the keys that it has for one server |
//! | [`Identity`] | the private key of a user |
//! | [`Command`], [`Options`] | a command that runs on a server, and the limits of the connection |
//! | [`SshError`], [`HostKeyError`] | failures |
//!
//! The crate `russh` implements the protocol. A server is untrusted, before and after its host key is checked: the time until the
//! command runs, the time between two pieces of its output, all bytes of the connection and the size of its standard error are limited.

mod bounded;
mod command;
mod error;
mod host_keys;
mod identity;
mod known_hosts;

pub use command::{Command, Options, Output};
pub use error::{HostKeyError, SshError};
pub use identity::{Identity, IdentityError};
pub use known_hosts::{Known, KnownHosts, KnownHostsError};
