//! Simulated workloads: they run nothing, but look in the API as if they did.
//!
//! An ordinary client of the API: it watches workloads, Pods, Services, claims and what belongs to them, and does what
//! kube-controller-manager, a scheduler and a kubelet would do, as far as it shows in the API. Deployments get ReplicaSets,
//! these get Pods, Pods get a node and become ready. It also serves a bare kube-apiserver, which has no controller manager;
//! it must not run against a real cluster.
//!
//! Nothing takes time unless [`Rules`] say so. Rules also make workloads fail, as does the annotation [`ANNOTATION`]
//! on a workload, its Pod template or a Pod, and an image from a registry under `.invalid`.
//!
//! | module | holds |
//! |---|---|
//! | `behaviour`, `rules` | the simulated behaviour and its timing |
//! | `engine`, `queue`, `cache` | the loop: watches to cache, changes to queue, decisions to requests |
//! | `execute`, `events` | the requests |
//! | `reconcile`, `world`, `action` | which decision an object needs, its inputs, its actions |
//! | `deployments`, `replica_sets`, `stateful_sets`, `daemon_sets`, `jobs`, `cron_jobs` | decisions about workloads |
//! | `pods` | the stages of a Pod, and the node |
//! | `services`, `api_services`, `volumes`, `budgets` | decisions about the rest |
//! | `adopt`, `garbage`, `revision`, `template` | what several workloads share |
//! | `conditions`, `fields`, `kind`, `labels` | reading and writing objects |
//!
//! Decisions are pure functions of the cache, the time and the rules. They are made again after every change, so that
//! neither a dropped watch nor a failed write causes lost work, and they return no actions if there is nothing to do.

mod action;
mod adopt;
mod api_services;
mod behaviour;
mod budgets;
mod cache;
mod conditions;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod engine;
mod events;
mod execute;
mod fields;
mod garbage;
mod jobs;
mod kind;
mod labels;
mod pods;
mod queue;
mod reconcile;
mod replica_sets;
mod revision;
mod rules;
mod services;
mod stateful_sets;
mod template;
mod volumes;
mod world;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use kube::Client;

pub use self::{
    behaviour::{ANNOTATION, Behaviour},
    rules::{Rules, Step, Subject},
};
use crate::clock::Clock;

/// How to simulate.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// The clock for times in objects and for delays.
    pub clock: Clock,
    /// The simulated behaviour and its timing; a clone can be changed at run time.
    pub rules: Rules,
    /// Whether the API server runs without controllers: then the simulation deletes orphaned dependants of its objects,
    /// and APIServices are left alone, since kube-apiserver judges them itself.
    pub bare: bool,
}

/// Simulates until `shutdown` is ready.
pub async fn simulate_workloads(client: Client, simulation: Simulation, shutdown: impl Future<Output = ()>) {
    tokio::select! {
        () = engine::run(client, simulation) => {}
        () = shutdown => {}
    }
}
