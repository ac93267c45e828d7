//! Sets that other resolvers decide: an immutable ConfigMap of the system namespace with the annotation `resolveset.chandler.dev/set`
//! is the source of a BundleDeployment that the controller writes.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `annotations` | what the annotations of a ConfigMap say | no |
//! | `claims` | the decisions for one set, the newest first, and why others are refused | no |
//! | `plan` | what to do about the BundleDeployment of a set | no |
//! | `queue` | which changes of other objects concern a set | no |
//! | `worker` | reads, writes and reports | yes |
//!
//! The metadata of all ConfigMaps comes from the one watch that the controller has of them (`bundle_deployment::reconciler`). Nothing is
//! requested until one of them, or the BundleDeployment of such a set, changes.

mod annotations;
mod claims;
mod plan;
mod queue;
mod worker;

pub(crate) use self::{queue::DecisionQueue, worker::Worker};
