//! Whether objects of a cluster work.
//!
//! Pure: live objects come in as JSON values, verdicts go out. No client, no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`health`](mod@health) | the verdict on an object by the rules of its kind |
//! | [`probe`] | the verdict on an object by rules in CEL |
//! | `workloads` | the rules of what runs pods |

pub mod health;
pub mod probe;
mod workloads;

pub use health::{Health, Reader, health, terminating};
pub use probe::{ProbeError, Probes};
