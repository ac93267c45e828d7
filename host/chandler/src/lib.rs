//! The `chandler` command.
//!
//! | module | holds |
//! |---|---|
//! | [`arguments`] | what can be said on the command line |
//! | [`command`] | the commands, one per file |
//! | [`error`] | how a command fails: kind, message, hints, findings |
//! | [`diagnostics`] | findings with the lines of the bundle that they are about |
//! | [`excerpt`] | the lines around a place in a file |
//! | [`naming`] | the names that a bundle gets where nobody names it |
//! | [`output`] | Kubernetes objects as YAML and JSON |
//! | [`reference`] | the reference of the command line |
//! | [`terminal`] | what standard error can show |
//! | [`text`] | text of others, safe on a terminal |
//! | [`tree`] | objects and their health as a tree |

pub mod arguments;
pub mod command;
pub mod diagnostics;
pub mod error;
pub mod excerpt;
pub mod naming;
pub mod output;
pub mod reference;
pub mod terminal;
pub mod text;
pub mod tree;

mod start;

pub use arguments::Arguments;
pub use error::CommandError;
pub use start::main;
