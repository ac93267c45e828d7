//! What an administrator and the kubelet learn of a running controller: its health, and its metrics.
//!
//! Nothing here listens or makes requests: `chandler-serve` answers probes and scrapes with it. The number of series is bounded whatever tenants
//! do, since no label holds a name that a tenant chooses without a limit ([`Bounded`]).
//!
//! | module | holds |
//! |---|---|
//! | [`health`] | whether the controller is alive and ready, for probes |
//! | [`metrics`] | the metrics of the controller, and their text form |
//! | [`bounded`] | labels with a limited number of values |
//! | `process` | memory, processor time and open files of this process |

pub mod bounded;
pub mod health;
pub mod metrics;
mod process;

pub use self::{
    bounded::Bounded,
    health::{Health, Phase},
    metrics::{CallOutcome, ConditionCount, Metrics, State},
};
