//! DaemonSets: a Pod on every matching node.

use serde_json::{Value, json};

use super::{
    action::{Action, Decision, Note},
    adopt::adopt,
    fields::{Status, count, label, list, scaled, text},
    kind::Kind,
    pods,
    revision::{self, HASH_LABEL},
    template,
    world::World,
};
use crate::metadata;

const COMPONENT: &str = "daemonset-controller";
const GENERATION_LABEL: &str = "pod-template-generation";
/// The tolerations of every Pod of a DaemonSet: key and effect.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn reconcile(world: &World<'_>, set: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(set) || adopt(world, Kind::DaemonSet, set, Kind::Pod, &mut decision) {
        return decision;
    }
    let Some(present) = revision::present(world, Kind::DaemonSet, set, &mut decision) else { return decision };
    let hash = label(present, HASH_LABEL);
    let nodes: Vec<&Value> = world.cache.namespace(Kind::Node, "").map(AsRef::as_ref).collect();
    let spec = set.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let (fitting, others): (Vec<&Value>, Vec<&Value>) = nodes.into_iter().partition(|node| pods::fits(node, spec));
    let all = world.living(Kind::Pod, set);
    let on = |node: &Value| -> Vec<&Value> {
        all.iter().copied().filter(|pod| target(pod) == metadata::name(node)).collect()
    };
    let placed: Vec<(&Value, Vec<&Value>)> = fitting.into_iter().map(|node| (node, on(node))).collect();
    let stray: Vec<&Value> = others.into_iter().flat_map(on).collect();

    write_status(world, set, &placed, stray.len(), hash, &mut decision);
    for pod in &stray {
        delete(pod, &mut decision);
    }
    for (node, pods) in &placed {
        let mut active = pods.iter().filter(|pod| pods::is_active(pod));
        if active.next().is_none() {
            decision.push(create(set, node, hash));
        }
        for surplus in active.chain(pods.iter().filter(|pod| !pods::is_active(pod))) {
            delete(surplus, &mut decision);
        }
        for pod in pods {
            match pods::until_available(world, pod, count(set, "/spec/minReadySeconds")) {
                Some(wait) if !wait.is_zero() => decision.look_again(wait),
                _ => {}
            }
        }
    }
    update(world, set, &placed, hash, &mut decision);
    if decision.actions.is_empty() {
        revision::clean_up(world, Kind::DaemonSet, set, &[hash], &mut decision);
    }
    decision
}

/// The node that a Pod is on or is meant for.
fn target(pod: &Value) -> &str {
    let node = text(pod, "/spec/nodeName");
    if !node.is_empty() {
        return node;
    }
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let mut fields = list(pod, terms).iter().flat_map(|term| list(term, "/matchFields"));
    fields
        .find(|field| text(field, "/key") == "metadata.name")
        .map(|field| text(field, "/values/0"))
        .unwrap_or_default()
}

fn is_available(world: &World<'_>, set: &Value, pod: &Value) -> bool {
    pods::until_available(world, pod, count(set, "/spec/minReadySeconds")).is_some_and(|wait| wait.is_zero())
}

/// Deletes Pods of other revisions: those that are not available, and of the others as many as may be missing.
fn update(world: &World<'_>, set: &Value, placed: &[(&Value, Vec<&Value>)], hash: &str, decision: &mut Decision) {
    if text(set, "/spec/updateStrategy/type") == "OnDelete" || !decision.actions.iter().all(is_status) {
        return;
    }
    let wanted = i64::try_from(placed.len()).unwrap_or(i64::MAX);
    let allowed = scaled(set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"), wanted, true).max(1);
    let active = placed.iter().flat_map(|(_, pods)| pods).copied();
    let (up, down): (Vec<&Value>, Vec<&Value>) = active.partition(|pod| is_available(world, set, pod));
    let missing = wanted - i64::try_from(up.len()).unwrap_or(0);
    let outdated = |pod: &&Value| revision::of_pod(pod) != hash;
    for pod in down.into_iter().filter(outdated) {
        delete(pod, decision);
    }
    let spare = usize::try_from(allowed - missing).unwrap_or(0);
    for pod in up.into_iter().filter(outdated).take(spare) {
        delete(pod, decision);
    }
}

fn is_status(action: &Action) -> bool {
    matches!(action, Action::Status { .. })
}

fn delete(pod: &Value, decision: &mut Decision) {
    let message = format!("Deleted pod: {}", metadata::name(pod));
    decision.delete(Kind::Pod, pod, Some(Note::normal(COMPONENT, "SuccessfulDelete", message)));
}

fn create(set: &Value, node: &Value, hash: &str) -> Action {
    let mut pod = template::pod(Kind::DaemonSet, set, set.pointer("/spec/template").unwrap_or(&Value::Null));
    let labels = metadata::child(metadata::of(&mut pod), "labels");
    labels.insert(HASH_LABEL.to_owned(), hash.into());
    let generation = metadata::annotation(set, "deprecated.daemonset.template.generation");
    labels.insert(GENERATION_LABEL.to_owned(), generation.unwrap_or("1").into());
    let spec = metadata::child(metadata::as_map(&mut pod), "spec");
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    tolerations
        .extend(TOLERATED.iter().map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})));
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        let key = "node.kubernetes.io/network-unavailable";
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}));
    }
    spec.insert("tolerations".to_owned(), tolerations.into());
    let affinity = metadata::child(metadata::child(spec, "affinity"), "nodeAffinity");
    let required = metadata::child(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    // The node itself takes the place of what led to it.
    let field = json!({"key": "metadata.name", "operator": "In", "values": [metadata::name(node)]});
    required.insert("nodeSelectorTerms".to_owned(), json!([{"matchFields": [field]}]));
    Action::Create {
        kind: Kind::Pod,
        object: pod,
        note: Some(Note::normal(COMPONENT, "SuccessfulCreate", "Created pod: {name}")),
        failure: Some(Note::warning(COMPONENT, "FailedCreate", "Error creating: {error}")),
    }
}

fn write_status(
    world: &World<'_>,
    set: &Value,
    placed: &[(&Value, Vec<&Value>)],
    misscheduled: usize,
    hash: &str,
    decision: &mut Decision,
) {
    let nodes = |which: &dyn Fn(&Value) -> bool| {
        i64::try_from(placed.iter().filter(|(_, pods)| pods.iter().any(|pod| which(pod))).count()).unwrap_or(i64::MAX)
    };
    let desired = i64::try_from(placed.len()).unwrap_or(i64::MAX);
    let available = nodes(&|pod| is_available(world, set, pod));
    let status = Status::observed(set)
        // These four are required.
        .set("desiredNumberScheduled", desired)
        .set("currentNumberScheduled", nodes(&|_| true))
        .set("numberMisscheduled", misscheduled)
        .set("numberReady", nodes(&pods::is_ready))
        .count("updatedNumberScheduled", nodes(&|pod| revision::of_pod(pod) == hash))
        .count("numberAvailable", available)
        .count("numberUnavailable", desired - available);
    decision.status(Kind::DaemonSet, set, &status.build());
}
