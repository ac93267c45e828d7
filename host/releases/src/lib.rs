//! A cache of rendered releases.
//!
//! Rendering is a pure function, so a release can be cached under a digest of its inputs: the content, the component, the
//! configuration, and the facts about the target that its provisioner read. Other facts may change freely.
//!
//! The disk keeps releases over a restart, after which no provisioner has to be called. Memory keeps the releases that were
//! used last, within a bound in bytes, so that thousands of idle BundleDeployments take almost none. Losing a cached release
//! costs time and nothing else.
//!
//! | module | holds |
//! |---|---|
//! | [`releases`](mod@releases) | the cache: memory before disk |
//! | [`format`](mod@format) | the encoding of a release, pure |
//! | `facts` | the facts that provisioners read, by inputs, pure |
//! | `files` | one file for each release |
//! | `recent` | the releases that were used last, pure |

mod facts;
mod files;
pub mod format;
mod recent;
pub mod releases;

pub use files::OpenError;
pub use releases::{Budget, Collected, Made, Releases};
