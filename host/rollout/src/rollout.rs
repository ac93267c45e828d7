//! What the controller calls.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chandler_core::{Digest, ObjectKey, Release};
use chandler_health::Probes;
use futures::FutureExt as _;
use kube::{Client, api::ApiResource};
use serde_json::Value;

use crate::{
    cluster::{Cluster, about},
    concurrent::all,
    desired::{Desired, Served},
    difference::essence,
    discovery::Discovery,
    error::{Collision, Problem, RolloutError},
    live,
    owner::Owner,
    parent::{self, Inventory},
    plan::{Action, Situation},
    preflight,
    prune::{Pruned, delete_in_order},
    report::{Drift, DriftKind, Observation, Progress, Teardown, Unhealthy},
    resolve,
    snapshot::Snapshot,
    stages::{Reached, Scene, Stages, verdict},
    teardown,
};

/// How a [`Rollout`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how many objects it is remembered that they are as released although they are written in another way. Each takes
    /// about 150 bytes; what is forgotten costs one dry run.
    pub remembered: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { remembered: 50_000 }
    }
}

/// Brings releases onto an API server. One serves all owners; what it remembers only saves requests.
pub struct Rollout {
    cluster: Cluster,
    discovery: Discovery,
    options: Options,
    /// By UID, the digest of what was found equal: of the object and of what it should be.
    equal: Mutex<HashMap<String, Digest>>,
}

/// A release, and what is in the cluster of it.
struct Survey {
    desired: Vec<Desired>,
    probes: Probes,
    snapshot: Snapshot,
    situations: Vec<Situation>,
}

impl Rollout {
    /// A rollout over this client.
    pub fn new(client: Client, options: Options) -> Self {
        Self {
            cluster: Cluster::new(client.clone()),
            discovery: Discovery::new(client),
            options,
            equal: Mutex::default(),
        }
    }

