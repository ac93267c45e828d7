//! The commands, one per file.

pub mod adopt;
pub mod approve;
pub mod controller;
pub mod crds;
pub mod delete;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(not(feature = "dev"))]
#[path = "command/without_dev.rs"]
pub mod dev;
pub mod diff;
pub mod history;
pub mod lint;
pub mod rbac;
pub mod render;
pub mod rollback;
pub mod status;
pub mod tree;
