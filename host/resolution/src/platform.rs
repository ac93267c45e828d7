//! From PlatformOperators to the Resolution that answers all of them together, and back to the status of each.
//!
//! Pure: no client, no clock. The reconciler (`host/controller`) observes, calls these steps, and writes what they return.
//!
//! `PlatformOperators -> Plan -> Resolution -> (the rest of this crate) -> status of each`
//!
//! | module | contents |
//! |---|---|
//! | [`plan`](mod@plan) | what all PlatformOperators want, and which of them are refused before any question |
//! | [`policy`] | the limits that an administrator sets |
//! | [`namespace`] | the namespaces that the controller creates for packages, and whether one may go |
//! | [`resolution`] | the Resolution of a plan, and its changes |
//! | [`removal`] | whether the package of a deleted PlatformOperator is uninstalled |
//! | [`status`] | the status of a PlatformOperator |

pub mod namespace;
pub mod plan;
pub mod policy;
pub mod removal;
pub mod resolution;
pub mod status;

pub use plan::{Plan, Refused, Wanted, plan};
pub use policy::{InForce, InvalidPolicy, Policy};
pub use resolution::{Kept, Settings};
pub use status::Outcome;