    /// Brings the release as far as it can be brought now: preflight, stage by stage, prune.
    ///
    /// No field of any object is written before everything was checked that can be checked without that: probes, kinds,
    /// namespaces, that no object of the release is somebody else's, and, by dry runs, that the API server takes them. Nothing is written at all where everything is as it should be.
    pub async fn advance(&self, owner: &Owner, release: &Release) -> Result<Progress, RolloutError> {
        let Survey { desired, probes, mut snapshot, situations } = self.survey(owner, release).await?;
        preflight::refuse_collisions(&desired, &situations)?;
        let writes = situations.iter().any(|situation| !matches!(situation.action(), Action::Keep | Action::Wait));
        if writes {
            preflight::check_namespaces(&self.cluster, owner, &desired, &situations).await?;
            preflight::dry_run(&self.cluster, &desired, &situations, &mut snapshot.live).await?;
            let inventory = Inventory::of(&desired, &snapshot.stale);
            parent::widen(&self.cluster, owner, &mut snapshot.parent, &inventory).await?;
        }
        let scene =
            Scene { cluster: &self.cluster, discovery: &self.discovery, owner, desired: &desired, probes: &probes };
        let mut objects = Stages::new(scene, snapshot.live, &situations);
        let Reached { stage, stages, waiting } = objects.run().await?;
        let mut changes = objects.changes();
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: objects.installed(), waiting, changes });
        }
        let Pruned { deleted, waiting } = delete_in_order(&self.cluster, owner, snapshot.stale).await?;
        changes.pruned = deleted;
        if !waiting.is_empty() {
            return Ok(Progress::Waiting { stage, stages, installed: true, waiting, changes });
        }
        let inventory = Inventory::of(&desired, []);
        parent::write(&self.cluster, owner, &mut snapshot.parent, &inventory).await?;
        Ok(Progress::Complete { stages, changes })
    }

    /// Tells whether everything is as released and healthy, without changing anything.
    pub async fn observe(&self, owner: &Owner, release: &Release) -> Result<Observation, RolloutError> {
        let Survey { desired, probes, snapshot, situations } = self.survey(owner, release).await?;
        let mut observation = Observation {
            parent_current: parent::is_current(&snapshot.parent, owner, &Inventory::of(&desired, [])),
            ..Observation::default()
        };
        for ((desired, live), situation) in desired.iter().zip(&snapshot.live).zip(situations) {
            let kind = match situation {
                Situation::Equal => None,
                Situation::Absent => Some(DriftKind::Missing),
                Situation::SeemsChanged(pointer) | Situation::Changed(pointer) => Some(DriftKind::Changed(pointer)),
                Situation::Outdated => Some(DriftKind::Outdated),
                Situation::Terminating => Some(DriftKind::Terminating),
                Situation::Foreign(other) => Some(DriftKind::Foreign(other)),
            };
            observation.drift.extend(kind.map(|kind| Drift { object: desired.key.clone(), kind }));
            let health = verdict(&probes, &desired.key, live.as_ref());
            if !health.is_current() {
                observation.unhealthy.push(Unhealthy { object: desired.key.clone(), health });
            }
        }
        let stale = snapshot.stale.into_iter().map(|member| Drift { object: member.key, kind: DriftKind::Stale });
        observation.drift.extend(stale);
        Ok(observation)
    }

    /// Deletes every object of the owner and nothing else, in the reverse of the order in which they were applied. A phase is
    /// begun when the one before is gone.
    pub async fn teardown(&self, owner: &Owner) -> Result<Teardown, RolloutError> {
        teardown::teardown(&self.cluster, &self.discovery, owner).await
    }

    /// The kinds of the release that the API server is known to serve: those to watch. A kind that a CRD of the release
    /// brings is among them once its first object was created.
    pub fn managed_kinds(&self, release: &Release) -> Vec<ApiResource> {
        resolve::known_kinds(&self.discovery, release)
    }

    /// An object as it is in the cluster, which must be the owner's; none where there is none. What is somebody else's is
    /// refused, as it is by [`advance`](Self::advance).
    pub async fn own(&self, owner: &Owner, key: &ObjectKey) -> Result<Option<Value>, RolloutError> {
        let ObjectKey { group, version, kind, .. } = key;
        let served = self.discovery.kind(group, version, kind).await.map_err(resolve::cannot_discover)?;
        let Some(Served { resource, namespaced }) = served else { return Ok(None) };
        let namespace = namespaced.then(|| key.namespace.as_deref().unwrap_or(&owner.install_namespace));
        let live = self.cluster.get(&resource, namespace, &key.name).await.map_err(about(key, "read"));
        let live = live.map_err(|failure| RolloutError::Objects(vec![failure]))?;
        match live.as_ref().and_then(|live| live::foreign_owner(live, owner)) {
            Some(other) => Err(RolloutError::Collisions(vec![Collision { object: key.clone(), owner: other }])),
            None => Ok(live),
        }
    }

    /// What the release should be, and what is there.
    async fn survey(&self, owner: &Owner, release: &Release) -> Result<Survey, RolloutError> {
        let probes = Probes::compile(release.probes())?;
        let desired = resolve::resolve(&self.discovery, owner, release).await?;
        let snapshot = Snapshot::take(&self.cluster, &self.discovery, owner, &desired).await?;
        let situations = desired.iter().zip(&snapshot.live).map(|(desired, live)| {
            async move {
                let situation = Situation::of(desired, live.as_ref(), owner);
                match (situation, live) {
                    (Situation::SeemsChanged(pointer), Some(live)) => self.compare(desired, live, pointer).await,
                    (situation, _) => Ok(situation),
                }
            }
            .boxed()
        });
        let situations = all(situations.collect()).await.into_iter().collect::<Result<_, _>>()?;
        Ok(Survey { desired, probes, snapshot, situations })
    }

    /// Has the API server tell whether an object that seems changed is: applying would then change it.
    async fn compare(&self, desired: &Desired, live: &Value, pointer: String) -> Result<Situation, RolloutError> {
        let essence_now = essence(live);
        let digest = Digest::of(format!("{} {essence_now}", desired.digest).as_bytes());
        if self.remembers(live::uid(live), &digest) {
            return Ok(Situation::Equal);
        }
        match self.cluster.apply(desired, live::uid(live), true).await {
            Ok(applied) if essence(&applied) == essence_now => {
                self.remember(live::uid(live), digest);
                Ok(Situation::Equal)
            }
            // A refusal shows up again, with its message, when the object is applied; so does a webhook that refuses dry runs.
            Ok(_) | Err(Problem::Refused(_) | Problem::Invalid(_)) => Ok(Situation::Changed(pointer)),
            Err(problem) => Err(RolloutError::Objects(vec![about(&desired.key, "compare")(problem)])),
        }
    }

    fn remembers(&self, uid: &str, digest: &Digest) -> bool {
        self.equal.lock().unwrap_or_else(PoisonError::into_inner).get(uid) == Some(digest)
    }

    fn remember(&self, uid: &str, digest: Digest) {
        let mut equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        if equal.len() >= self.options.remembered {
            equal.clear();
        }
        equal.insert(uid.to_owned(), digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers run reconciles on any thread: this has to compile.
    #[test]
    fn calls_can_move_between_threads() {
        fn assert_send<T: Send>(_: Option<T>) {}
        fn no_call<'a, F: Future + Send + 'a>(_: impl Fn(&'a Rollout, &'a Owner, &'a Release) -> F) {}
        no_call(Rollout::advance);
        no_call(Rollout::observe);
        no_call(|rollout, owner, _| rollout.teardown(owner));
        assert_send(None::<Rollout>);
    }
}
