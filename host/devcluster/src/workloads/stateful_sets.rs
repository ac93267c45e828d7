//! StatefulSets: Pods with stable names and claims, one after another by default.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    action::{Action, Decision, Note},
    adopt::adopt_named,
    fields::{Status, count, list, map, number, replicas, text},
    kind::Kind,
    pods,
    revision::{self, HASH_LABEL},
    template,
    world::World,
};
use crate::metadata;

const COMPONENT: &str = "statefulset-controller";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";

struct Rollout<'a> {
    world: &'a World<'a>,
    set: &'a Value,
    /// The Pods by ordinal, those that are being deleted too.
    pods: BTreeMap<i64, &'a Value>,
    start: i64,
    wanted: i64,
    /// The revision that Pods come from or, if it is the same, go to.
    current: String,
    update: &'a Value,
}

pub(super) fn reconcile(world: &World<'_>, set: &Value) -> Decision {
    let mut decision = Decision::default();
    let fits = |name: &str| ordinal(metadata::name(set), name).is_some();
    if metadata::is_deleting(set) || adopt_named(world, Kind::StatefulSet, set, Kind::Pod, fits, &mut decision) {
        return decision;
    }
    let Some(update) = revision::present(world, Kind::StatefulSet, set, &mut decision) else { return decision };
    let known = text(set, "/status/currentRevision");
    let exists = world.cache.find(Kind::ControllerRevision, metadata::namespace(set), known).is_some();
    let current = if exists { known } else { metadata::name(update) };
    let controlled = world.cache.controlled(Kind::Pod, metadata::uid(set));
    let pods = controlled
        .into_iter()
        .filter_map(|pod| ordinal(metadata::name(set), metadata::name(pod)).map(|ordinal| (ordinal, pod.as_ref())));
    let rollout = Rollout {
        world,
        set,
        pods: pods.collect(),
        start: count(set, "/spec/ordinals/start"),
        wanted: replicas(set),
        current: current.to_owned(),
        update,
    };
    rollout.write_status(&mut decision);
    rollout.step(&mut decision);
    if decision.actions.is_empty() {
        let live = [rollout.current.as_str(), metadata::name(update)];
        revision::clean_up(world, Kind::StatefulSet, set, &live, &mut decision);
    }
    decision
}

/// The number behind the name of the set.
fn ordinal(set: &str, pod: &str) -> Option<i64> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let number: i64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

