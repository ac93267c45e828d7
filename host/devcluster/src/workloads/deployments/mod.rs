//! Deployments: ReplicaSets for the current and earlier Pod templates, and rolling updates between them.
//!
//! | module | holds |
//! |---|---|
//! | `sizes` | the desired size of each ReplicaSet, numbers only |
//! | `history` | revisions and their annotations |
//! | `status` | counts and conditions |

mod history;
mod sizes;
mod status;

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use self::{
    sizes::{Limits, Size},
    status::Progress,
};
use super::{
    action::{Action, Decision, Note},
    adopt::adopt,
    behaviour::Behaviour,
    fields::{controller_reference, count, flag, generation, number, replicas, text},
    kind::{Key, Kind},
    pods,
    template::{self, POD_TEMPLATE_HASH, same_template},
    world::World,
};
use crate::metadata;

const COMPONENT: &str = "deployment-controller";
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// A Deployment with its ReplicaSets.
struct Rollout<'a> {
    world: &'a World<'a>,
    deployment: &'a Value,
    limits: Limits,
    /// The ReplicaSet of the current template.
    new: Option<&'a Value>,
    /// The others, oldest first.
    old: Vec<&'a Value>,
}

pub(super) fn reconcile(world: &World<'_>, deployment: &Value) -> Decision {
    let mut decision = Decision::default();
    if !metadata::is_deleting(deployment) && adopt(world, Kind::Deployment, deployment, Kind::ReplicaSet, &mut decision)
    {
        return decision;
    }
    let rollout = Rollout::of(world, deployment);
    if metadata::is_deleting(deployment) {
        rollout.write_status(&mut decision, Progress::Unknown);
        return decision;
    }
    let progress = if flag(deployment, "/spec/paused") {
        rollout.scale(&mut decision);
        rollout.clean_up(&mut decision);
        Progress::Paused
    } else if rollout.was_scaled() {
        rollout.scale(&mut decision);
        Progress::Unknown
    } else if rollout.limits.rolling {
        rollout.roll(&mut decision)
    } else {
        rollout.recreate(&mut decision)
    };
    rollout.write_status(&mut decision, progress);
    decision
}

fn size(set: &Value) -> Size {
    let wanted = replicas(set);
    // A status lags behind a ReplicaSet that was just made smaller.
    let available = count(set, "/status/availableReplicas").min(wanted);
    Size { wanted, available, most: history::most_replicas(set) }
}

fn sizes(sets: &[&Value]) -> Vec<Size> {
    sets.iter().map(|set| size(set)).collect()
}

impl<'a> Rollout<'a> {
    fn of(world: &'a World<'a>, deployment: &'a Value) -> Self {
        let controlled = world.cache.controlled(Kind::ReplicaSet, metadata::uid(deployment));
        let mut sets: Vec<&Value> = controlled.into_iter().map(AsRef::as_ref).collect();
        sets.sort_by_key(|set| (text(set, "/metadata/creationTimestamp"), metadata::name(set)));
        let template = deployment.pointer("/spec/template");
        let new = sets.iter().position(|set| same_template(set.pointer("/spec/template"), template));
        let new = new.map(|index| sets.remove(index));
        Self { world, deployment, limits: Limits::of(deployment), new, old: sets }
    }

