//! Every change that a command makes in the cluster, and files that it writes.

pub mod adoption;
pub mod approval;
pub mod archive;
pub mod catalog;
pub mod change;
pub mod content;
#[cfg(feature = "dev")]
pub mod control_plane;
pub mod deletion;
pub mod deployment;
#[cfg(feature = "dev")]
pub mod dev_class;
#[cfg(feature = "dev")]
pub mod dev_kinds;
pub mod files;
pub mod image;
#[cfg(feature = "dev")]
pub mod installation;
#[cfg(feature = "dev")]
pub mod kubeconfig_file;
pub mod migration;
pub mod namespace;
pub mod resolution;
pub mod rollback;
pub mod uninstallation;
pub mod upload;
