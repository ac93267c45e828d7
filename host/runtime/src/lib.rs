//! What every reconciler of Chandler shares. This crate names none of the kinds that are reconciled.
//!
//! A reconciler implements [`Reconciler`], which is its state, and a [`KindController`] runs it: watch, cache, triggers, guarded
//! decoding, error policy and shutdown. Everything else here is a part that the state of a reconciler may hold.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | [`controller`] | the trait of a reconciler, and the controller that runs one | yes |
//! | [`cache`](mod@cache) | the objects of a watched kind in memory | no |
//! | [`reflector`] | watches that fill caches | watches |
//! | `reconnect` | watches that are tried again | no |
//! | [`report`] | what a reconcile found, and when the next one is due | no |
//! | [`triggers`] | requests to reconcile an object | no |
//! | [`guard`] | objects that may not decode | no |
//! | [`leadership`] | leader election and shutdown | the election's |
//! | [`metrics`] | measurements of reconciles | no |
//! | [`probe`](mod@probe) | requests at startup: whether the API server serves a kind, and patience | lists |
//! | [`backoff`] | retry with exponential backoff and jitter | no |
//! | [`slots`] | bounds on concurrent reconciles | no |
//! | [`capacity`] | bounds on the memory of what is in progress | no |
//! | [`jobs`] | slow work that a reconcile does not wait for | no |
//! | [`generations`] | cancels a reconcile when a newer spec is observed | no |
//! | [`watch_selector`] | selects the objects of a controller by label | no |
//! | [`cluster_info`] | version and kinds of the cluster | reads |
//! | [`status_patch`] | writes a status | writes |
//! | `condition_log` | logs what a new status changes in the conditions | no |
//! | [`finalizers`] | writes finalizers | writes |
//! | [`own_writes`] | own writes to reconciled objects: their events wake nothing | no |
//! | [`events`] | publishes Events | writes |

pub mod backoff;
pub mod cache;
pub mod capacity;
pub mod cluster_info;
mod condition_log;
pub mod controller;
pub mod events;
pub mod finalizers;
pub mod generations;
pub mod guard;
pub mod jobs;
pub mod leadership;
pub mod metrics;
pub mod own_writes;
pub mod probe;
mod reconnect;
pub mod reflector;
pub mod report;
mod room;
pub mod slots;
pub mod status_patch;
pub mod triggers;
pub mod watch_selector;

pub use backoff::Backoff;
pub use cache::Cache;
pub use capacity::{Capacity, NotFree, Share};
pub use cluster_info::{ClusterInfo, ClusterInfoWatch};
pub use controller::{KindController, ReconcileError, Reconciler};
pub use events::{Events, Notice};
pub use generations::GenerationTracker;
pub use guard::{Guarded, decode};
pub use jobs::{Jobs, Panicked};
pub use leadership::{Election, ElectionError, Renewal, Shutdown, Timing, while_leader};
pub use metrics::{LogMetrics, Metrics, Outcome};
pub use own_writes::OwnWrites;
pub use probe::{is_momentary, patiently, probe};
pub use reconnect::reconnecting;
pub use reflector::{Reflector, reflect_related};
pub use report::{Next, Report};
pub use slots::{Slot, Slots};
pub use triggers::Triggers;
pub use watch_selector::{SelectorError, WatchSelector};

/// The field manager of every write.
const FIELD_MANAGER: &str = "chandler";