    fn all(&self) -> impl Iterator<Item = &'a Value> {
        self.old.iter().copied().chain(self.new)
    }

    fn next_revision(&self) -> i64 {
        self.old.iter().map(|set| history::revision(set)).max().unwrap_or(0) + 1
    }

    /// Whether the Deployment's size changed since the ReplicaSets were scaled.
    fn was_scaled(&self) -> bool {
        let active = self.all().filter(|set| replicas(set) > 0);
        active
            .into_iter()
            .any(|set| history::desired_replicas(set).is_some_and(|desired| desired != self.limits.replicas))
    }

    /// A rolling update's next step.
    fn roll(&self, decision: &mut Decision) -> Progress {
        let Some(new) = self.new else { return self.create(decision, sizes::grown(&self.limits, 0, self.wanted())) };
        if self.renew(decision, new) {
            return Progress::Unknown;
        }
        if let Some(wanted) = sizes::next_new(&self.limits, size(new), &sizes(&self.old)) {
            self.resize(decision, new, wanted);
            return Progress::Rolling;
        }
        let next = sizes::next_old(&self.limits, size(new), &sizes(&self.old));
        for (set, wanted) in self.old.iter().zip(next) {
            self.resize(decision, set, wanted);
        }
        if decision.actions.is_empty() && status::is_complete(self) {
            self.clean_up(decision);
        }
        Progress::Rolling
    }

    /// The next step when all Pods go before new ones come.
    fn recreate(&self, decision: &mut Decision) -> Progress {
        for set in &self.old {
            self.resize(decision, set, 0);
        }
        if !decision.actions.is_empty() || self.old_pods_run() {
            return Progress::Rolling;
        }
        let Some(new) = self.new else { return self.create(decision, self.limits.replicas) };
        if self.renew(decision, new) {
            return Progress::Unknown;
        }
        self.resize(decision, new, self.limits.replicas);
        if decision.actions.is_empty() && status::is_complete(self) {
            self.clean_up(decision);
        }
        Progress::Rolling
    }

    fn old_pods_run(&self) -> bool {
        self.old.iter().any(|set| {
            let pods = self.world.cache.controlled(Kind::Pod, metadata::uid(set));
            pods.iter().any(|pod| pods::is_active(pod) || metadata::is_deleting(pod))
                || count(set, "/status/replicas") > 0
        })
    }

    fn wanted(&self) -> i64 {
        self.all().map(replicas).sum()
    }

    /// Creates the ReplicaSet of the current template.
    fn create(&self, decision: &mut Decision, wanted: i64) -> Progress {
        let collisions = count(self.deployment, "/status/collisionCount");
        let present = self.deployment.pointer("/spec/template").cloned().unwrap_or_default();
        let hash = template::hash(&present, collisions);
        let name = set_name(metadata::name(self.deployment), &hash);
        let namespace = metadata::namespace(self.deployment);
        // One of this Deployment's own with the same template would have been found.
        if self.world.cache.find(Kind::ReplicaSet, namespace, &name).is_some() {
            return Progress::Collision(collisions + 1);
        }
        let labelled = |mut labels: Map<String, Value>| {
            labels.insert(POD_TEMPLATE_HASH.to_owned(), hash.clone().into());
            labels
        };
        let labels = labelled(super::fields::map(&present, "/metadata/labels"));
        let mut template = present;
        metadata::of(&mut template).insert("labels".to_owned(), labels.clone().into());
        let mut selector = self.deployment.pointer("/spec/selector").cloned().unwrap_or_default();
        let matched = labelled(super::fields::map(&selector, "/matchLabels"));
        metadata::as_map(&mut selector).insert("matchLabels".to_owned(), matched.into());
        let mut annotations = history::annotations(self.deployment, &Value::Null, self.next_revision());
        annotations.extend(history::sizes(&self.limits));
        let mut spec = json!({"replicas": wanted, "selector": selector, "template": template});
        if let Some(seconds) = number(self.deployment, "/spec/minReadySeconds").filter(|seconds| *seconds > 0) {
            metadata::as_map(&mut spec).insert("minReadySeconds".to_owned(), seconds.into());
        }
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "namespace": namespace, "labels": labels, "annotations": annotations,
                "ownerReferences": [controller_reference(Kind::Deployment, self.deployment)],
            },
            "spec": spec,
        });
        let scaled = format!("Scaled up replica set {name} from 0 to {wanted}");
        decision.push(Action::Create {
            kind: Kind::ReplicaSet,
            object,
            note: (wanted > 0).then(|| Note::normal(COMPONENT, "ScalingReplicaSet", scaled)),
            failure: Some(Note::warning(
                COMPONENT,
                "ReplicaSetCreateError",
                format!("Failed to create new replica set {name:?}: {{error}}"),
            )),
        });
        Progress::Created(name)
    }

    /// Brings annotations and `minReadySeconds` of the current ReplicaSet up to date, and the Deployment's revision.
    fn renew(&self, decision: &mut Decision, new: &Value) -> bool {
        let annotations = history::annotations(self.deployment, new, self.next_revision());
        let seconds = count(self.deployment, "/spec/minReadySeconds");
        let mut change = Map::new();
        if annotations != super::fields::map(new, "/metadata/annotations") {
            change.insert("metadata".to_owned(), json!({"annotations": annotations}));
        }
        if seconds != count(new, "/spec/minReadySeconds") {
            change.insert("spec".to_owned(), json!({"minReadySeconds": seconds}));
        }
        if !change.is_empty() {
            decision.change(Kind::ReplicaSet, new, Value::Object(change));
            return true;
        }
        let revision = metadata::annotation(new, history::REVISION);
        if revision.is_some() && revision != metadata::annotation(self.deployment, history::REVISION) {
            let change = json!({"metadata": {"annotations": {history::REVISION: revision}}});
            decision.change(Kind::Deployment, self.deployment, change);
            return true;
        }
        false
    }

    /// Spreads a changed size over the ReplicaSets that have Pods.
    fn scale(&self, decision: &mut Decision) {
        let mut active: Vec<&Value> = self.all().filter(|set| replicas(set) > 0).collect();
        match active.as_slice() {
            [] => {
                if let Some(latest) = self.new.or(self.old.last().copied()) {
                    self.resize(decision, latest, self.limits.replicas);
                }
            }
            [only] => self.resize_forced(decision, only, self.limits.replicas),
            _ if self.is_saturated() => {
                for set in &self.old {
                    self.resize(decision, set, 0);
                }
            }
            _ if self.limits.rolling => {
                active.sort_by_key(|set| Reverse((text(set, "/metadata/creationTimestamp"), history::revision(set))));
                let next =
                    sizes::in_proportion(&self.limits, &sizes(&active), count(self.deployment, "/status/replicas"));
                for (set, wanted) in active.iter().zip(next) {
                    self.resize_forced(decision, set, wanted);
                }
            }
            _ => {}
        }
    }

    fn is_saturated(&self) -> bool {
        self.new.is_some_and(|new| {
            replicas(new) == self.limits.replicas
                && history::desired_replicas(new) == Some(self.limits.replicas)
                && count(new, "/status/availableReplicas") == self.limits.replicas
        })
    }

    /// Gives a ReplicaSet another size.
    fn resize(&self, decision: &mut Decision, set: &Value, wanted: i64) {
        if replicas(set) != wanted {
            self.resize_forced(decision, set, wanted);
        }
    }

    /// Gives a ReplicaSet a size and records the Deployment's own.
    fn resize_forced(&self, decision: &mut Decision, set: &Value, wanted: i64) {
        let before = replicas(set);
        let annotations = history::sizes(&self.limits);
        let known = super::fields::map(set, "/metadata/annotations");
        if before == wanted && annotations.iter().all(|(key, value)| known.get(key) == Some(value)) {
            return;
        }
        let change = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": wanted}});
        decision.change(Kind::ReplicaSet, set, change);
        if before != wanted {
            let direction = if before < wanted { "up" } else { "down" };
            let name = metadata::name(set);
            let message = format!("Scaled {direction} replica set {name} from {before} to {wanted}");
            decision.record_event(Note::normal(COMPONENT, "ScalingReplicaSet", message));
        }
    }

    /// Deletes the oldest ReplicaSets without Pods beyond the limit of the history.
    fn clean_up(&self, decision: &mut Decision) {
        let Some(limit) = number(self.deployment, "/spec/revisionHistoryLimit") else { return };
        let mut old: Vec<&Value> = self.old.iter().copied().filter(|set| !metadata::is_deleting(set)).collect();
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        old.sort_by_key(|set| history::revision(set));
        for set in old.into_iter().take(surplus) {
            let is_idle = count(set, "/status/replicas") == 0 && replicas(set) == 0;
            if is_idle && generation(set) <= count(set, "/status/observedGeneration") {
                decision.delete(Kind::ReplicaSet, set, None);
            }
        }
    }

    fn write_status(&self, decision: &mut Decision, progress: Progress) {
        let wanted = status::status(self, progress, decision);
        let before = decision.actions.len();
        decision.status(Kind::Deployment, self.deployment, &wanted);
        if self.refusal().is_some() && decision.actions.len() > before {
            // A rejected request may be rejected again; the status must report it nevertheless.
            decision.actions.rotate_right(1);
        }
    }

    fn behaviour(&self) -> Behaviour {
        self.world.behaviour(Kind::Deployment, self.deployment)
    }

    fn refusal(&self) -> Option<&'a String> {
        self.world.refusals.get(&Key::of(Kind::Deployment, self.deployment))
    }
}

/// The name of the ReplicaSet of a template.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = LONGEST_NAME - 1 - hash.len().min(LONGEST_NAME - 1);
    let prefix: String = deployment.chars().take(room).collect();
    format!("{prefix}-{hash}")
}

#[cfg(test)]
mod tests;
