//! Alerts: sends what Events say to servers outside of the cluster.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `lanes` | the Alerts in use, each with a lane; takes each Event that is published | no |
//! | `lane` | what waits for one server, and the task that sends it: attempts, pauses, the outcome | sends |
//! | `delivery` | one attempt: the Secret, the body, the request | sends |
//! | `status` | the status of an Alert, derived | no |
//! | `secret_changes` | wakes the Alerts whose Secret changes | no |
//! | `reconciler` | which Alerts are in use, and their status | yes |
//!
//! A reconcile only puts a notification into a bounded queue, and never waits. Each lane has a task of its own, so that a server that does not
//! answer delays no other. Which notifications are sent and as what is decided in `host/notifications`.

mod delivery;
mod lane;
mod lanes;
mod reconciler;
mod secret_changes;
mod status;

pub(crate) use self::{delivery::Delivery, lanes::Lanes, reconciler::Alerts, secret_changes::SecretChanges};
