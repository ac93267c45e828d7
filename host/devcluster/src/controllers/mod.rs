//! The controllers of kube-controller-manager and apiextensions that keep an API consistent. They work on the store directly.
//!
//! | module | does |
//! |---|---|
//! | [`api_service`] | publishes the address of the API server |
//! | [`crds`] | establishes CRDs, serves them, deletes their objects |
//! | [`expiry`] | deletes expired Events |
//! | [`garbage`] | deletes dependants of deleted owners |
//! | [`namespaces`] | creates the default objects of every namespace, and empties deleted namespaces |
//! | [`policy`] | creates the bootstrap policy, and aggregates ClusterRoles |
//! | [`tokens`] | fills the Secrets that hold tokens of ServiceAccounts |
//! | [`object`] | small changes to stored objects |

pub mod api_service;
pub mod crds;
pub mod expiry;
pub mod garbage;
pub mod namespaces;
pub mod object;
pub mod policy;
pub mod tokens;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::Api;

/// Makes the first namespaces and starts the controllers.
pub fn start(
    api: &Arc<Api>,
    authority: &str,
    address: SocketAddr,
    established_delay: Duration,
    shutdown: &CancellationToken,
    tasks: &mut JoinSet<()>,
) {
    namespaces::bootstrap(api);
    policy::bootstrap(api);
    let service = api_service::ApiService::new(Arc::clone(api), address);
    service.publish();
    let mut crds = crds::Crds::new(Arc::clone(api), established_delay);
    crds.resume();
    let namespaces = namespaces::Namespaces::new(Arc::clone(api), authority.to_owned());
    let aggregation = policy::Aggregation::new(Arc::clone(api));
    let tokens = tokens::Tokens::new(Arc::clone(api), authority.to_owned());
    let garbage = garbage::GarbageCollector::new(Arc::clone(api));
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(service.run()).await.unwrap_or_default() });
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(crds.run()).await.unwrap_or_default() });
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(namespaces.run()).await.unwrap_or_default() });
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(aggregation.run()).await.unwrap_or_default() });
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(tokens.run()).await.unwrap_or_default() });
    let (ended, expiring) = (shutdown.clone(), Arc::clone(api));
    tasks.spawn(async move { ended.run_until_cancelled_owned(expiry::run(expiring)).await.unwrap_or_default() });
    let ended = shutdown.clone();
    tasks.spawn(async move { ended.run_until_cancelled_owned(garbage.run()).await.unwrap_or_default() });
}