impl Rollout<'_> {
    fn is_parallel(&self) -> bool {
        text(self.set, "/spec/podManagementPolicy") == "Parallel"
    }

    /// Whether the Pod may be built upon: ready for long enough.
    fn is_available(&self, pod: &Value) -> bool {
        let minimum = count(self.set, "/spec/minReadySeconds");
        pods::until_available(self.world, pod, minimum).is_some_and(|wait| wait.is_zero())
    }

    fn step(&self, decision: &mut Decision) {
        for pod in self.pods.values() {
            match pods::until_available(self.world, pod, count(self.set, "/spec/minReadySeconds")) {
                Some(wait) if !wait.is_zero() => decision.look_again(wait),
                _ => {}
            }
        }
        if self.fill(decision) && self.shrink(decision) {
            self.update(decision);
        }
    }

    /// Creates missing Pods. Returns whether all exist and, with ordered management, are available.
    fn fill(&self, decision: &mut Decision) -> bool {
        let mut complete = true;
        for ordinal in self.start..self.start + self.wanted {
            let is_up = match self.pods.get(&ordinal) {
                None => {
                    if !self.claims_exist(ordinal, decision) {
                        return false;
                    }
                    self.create(ordinal, decision);
                    false
                }
                Some(pod) if metadata::is_deleting(pod) => false,
                Some(pod) if !pods::is_active(pod) => {
                    self.delete(pod, decision);
                    false
                }
                Some(pod) => self.is_available(pod),
            };
            complete &= is_up;
            if !is_up && !self.is_parallel() {
                return false;
            }
        }
        // Pods with parallel management do not block an update.
        complete || self.is_parallel() && decision.actions.iter().all(|action| !matches!(action, Action::Create { .. }))
    }

    /// Deletes excess Pods, the last one first. Returns whether none is left.
    fn shrink(&self, decision: &mut Decision) -> bool {
        let end = self.start + self.wanted;
        let beyond: Vec<&&Value> = self
            .pods
            .iter()
            .rev()
            .filter(|(ordinal, _)| **ordinal >= end || **ordinal < self.start)
            .map(|(_, pod)| pod)
            .collect();
        for pod in &beyond {
            if !metadata::is_deleting(pod) {
                self.delete(pod, decision);
            }
            if !self.is_parallel() {
                break;
            }
        }
        beyond.is_empty()
    }

    /// Deletes the last Pod that is of another revision, when those behind it are up.
    fn update(&self, decision: &mut Decision) {
        if text(self.set, "/spec/updateStrategy/type") == "OnDelete" {
            return;
        }
        let first = self.start + self.partition();
        for (_, pod) in self.pods.range(first..).rev() {
            if metadata::is_deleting(pod) {
                return;
            }
            if revision::of_pod(pod) != metadata::name(self.update) {
                return self.delete(pod, decision);
            }
            if !self.is_available(pod) {
                return;
            }
        }
    }

    fn partition(&self) -> i64 {
        count(self.set, "/spec/updateStrategy/rollingUpdate/partition").max(0)
    }

    fn delete(&self, pod: &Value, decision: &mut Decision) {
        let (name, set) = (metadata::name(pod), metadata::name(self.set));
        let message = format!("Delete Pod {name} in StatefulSet {set} successful");
        decision.delete(Kind::Pod, pod, Some(Note::normal(COMPONENT, "SuccessfulDelete", message)));
    }

    /// Whether the claims of a Pod exist; creates those that do not.
    fn claims_exist(&self, ordinal: i64, decision: &mut Decision) -> bool {
        let (set, namespace) = (metadata::name(self.set), metadata::namespace(self.set));
        let mut exist = true;
        for template in list(self.set, "/spec/volumeClaimTemplates") {
            let name = format!("{}-{set}-{ordinal}", metadata::name(template));
            if self.world.cache.find(Kind::PersistentVolumeClaim, namespace, &name).is_some() {
                continue;
            }
            exist = false;
            let mut labels = map(template, "/metadata/labels");
            labels.extend(map(self.set, "/spec/selector/matchLabels"));
            let object = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name, "namespace": namespace, "labels": labels,
                    "annotations": map(template, "/metadata/annotations"),
                },
                "spec": map(template, "/spec"),
            });
            let message = format!("Create Claim {name} Pod {set}-{ordinal} in StatefulSet {set} success");
            decision.push(Action::Create {
                kind: Kind::PersistentVolumeClaim,
                object,
                note: Some(Note::normal(COMPONENT, "SuccessfulCreate", message)),
                failure: None,
            });
        }
        exist
    }

    fn create(&self, ordinal: i64, decision: &mut Decision) {
        let set = metadata::name(self.set);
        let name = format!("{set}-{ordinal}");
        // Below the partition Pods stay what they were.
        let namespace = metadata::namespace(self.set);
        let before = self.world.cache.find(Kind::ControllerRevision, namespace, &self.current);
        let revision = match before {
            Some(before) if ordinal < self.start + self.partition() => before.as_ref(),
            _ => self.update,
        };
        let mut pod = template::pod(Kind::StatefulSet, self.set, &revision::template(revision));
        let fields = metadata::of(&mut pod);
        fields.insert("name".to_owned(), name.as_str().into());
        let labels = metadata::child(fields, "labels");
        labels.insert(HASH_LABEL.to_owned(), metadata::name(revision).into());
        labels.insert(NAME_LABEL.to_owned(), name.as_str().into());
        labels.insert(INDEX_LABEL.to_owned(), ordinal.to_string().into());
        let spec = metadata::child(metadata::as_map(&mut pod), "spec");
        spec.insert("hostname".to_owned(), name.as_str().into());
        let service = text(self.set, "/spec/serviceName");
        if !service.is_empty() {
            spec.insert("subdomain".to_owned(), service.into());
        }
        let claims = list(self.set, "/spec/volumeClaimTemplates").iter().map(metadata::name);
        let mut volumes: Vec<Value> = claims
            .clone()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("{claim}-{name}")}}))
            .collect();
        let own = spec.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        let claims: Vec<&str> = claims.collect();
        volumes.extend(own.into_iter().filter(|volume| !claims.contains(&text(volume, "/name"))));
        if !volumes.is_empty() {
            spec.insert("volumes".to_owned(), volumes.into());
        }
        let message = format!("Create Pod {name} in StatefulSet {set} successful");
        let failure = format!("Create Pod {name} in StatefulSet {set} failed error: {{error}}");
        decision.push(Action::Create {
            kind: Kind::Pod,
            object: pod,
            note: Some(Note::normal(COMPONENT, "SuccessfulCreate", message)),
            failure: Some(Note::warning(COMPONENT, "FailedCreate", failure)),
        });
    }

    fn write_status(&self, decision: &mut Decision) {
        let update = metadata::name(self.update);
        let counted = |which: &dyn Fn(&Value) -> bool| {
            i64::try_from(self.pods.values().filter(|pod| which(pod)).count()).unwrap_or(i64::MAX)
        };
        let of = |revision: &str| counted(&|pod| revision::of_pod(pod) == revision && !metadata::is_deleting(pod));
        let (all, ready) = (counted(&|_| true), counted(&pods::is_ready));
        let available = counted(&|pod| self.is_available(pod));
        let updated = of(update);
        let is_complete = [all, ready, updated].iter().all(|count| *count == self.wanted);
        let current = if is_complete { update } else { self.current.as_str() };
        let status = Status::observed(self.set)
            // Both are required.
            .set("replicas", all)
            .set("availableReplicas", available)
            .count("readyReplicas", ready)
            .count("currentReplicas", of(current))
            .count("updatedReplicas", updated)
            .set("currentRevision", current)
            .set("updateRevision", update)
            .set("collisionCount", number(self.set, "/status/collisionCount").unwrap_or(0));
        decision.status(Kind::StatefulSet, self.set, &status.build());
    }
}
