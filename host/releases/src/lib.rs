//! Releases that were made, kept so that nobody has to make them again.
//!
//! Rendering is a pure function, so a release can be kept under a digest of what it was made from for as long as there is
//! room. What it was made from is the content, the component, the configuration and those facts about the target that its
//! provisioner asked for: a fact that it did not ask for may change as it likes. On the disk it survives a restart, which then calls no provisioner; in memory are only those that were used last,
//! within a bound in bytes, so that thousands of BundleDeployments that nothing happens to take next to nothing. Losing any
//! of it costs time and nothing else.
//!
//! | module | holds |
//! |---|---|
//! | [`releases`](mod@releases) | the cache: memory before disk |
//! | [`format`](mod@format) | a release as bytes and back, pure |
//! | `questions` | what provisioners asked about their targets, pure |
//! | `files` | one file for each release |
//! | `recent` | the releases that were used last, pure |
//! | `size` | how much memory a release takes, pure |

mod files;
pub mod format;
mod questions;
mod recent;
pub mod releases;

pub use files::OpenError;
pub use releases::{Budget, Collected, Made, Releases};
