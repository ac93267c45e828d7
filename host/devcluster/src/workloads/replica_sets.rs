//! ReplicaSets: the requested number of Pods.

use std::cmp::Reverse;

use serde_json::Value;

use super::{
    action::{Action, Decision, Note},
    adopt::adopt,
    conditions::Conditions,
    fields::{Status, count, labels, replicas, text, time},
    kind::{Key, Kind},
    labels::matches_all,
    pods, template,
    world::World,
};
use crate::metadata;

const COMPONENT: &str = "replicaset-controller";
/// How many Pods are created or deleted in one go (`BurstReplicas`).
const BURST: usize = 500;

pub(super) fn reconcile(world: &World<'_>, set: &Value) -> Decision {
    let mut decision = Decision::default();
    if !metadata::is_deleting(set) && adopt(world, Kind::ReplicaSet, set, Kind::Pod, &mut decision) {
        return decision;
    }
    let mut active: Vec<&Value> = world.living(Kind::Pod, set).into_iter().filter(|pod| pods::is_active(pod)).collect();
    let wanted = usize::try_from(replicas(set)).unwrap_or(0);
    decision.status(Kind::ReplicaSet, set, &status(world, set, &active));
    for pod in &active {
        match pods::until_available(world, pod, count(set, "/spec/minReadySeconds")) {
            Some(wait) if !wait.is_zero() => decision.look_again(wait),
            _ => {}
        }
    }
    if metadata::is_deleting(set) {
        return decision;
    }
    if active.len() < wanted {
        for _ in 0..(wanted - active.len()).min(BURST) {
            decision.push(create(set));
        }
    } else if active.len() > wanted {
        active.sort_by_cached_key(|pod| dispensability(pod));
        for pod in active.iter().take((active.len() - wanted).min(BURST)) {
            let message = format!("Deleted pod: {}", metadata::name(pod));
            decision.delete(Kind::Pod, pod, Some(Note::normal(COMPONENT, "SuccessfulDelete", message)));
        }
    }
    decision
}

fn create(set: &Value) -> Action {
    let object = template::pod(Kind::ReplicaSet, set, set.pointer("/spec/template").unwrap_or(&Value::Null));
    Action::Create {
        kind: Kind::Pod,
        object,
        note: Some(Note::normal(COMPONENT, "SuccessfulCreate", "Created pod: {name}")),
        failure: Some(Note::warning(COMPONENT, "FailedCreate", "Error creating: {error}")),
    }
}

/// The lower, the sooner a Pod is deleted (`ActivePodsWithRanks`): Pods that are not scheduled or not ready, then Pods with a low deletion
/// cost, then young Pods.
fn dispensability(pod: &Value) -> (bool, u8, bool, i64, Reverse<i64>, Reverse<String>, String) {
    let phase = match text(pod, "/status/phase") {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let cost = metadata::annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
    let restarts = super::fields::list(pod, "/status/containerStatuses")
        .iter()
        .map(|container| count(container, "/restartCount"))
        .max();
    let created = time(pod, "/metadata/creationTimestamp").map(crate::clock::seconds).unwrap_or_default();
    (
        !text(pod, "/spec/nodeName").is_empty(),
        phase,
        pods::is_ready(pod),
        cost.and_then(|cost| cost.parse().ok()).unwrap_or(0),
        Reverse(restarts.unwrap_or(0)),
        Reverse(created),
        metadata::uid(pod).to_owned(),
    )
}

fn status(world: &World<'_>, set: &Value, active: &[&Value]) -> Value {
    let minimum = count(set, "/spec/minReadySeconds");
    let template_labels = set.pointer("/spec/template/metadata/labels");
    let counted = |which: &dyn Fn(&Value) -> bool| {
        i64::try_from(active.iter().filter(|pod| which(pod)).count()).unwrap_or(i64::MAX)
    };
    let mut conditions = Conditions::of(set, &world.timestamp(), None);
    match world.refusals.get(&Key::of(Kind::ReplicaSet, set)) {
        Some(why) => conditions.set("ReplicaFailure", "True", "FailedCreate", why),
        None => conditions.remove("ReplicaFailure"),
    }
    let all = world.cache.controlled(Kind::Pod, metadata::uid(set));
    let terminating = all.iter().filter(|pod| metadata::is_deleting(pod)).count();
    Status::observed(set)
        // Not left out when zero: the one is required, the other a pointer.
        .set("replicas", counted(&|_| true))
        .set("terminatingReplicas", terminating)
        .count("fullyLabeledReplicas", counted(&|pod| matches_all(template_labels, labels(pod))))
        .count("readyReplicas", counted(&pods::is_ready))
        .count(
            "availableReplicas",
            counted(&|pod| pods::until_available(world, pod, minimum).is_some_and(|wait| wait.is_zero())),
        )
        .set_some("conditions", conditions.build())
        .build()
}
