//! What an administrator and the kubelet learn of a running controller: its health, and its metrics.
//!
//! Nothing here listens or makes requests: `chandler-serve` answers probes and scrapes with it. The number of series is bounded whatever tenants
//! do, since no label holds a name that a tenant chooses without a limit ([`Bounded`]).
//!
//! | module | holds |
//! |---|---|
//! | [`health`] | whether the controller is alive and ready, for probes |
//! | [`metrics`] | the metrics of the controller, and their text form |
//! | [`measurements`] | the steps, outcomes and classes of hosts that are measured |
//! | [`state`] | what is read at each scrape |
//! | `labels` | the labels of the metrics |
//! | [`bounded`] | labels with a limited number of values |
//! | `process` | memory, processor time and open files of this process |

pub mod bounded;
pub mod health;
mod labels;
pub mod measurements;
pub mod metrics;
mod process;
pub mod state;

pub use self::{
    bounded::Bounded,
    health::{Health, Phase},
    measurements::{CallOutcome, CallUsage, HostClass, NotificationOutcome, ResolverOutcome, Step},
    metrics::Metrics,
    state::{ConditionCount, State},
};
