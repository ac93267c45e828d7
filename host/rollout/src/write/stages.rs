//! Writes the objects of a release, stage by stage.

use std::{collections::BTreeSet, ops::Range};

use chandler_core::{ObjectKey, order::Phase};
use chandler_health::{
    Dependencies, Health, Probes, assess, needs,
    probe::Budget,
    webhook_dependency::{WebhookDependency, Write, webhook_dependencies},
};
use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{account::Confirmation, cluster::Cluster, concurrent::all},
    pure::{
        crd::is_crd,
        dependencies::ReleaseDependencies,
        dependents::unblocked,
        desired::Desired,
        drift_options::DriftOptions,
        error::RolloutError,
        health::assess_object,
        owner::Owner,
        report::{Changes, Unhealthy},
        sequences::{Sequences, is_awaited},
        situation::{Action, Situation},
    },
    read::{discovery::Discovery, resolve::cannot_discover},
    write::{
        apply::{self, Failure, Updated},
        recreate::{RECREATE, Recreated},
    },
};

/// The context of the stages.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) confirmation: Confirmation<'a>,
    pub(crate) discovery: &'a Discovery,
    pub(crate) owner: &'a Owner,
    pub(crate) desired: &'a [Desired],
    pub(crate) probes: &'a Probes,
    pub(crate) dependencies: &'a ReleaseDependencies,
}

/// The objects of a release and what was done with them.
pub(crate) struct Stages<'a> {
    context: StageContext<'a>,
    items: Vec<Item<'a>>,
    /// Whether the release was complete once. Then no stage waits for another one.
    complete: bool,
}

/// An object of a release.
struct Item<'a> {
    desired: &'a Desired,
    live: Option<Value>,
    /// What comes next.
    action: Action,
    /// What was done.
    done: Option<Action>,
}

/// The progress of the stages.
pub(crate) struct StageProgress {
    /// The current stage, counted from 1.
    pub(crate) stage: usize,
    /// The number of stages.
    pub(crate) stages: usize,
    /// The objects that must become healthy; empty if all stages are done.
    pub(crate) waiting: Vec<Unhealthy>,
}

impl<'a> Stages<'a> {
    /// The objects in their current state.
    pub(crate) fn new(
        context: StageContext<'a>,
        live: Vec<Option<Value>>,
        situations: &[Situation],
        drift_options: &DriftOptions,
    ) -> Self {
        let objects = context.desired.iter().zip(live).zip(situations);
        let items =
            objects.map(|((desired, live), situation)| Item { desired, live, action: situation.action(), done: None });
        Self { context, items: items.collect(), complete: drift_options.complete }
    }

    /// Writes as many objects as possible now.
    #[tracing::instrument(target = "chandler::trace", name = "stages", skip_all)]
    pub(crate) async fn run(&mut self) -> Result<StageProgress, RolloutError> {
        // Objects of this release are repaired in every stage, regardless of what earlier stages wait for.
        let changed = self.indices(0..self.items.len(), Action::Recover);
        self.write(changed).await?;
        let stages = ranges(self.context.desired, |desired| desired.stage);
        let count = stages.len();
        let mut first = None;
        for (number, stage) in stages.into_iter().enumerate() {
            let written = self.run_stage(stage.clone()).await;
            let end = stage.end;
            let waiting = written.map(|waiting| if waiting.is_empty() { self.gate(stage) } else { waiting });
            if waiting.as_ref().is_ok_and(Vec::is_empty) {
                continue;
            }
            let ahead = if self.complete { Ok(()) } else { self.run_ahead(end).await };
            let progress = StageProgress { stage: number + 1, stages: count, waiting: waiting? };
            ahead?;
            if !self.complete {
                return Ok(progress);
            }
            first.get_or_insert(progress);
        }
        Ok(first.unwrap_or(StageProgress { stage: count, stages: count, waiting: Vec::new() }))
    }

    /// Writes the members of later stages whose own dependencies are ready: what a stage waits for stops only what depends on it.
    async fn run_ahead(&mut self, from: usize) -> Result<(), RolloutError> {
        if unblocked(self.context.desired, from, |_| true).is_empty() {
            return Ok(());
        }
        let unhealthy = self.unhealthy(0..self.items.len(), self.context.dependencies.all());
        let unhealthy: BTreeSet<&ObjectKey> = unhealthy.iter().map(|it| &it.object).collect();
        let is_ready = |index: usize| {
            self.items.get(index).is_some_and(|it| it.action == Action::Keep && !unhealthy.contains(&it.desired.key))
        };
        let mut pending = unblocked(self.context.desired, from, is_ready);
        pending.retain(|index| self.is_pending(*index));
        self.write_unheld(pending).await.map(drop)
    }

