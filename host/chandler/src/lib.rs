//! The `chandler` command.
//!
//! | module | holds |
//! |---|---|
//! | [`arguments`], [`values`] | what can be said on the command line, and how values are written |
//! | [`command`] | the commands, one per file |
//! | [`source`] | what the user calls a bundle: a directory, an archive or an image |
//! | [`configuration`] | the configuration that a user gives to a provisioner |
//! | [`rendering`] | what `render` and `lint` have in common |
//! | [`deployed`] | rendering what a BundleDeployment asks for |
//! | [`consent`] | asking before something is done that cannot be undone |
//! | [`provision`] | the engine and the provisioners on this machine |
//! | [`naming`] | the names that a bundle gets where nobody names it |
//! | [`cache`], [`file`](mod@file) | the cache directory; reading files up to a limit |
//! | [`control_plane`], [`cluster_arguments`] | a control plane in this process, and how it is to be |
//! | [`signals`] | being told to stop |
//! | [`installation`] | installing a bundle and following it |
//! | [`following`] | following a BundleDeployment until nothing more happens by itself |
//! | [`revisions`] | the revisions of a BundleDeployment, and which one to go back to |
//! | [`permissions`](mod@permissions) | what a bundle needs of a ServiceAccount |
//! | [`live`] | the objects of a BundleDeployment as they are in the cluster |
//! | [`narration`] | a BundleDeployment on its way, step by step |
//! | [`explanation`], [`advice`] | a BundleDeployment explained, and what would help |
//! | [`tree`] | objects and their health as a tree |
//! | [`difference`] | what a rollout would change, as text |
//! | [`diagnostics`], [`excerpt`] | findings with the lines of the bundle that they are about |
//! | [`sarif`] | findings in the format of other tools |
//! | [`error`] | how a command fails: kind, message, hints, findings |
//! | [`output`] | Kubernetes objects as YAML and JSON |
//! | [`progress`], [`terminal`], [`text`], [`log`](mod@log) | standard error |
//! | [`reference`](mod@reference) | the reference of the command line |

pub mod advice;
pub mod arguments;
pub mod cache;
#[cfg(feature = "dev")]
pub mod cluster_arguments;
pub mod command;
pub mod configuration;
pub mod consent;
#[cfg(feature = "dev")]
pub mod control_plane;
pub mod deployed;
pub mod diagnostics;
pub mod difference;
pub mod error;
pub mod excerpt;
pub mod explanation;
#[cfg(feature = "dev")]
pub mod fault_arguments;
pub mod file;
pub mod following;
#[cfg(feature = "dev")]
pub mod installation;
pub mod live;
pub mod log;
pub mod naming;
pub mod narration;
pub mod output;
pub mod permissions;
pub mod progress;
pub mod provision;
pub mod reference;
pub mod rendering;
pub mod revisions;
pub mod sarif;
pub mod signals;
pub mod source;
pub mod terminal;
pub mod text;
pub mod tree;
pub mod values;

mod start;

pub use arguments::Arguments;
pub use error::CommandError;
pub use start::main;
