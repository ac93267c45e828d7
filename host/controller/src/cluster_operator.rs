//! Reports PlatformOperators and the controller to OpenShift, as ClusterOperators, where the cluster serves the kind.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `changes` | notes that something changed | no |
//! | `settings` | the options that an administrator sets | no |
//! | `proxy` | waits for a change or a deadline, and writes everything that differs | yes |
//! | `observe` | the packages, as the caches hold their objects | no |
//! | `wanted` | the wanted ClusterOperators, and their statuses | no |
//! | `own_objects` | the ClusterOperators of this controller, as its watch and its writes show them | no |
//! | `write` | creates, writes and deletes a ClusterOperator | writes |
//! | `probe` | whether the controller may read what it reconciles | reads |
//!
//! What a ClusterOperator reports is decided in `cluster_operators` in `host/resolution`.

mod changes;
mod observe;
mod own_objects;
mod probe;
mod proxy;
mod settings;
mod wanted;
mod write;

pub use self::settings::{ClusterOperatorMode, ClusterOperatorSettings};
pub(crate) use self::{changes::ClusterOperatorChanges, proxy::Proxy};
