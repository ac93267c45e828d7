//! Every change that a command makes in the cluster.

pub mod adoption;
pub mod approval;
#[cfg(feature = "dev")]
pub mod control_plane;
pub mod deletion;
#[cfg(feature = "dev")]
pub mod installation;
pub mod rollback;