    /// Writes the objects of a stage in the order of the phases and then of their sequences, and returns the objects that it waits for.
    async fn run_stage(&mut self, stage: Range<usize>) -> Result<Vec<Unhealthy>, RolloutError> {
        let desired = self.context.desired;
        let phases = ranges(desired.get(stage.clone()).unwrap_or_default(), |desired| desired.phase);
        for phase in phases {
            let phase = stage.start + phase.start..stage.start + phase.end;
            let crds = desired.get(phase.start).is_some_and(|first| first.phase == Phase::CustomResourceDefinitions);
            let of_action = |action| -> Vec<usize> {
                self.indices(phase.clone(), action).into_iter().filter(|index| !self.is_ordered(*index)).collect()
            };
            let mut pending = of_action(Action::Create);
            let others = [of_action(Action::Update), of_action(Action::Adopt)].concat();
            let unserved = self.unserved(&pending).await?;
            if !unserved.is_empty() {
                return Ok(unserved);
            }
            pending.extend(others);
            let held = self.write_unheld(pending).await?;
            if !held.is_empty() {
                return Ok(held);
            }
            if crds {
                // The workloads that serve their conversion start later.
                let mut waiting = self.unhealthy_alone(phase.clone());
                let ordered: BTreeSet<&ObjectKey> = phase
                    .filter(|index| self.is_ordered(*index))
                    .filter_map(|index| Some(&desired.get(index)?.key))
                    .collect();
                waiting.retain(|it| !ordered.contains(&it.object));
                if !waiting.is_empty() {
                    return Ok(waiting);
                }
            }
        }
        self.run_sequences(stage).await
    }

