//! Waits for a change or a deadline, and writes everything that differs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chandler_api::{ClusterOperator, ClusterOperatorStatus, PlatformOperator};
use chandler_runtime::{Backoff, Cache, ClusterInfo, Guarded, reconnecting};
use futures::{Stream, StreamExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    runtime::watcher::{self, Event, watcher},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    changes::ClusterOperatorChanges,
    observe::observe,
    own_objects::OwnObjects,
    probe,
    settings::ClusterOperatorMode,
    wanted::{Input, Memories},
    write::Writer,
};
use crate::{cluster::Cluster, deployments::Deployments, resolution::ResolutionStates};

/// The kind, as [`ClusterInfo`] lists it.
const KIND: &str = "config.openshift.io/v1/ClusterOperator";
/// How long changes are collected before they are reported.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// The time between two probes while one fails, unless the interval is shorter.
const FAILED_PROBE: Duration = Duration::from_secs(30);
/// The longest wait for a deadline: clocks are changed.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Keeps the ClusterOperators as wanted.
pub(crate) struct Proxy {
    cluster: Arc<Cluster>,
    deployments: Deployments,
    resolutions: Arc<ResolutionStates>,
    changes: Arc<ClusterOperatorChanges>,
    operators: Cache<Guarded<PlatformOperator>>,
    writer: Writer,
    own_objects: OwnObjects,
    memories: Memories,
    /// Why the controller cannot read what it reconciles.
    problem: Option<String>,
    /// The ClusterOperators that may not be written before these times: a write failed, or another client changes them again and again.
    held: BTreeMap<String, Instant>,
    backoff: Backoff,
}

impl Proxy {
    /// Makes no request yet.
    pub(crate) fn new(
        cluster: &Arc<Cluster>,
        (deployments, resolutions): (&Deployments, &Arc<ResolutionStates>),
        operators: Cache<Guarded<PlatformOperator>>,
        changes: &Arc<ClusterOperatorChanges>,
    ) -> Self {
        let options = &cluster.options;
        Self {
            writer: Writer {
                api: Api::all(cluster.client.clone()),
                system_namespace: options.system_namespace.clone(),
                labels: options.watch_selector.implied(),
            },
            own_objects: OwnObjects::new(options.cluster_operators.names.clone()),
            memories: Memories::default(),
            problem: None,
            held: BTreeMap::new(),
            backoff: Backoff::default(),
            operators,
            cluster: Arc::clone(cluster),
            deployments: deployments.clone(),
            resolutions: Arc::clone(resolutions),
            changes: Arc::clone(changes),
        }
    }

    /// Runs while the cluster serves the kind. Never ends.
    pub(crate) async fn run(mut self) {
        if self.cluster.options.cluster_operators.mode == ClusterOperatorMode::None || !self.is_ready().await {
            return std::future::pending().await;
        }
        let cluster = Arc::clone(&self.cluster);
        let mut changes = cluster.info.changes();
        loop {
            if cluster.info.get().await.serves(KIND) {
                self.serve(&mut changes).await;
            } else if changes.next().await.is_none() {
                return std::future::pending().await;
            }
        }
    }

    /// Waits until the caches are filled. False if the controller is stopping.
    async fn is_ready(&self) -> bool {
        self.operators.ready().await && self.deployments.ready().await && self.resolutions.ready().await
    }

    /// Keeps the ClusterOperators until the cluster no longer serves the kind.
    async fn serve(&mut self, changes: &mut (impl Stream<Item = Arc<ClusterInfo>> + Unpin)) {
        let cluster = Arc::clone(&self.cluster);
        let api = self.writer.api.clone();
        let watch = move || watcher(api.clone(), watcher::Config::default());
        let mut events = Box::pin(reconnecting(watch, cluster.availability.clone()));
        let interval = cluster.options.cluster_poll_interval;
        let mut next_probe = Instant::now() + interval;
        let mut deadline = None;
        self.own_objects = OwnObjects::new(cluster.options.cluster_operators.names.clone());
        loop {
            let due = deadline.unwrap_or_else(|| Instant::now() + LONGEST_WAIT);
            let is_due = tokio::select! {
                event = events.next() => match event {
                    Some(event) => self.own_objects.take(without_managers(event)),
                    None => return,
                },
                change = changes.next() => match change {
                    Some(info) if info.serves(KIND) => true,
                    Some(_) => return,
                    None => return std::future::pending().await,
                },
                () = self.changes.wait() => true,
                () = sleep_until(due) => true,
                () = sleep_until(next_probe) => {
                    self.problem = probe::problem(&cluster).await;
                    let pause = if self.problem.is_some() { interval.min(FAILED_PROBE) } else { interval };
                    next_probe = Instant::now() + pause;
                    true
                }
            };
            if is_due && self.own_objects.is_ready() {
                sleep(DEBOUNCE).await;
                // Changes that arrived meanwhile.
                while let Some(Some(event)) = futures::FutureExt::now_or_never(events.next()) {
                    self.own_objects.take(without_managers(event));
                }
                deadline = self.reconcile().await;
            }
        }
    }