    /// Writes the sequences of a stage side by side, the objects of each one after the other, and returns the objects that they wait for. One
    /// that fails does not stop the others.
    async fn run_sequences(&mut self, stage: Range<usize>) -> Result<Vec<Unhealthy>, RolloutError> {
        let sequences = Sequences::of(self.context.desired, stage.filter(|index| self.is_ordered(*index)));
        let (mut tried, mut held, mut failure) = (BTreeSet::new(), Vec::new(), None);
        loop {
            let (mut waiting, mut batch) = (Vec::new(), Vec::new());
            for index in sequences.current(|index| self.is_done(index)) {
                let blocked = self.blocked(index).await?;
                if blocked.is_empty() && self.is_pending(index) && tried.insert(index) {
                    batch.push(index);
                } else if blocked.is_empty() {
                    waiting.extend(self.unhealthy_alone(index..index + 1));
                } else {
                    waiting.extend(blocked);
                }
            }
            if batch.is_empty() {
                waiting.retain(|it| !held.iter().any(|held: &Unhealthy| held.object == it.object));
                waiting.extend(held);
                return failure.map_or(Ok(waiting), Err);
            }
            match self.write_unheld(batch).await {
                Ok(more) => held.extend(more),
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
    }

    /// Whether an object is applied in the order of its sequence. A complete release is repaired object by object.
    fn is_ordered(&self, index: usize) -> bool {
        !self.complete && self.context.desired.get(index).is_some_and(|desired| desired.place.is_some())
    }

    /// Whether the next object of a sequence can follow this one.
    fn is_done(&self, index: usize) -> bool {
        let Some(item) = self.items.get(index) else { return true };
        let healthy = || self.unhealthy_alone(index..index + 1).is_empty();
        item.action == Action::Keep && (!is_awaited(&item.desired.key) || healthy())
    }

    fn is_pending(&self, index: usize) -> bool {
        let pending = [Action::Create, Action::Update, Action::Adopt];
        self.items.get(index).is_some_and(|item| pending.contains(&item.action))
    }

    /// Why the next object of a sequence cannot be created yet: another sequence has its namespace, or the CRD of its kind.
    async fn blocked(&self, index: usize) -> Result<Vec<Unhealthy>, RolloutError> {
        let Some(Item { desired, action: Action::Create, .. }) = self.items.get(index) else {
            return Ok(Vec::new());
        };
        let mut created = self.items.iter().filter(|item| item.action == Action::Create).map(|item| &item.desired.key);
        let is_its = |key: &ObjectKey| key.is_namespace() && Some(&key.name) == desired.key.namespace.as_ref();
        if let Some(namespace) = created.find(|key| is_its(key)) {
            let health = Health::progressing(format!("namespace {} does not exist yet", namespace.name));
            return Ok(vec![Unhealthy { object: desired.key.clone(), health }]);
        }
        self.unserved(&[index]).await
    }

    /// The objects that cannot be created yet, because the API server does not serve their kind although it has the CRD.
    async fn unserved(&self, indices: &[usize]) -> Result<Vec<Unhealthy>, RolloutError> {
        let mut waiting = Vec::new();
        let mut forgotten: Vec<&str> = Vec::new();
        for desired in indices.iter().filter_map(|index| self.context.desired.get(*index)) {
            let ObjectKey { group, version, kind, .. } = &desired.key;
            if desired.served {
                continue;
            }
            if !forgotten.contains(&group.as_str()) {
                self.context.discovery.forget(group);
                forgotten.push(group);
            }
            if self.context.discovery.kind(group, version, kind).await.map_err(cannot_discover)?.is_none() {
                let health = Health::progressing(format!("{kind} in version {group}/{version} is not served yet"));
                waiting.push(Unhealthy { object: desired.key.clone(), health });
            }
        }
        Ok(waiting)
    }

    /// The objects in this range with this action.
    fn indices(&self, range: Range<usize>, action: Action) -> Vec<usize> {
        range.filter(|index| self.items.get(*index).is_some_and(|item| item.action == action)).collect()
    }

    /// The objects that cannot be written yet, because the API server would call a webhook without ready endpoints.
    fn held(&self, indices: &[usize]) -> Vec<(usize, Unhealthy)> {
        if self.context.dependencies.is_empty() {
            return Vec::new();
        }
        let callers = self.items.iter().filter_map(|item| item.live.as_ref());
        let webhooks: Vec<WebhookDependency> = callers.flat_map(webhook_dependencies).collect();
        let held = indices.iter().filter_map(|index| {
            let Item { desired, action, .. } = self.items.get(*index)?;
            let write = Write {
                group: &desired.key.group,
                version: &desired.key.version,
                plural: &desired.resource.plural,
                creates: *action == Action::Create,
            };
            let message = webhooks.iter().find_map(|webhook| webhook.holds(write, self.context.dependencies.all()))?;
            Some((*index, Unhealthy { object: desired.key.clone(), health: Health::progressing(message) }))
        });
        held.collect()
    }

    /// Writes these objects, but for those that wait for a webhook, and returns the latter.
    async fn write_unheld(&mut self, mut indices: Vec<usize>) -> Result<Vec<Unhealthy>, RolloutError> {
        let held = self.held(&indices);
        indices.retain(|index| !held.iter().any(|(held, _)| held == index));
        self.write(indices).await?;
        Ok(held.into_iter().map(|(_, unhealthy)| unhealthy).collect())
    }

    /// Writes these objects, several at a time. All are tried before failures are reported.
    async fn write(&mut self, indices: Vec<usize>) -> Result<(), RolloutError> {
        let StageContext { cluster, confirmation, owner, discovery, .. } = self.context;
        if !indices.is_empty() {
            // A rollout that waits for long would otherwise write on behalf of an account that is gone.
            confirmation.confirm().await?;
        }
        let requests = indices.into_iter().filter_map(|index| {
            let Item { desired, live, action, .. } = self.items.get(index)?;
            Some(
                async move {
                    let result = match (live, action) {
                        (None, _) => apply::create(cluster, owner, desired).await.map(Updated::Applied),
                        (Some(live), Action::Adopt) => apply::adopt(cluster, desired, live).await.map(Updated::Applied),
                        (Some(live), Action::Recover) => {
                            apply::repair(cluster, desired, live).await.map(Updated::Applied)
                        }
                        (Some(live), _) => apply::update(cluster, owner, desired, live).await,
                    };
                    (index, result)
                }
                .boxed(),
            )
        });
        let results = all(requests.collect()).await;
        let (mut failures, mut collisions) = (Vec::new(), Vec::new());
        for (index, result) in results {
            let Some(item) = self.items.get_mut(index) else { continue };
            match result {
                Ok(updated) => {
                    let Item { desired, action, .. } = item;
                    tracing::debug!(object = %desired.key, ?action, "written");
                    if is_crd(&desired.key) {
                        let group = desired.value.pointer("/spec/group").and_then(Value::as_str);
                        discovery.forget(group.unwrap_or_default());
                    }
                    item.settle(updated);
                }
                Err(Failure::Object(failure)) => {
                    if failure.action == RECREATE {
                        item.note_deletion();
                    }
                    failures.push(failure);
                }
                Err(Failure::Collision(collision)) => collisions.push(collision),
            }
        }
        if !collisions.is_empty() {
            return Err(owner.refuse(collisions));
        }
        if failures.is_empty() { Ok(()) } else { Err(RolloutError::Objects(failures)) }
    }

    /// The objects that a stage waits for: its own, and the objects of earlier stages whose Services start only in this one.
    #[tracing::instrument(target = "chandler::trace", name = "probes", skip_all)]
    fn gate(&self, range: Range<usize>) -> Vec<Unhealthy> {
        let stage = self.context.desired.get(range.start).map_or(0, |first| first.stage);
        let dependencies = self.context.dependencies.at(stage);
        let mut waiting = self.unhealthy(range.clone(), &dependencies);
        let earlier = self.items.iter().take(range.start);
        let callers = earlier.filter(|item| needs::may_need(&item.desired.key.group, &item.desired.key.kind));
        waiting.extend(callers.filter_map(|item| {
            let health = assess(item.live.as_ref()?, &dependencies);
            (!health.is_healthy()).then(|| Unhealthy { object: item.desired.key.clone(), health })
        }));
        waiting
    }

    /// The objects in this range that are not healthy or do not exist yet.
    fn unhealthy(&self, range: Range<usize>, dependencies: &Dependencies) -> Vec<Unhealthy> {
        let mut budget = Budget::default();
        let items = self.items.get(range).unwrap_or_default();
        items
            .iter()
            .filter_map(|Item { desired, live, .. }| {
                let health = assess_object(self.context.probes, &desired.key, live.as_ref(), dependencies, &mut budget);
                (!health.is_healthy()).then(|| Unhealthy { object: desired.key.clone(), health })
            })
            .collect()
    }

    /// The objects that are not healthy, whatever they depend on.
    fn unhealthy_alone(&self, range: Range<usize>) -> Vec<Unhealthy> {
        self.unhealthy(range, &Dependencies::default().only(|_| false))
    }

    /// Whether every object matches the release.
    pub(crate) fn installed(&self) -> bool {
        self.items.iter().all(|item| item.action == Action::Keep)
    }

    /// The objects of the release that exist and belong to the owner.
    pub(crate) fn ours(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.items.iter().filter_map(|item| {
            let ours = matches!(item.action, Action::Keep | Action::Update | Action::Recover);
            item.live.as_ref().filter(|_| ours).map(|live| (&item.desired.key, live))
        })
    }

    /// The objects that were written.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&Desired, &Value)> {
        self.items.iter().filter_map(|Item { desired, live, action, done }| {
            let written = *action == Action::Keep && done.is_some();
            live.as_ref().filter(|_| written).map(|live| (*desired, live))
        })
    }

    /// The changes so far.
    pub(crate) fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        for Item { desired, action, done, .. } in &self.items {
            let list = match (done, action) {
                (Some(Action::Create), _) => &mut changes.created,
                (Some(Action::Adopt), _) => &mut changes.adopted,
                (Some(Action::Update), _) => &mut changes.updated,
                (Some(Action::Recreate), _) => &mut changes.recreated,
                (Some(Action::Recover), _) => &mut changes.recovered,
                (None, Action::Keep) => &mut changes.unchanged,
                _ => continue,
            };
            list.push(desired.key.clone());
        }
        changes
    }
}

impl Item<'_> {
    /// Records that the object matches the release, or is being deleted so that it can be created again.
    fn settle(&mut self, updated: Updated) {
        let (object, next, done) = match updated {
            Updated::Applied(object) => (object, Action::Keep, self.action),
            Updated::Recreated(Recreated::Created(object)) => (object, Action::Keep, Action::Recreate),
            Updated::Recreated(Recreated::Terminating(object)) => (object, Action::Wait, Action::Recreate),
        };
        (self.live, self.action, self.done) = (Some(object), next, Some(done));
    }

    /// Records that the object may have been deleted, and that a new one may exist. The record keeps expecting it.
    fn note_deletion(&mut self) {
        (self.live, self.action) = (None, Action::Create);
    }
}

/// The ranges of objects with the same value, which are contiguous because releases are sorted.
fn ranges<T: PartialEq>(desired: &[Desired], value: impl Fn(&Desired) -> T) -> Vec<Range<usize>> {
    let mut start = 0;
    let chunks = desired.chunk_by(|a, b| value(a) == value(b));
    chunks
        .map(|chunk| {
            let range = start..start + chunk.len();
            start = range.end;
            range
        })
        .collect()
}