    /// Writes what differs. Returns when to do this again even if nothing changed.
    async fn reconcile(&mut self) -> Option<Instant> {
        let cluster = Arc::clone(&self.cluster);
        let observed = observe(&cluster, (&self.deployments, &self.resolutions), &self.operators).await;
        let input = Input {
            observed: &observed,
            problem: self.problem.as_deref(),
            settings: &cluster.options.cluster_operators,
            system_namespace: &cluster.options.system_namespace,
        };
        let now = Timestamp::now();
        let wanted = self.memories.derive(&input, |name| self.own_objects.before(name), now);
        let mut again: Option<Instant> = None;
        let mut look = |at: Instant| again = Some(again.map_or(at, |again| again.min(at)));
        for (name, derived) in &wanted {
            if let Some(due) = derived.again {
                let wait = Duration::try_from(due.duration_since(now)).unwrap_or_default().min(LONGEST_WAIT);
                // A moment later, so that the time has come by this clock.
                look(Instant::now() + wait + DEBOUNCE);
            }
            if let Some(held) = self.keep(name, &derived.status).await {
                look(held);
            }
        }
        let surplus = self.own_objects.all().filter(|object| !wanted.contains_key(&object.name_any()));
        let surplus: Vec<ClusterOperator> = surplus.filter(|object| self.writer.created(object)).cloned().collect();
        for object in surplus {
            let name = object.name_any();
            if let Err(error) = self.writer.delete(&object).await {
                look(self.failed(&name, "delete", &error));
            } else {
                self.own_objects.deleted(&name);
            }
        }
        again
    }

    /// Writes the status of a ClusterOperator. Returns when to try again, if it may not be written now.
    async fn keep(&mut self, name: &str, status: &ClusterOperatorStatus) -> Option<Instant> {
        let live = self.own_objects.live(name).cloned();
        if live.as_ref().is_some_and(|live| live.status.as_ref() == Some(status)) {
            self.own_objects.agrees(name, status);
            // Edits are forgotten once no client has edited it for a while.
            if self.held.get(name).is_some_and(|held| *held + LONGEST_WAIT < Instant::now()) {
                self.held.remove(name);
                self.backoff.succeeded(name);
            }
            return None;
        }
        if let Some(held) = self.held.get(name).filter(|held| **held > Instant::now()) {
            return Some(*held);
        }
        let is_repair = self.own_objects.is_repair(name, status);
        match self.write(name, live, status).await {
            Ok(()) if is_repair => {
                tracing::info!(name, "the status of a ClusterOperator was changed by someone else, and is repaired");
                self.held.insert(name.to_owned(), Instant::now() + self.backoff.failed(name));
                None
            }
            Ok(()) => None,
            Err(error) => Some(self.failed(name, "write", &error)),
        }
    }

    async fn write(
        &mut self,
        name: &str,
        live: Option<ClusterOperator>,
        status: &ClusterOperatorStatus,
    ) -> Result<(), kube::Error> {
        let live = match live {
            Some(live) => live,
            None => match self.writer.create(name).await? {
                Some(created) => created,
                // The watch delivers it.
                None => return Ok(()),
            },
        };
        if let Some(written) = self.writer.status(&live, status).await? {
            self.own_objects.wrote(written, status);
        }
        Ok(())
    }

    /// Notes a failed request. Returns when to try again.
    fn failed(&mut self, name: &str, what: &str, error: &kube::Error) -> Instant {
        let message = chandler_source::api_message(error);
        tracing::warn!(name, error = message, "failed to {what} a ClusterOperator");
        let at = Instant::now() + self.backoff.failed(name);
        self.held.insert(name.to_owned(), at);
        at
    }
}

/// An event without the managed fields, which nothing reads.
fn without_managers(mut event: Event<ClusterOperator>) -> Event<ClusterOperator> {
    if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &mut event {
        object.metadata.managed_fields = None;
    }
    event
}
