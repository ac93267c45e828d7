//! The single node, and the Pods that it accepts.

use serde_json::{Map, Value, json};

use super::status::NODE_ADDRESS;
use crate::{
    metadata,
    workloads::{
        action::{Action, Decision},
        conditions::Conditions,
        fields::{flag, is_true, list, map, text},
        kind::{Key, Kind},
        labels::matches_all,
        world::World,
    },
};

/// The name of the node.
pub(in crate::workloads) const NODE: &str = "devcluster-node";

/// The labels of the node: those that a kubelet and a cloud set, and the roles that workloads select. No process runs on the node, so its
/// architecture is the one that most bundles select.
const LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "amd64"),
    ("beta.kubernetes.io/os", "linux"),
    ("kubernetes.io/arch", "amd64"),
    ("kubernetes.io/hostname", NODE),
    ("kubernetes.io/os", "linux"),
    ("node-role.kubernetes.io/control-plane", ""),
    ("node-role.kubernetes.io/master", ""),
    ("node-role.kubernetes.io/worker", ""),
    ("node.kubernetes.io/instance-type", "simulated"),
    ("topology.kubernetes.io/region", "devcluster"),
    ("topology.kubernetes.io/zone", "devcluster-a"),
];

/// The labels that a node lacks, as a merge patch of `metadata.labels`. Labels that a user changed are kept.
fn missing_labels(node: &Value) -> Map<String, Value> {
    let found = map(node, "/metadata/labels");
    let missing = LABELS.iter().filter(|(key, _)| !found.contains_key(*key));
    missing.map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect()
}

/// The node to create.
fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": missing_labels(&Value::Null)},
        "spec": {"podCIDR": "10.128.0.0/9", "podCIDRs": ["10.128.0.0/9"]},
    })
}

/// Makes the node exist and be ready.
pub(in crate::workloads) fn reconcile(world: &World<'_>) -> Decision {
    let mut decision = Decision::default();
    let Some(found) = world.cache.find(Kind::Node, "", NODE) else {
        decision.push(Action::Create { kind: Kind::Node, object: node(), note: None, failure: None });
        return decision;
    };
    if metadata::is_deleting(found) {
        return decision;
    }
    // The node of a data directory may come from an earlier version.
    let missing = missing_labels(found);
    if !missing.is_empty() {
        decision.change(Kind::Node, found, json!({"metadata": {"labels": missing}}));
    }
    let mut conditions = Conditions::with_messages(found, &world.timestamp());
    conditions.set("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available");
    conditions.set("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure");
    conditions.set("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available");
    conditions.set("Ready", "True", "KubeletReady", "kubelet is posting ready status");
    let capacity = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "100000"});
    let mut wanted = found.get("status").cloned().unwrap_or_default();
    let fields = metadata::as_map(&mut wanted);
    fields.insert("conditions".to_owned(), conditions.build().unwrap_or_default());
    fields.insert("capacity".to_owned(), capacity.clone());
    fields.insert("allocatable".to_owned(), capacity);
    fields.insert(
        "addresses".to_owned(),
        json!([{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": NODE}]),
    );
    fields.insert(
        "nodeInfo".to_owned(),
        json!({
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "simulated", "osImage": "simulated",
            "containerRuntimeVersion": "devcluster://1.0.0", "kubeletVersion": "v1.36.0-chandler.devcluster",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
        }),
    );
    decision.status(Kind::Node, found, &wanted);
    decision
}

/// The node that a Pod goes to, or why there is none.
pub(super) fn choose(world: &World<'_>, pod: &Value) -> Result<String, String> {
    let nodes: Vec<&Value> = world.cache.namespace(Kind::Node, "").map(AsRef::as_ref).collect();
    let usable =
        |node: &&&Value| is_true(node, "Ready") && (is_of_daemon_set(pod) || !flag(node, "/spec/unschedulable"));
    let all = nodes.len();
    let usable: Vec<&&Value> = nodes.iter().filter(usable).collect();
    if let Some(node) = usable.iter().find(|node| fits(node, pod.get("spec").unwrap_or(&Value::Null))) {
        return Ok(metadata::name(node).to_owned());
    }
    let unusable = all - usable.len();
    let mut reasons = Vec::new();
    if !usable.is_empty() {
        reasons.push(format!("{} node(s) didn't match Pod's node affinity/selector", usable.len()));
    }
    if unusable > 0 {
        reasons.push(format!("{unusable} node(s) were unschedulable"));
    }
    Err(if reasons.is_empty() {
        "no nodes available to schedule pods".to_owned()
    } else {
        format!("0/{all} nodes are available: {}.", reasons.join(", "))
    })
}

fn is_of_daemon_set(pod: &Value) -> bool {
    crate::workloads::fields::controller(pod).and_then(Kind::of_reference) == Some(Kind::DaemonSet)
}

/// Whether a Pod of this spec may run on a node: `nodeSelector` and the required node affinity.
pub(in crate::workloads) fn fits(node: &Value, pod_spec: &Value) -> bool {
    let labels = Value::Object(map(node, "/metadata/labels"));
    if !matches_all(pod_spec.get("nodeSelector"), &labels) {
        return false;
    }
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = list(pod_spec, required);
    let fields = json!({"metadata.name": metadata::name(node)});
    terms.is_empty()
        || terms.iter().any(|term| {
            list(term, "/matchExpressions").iter().all(|expression| matches(expression, &labels))
                && list(term, "/matchFields").iter().all(|expression| matches(expression, &fields))
        })
}

fn matches(expression: &Value, values: &Value) -> bool {
    let value = values.get(text(expression, "/key"));
    let stated = list(expression, "/values");
    let number = |value: Option<&Value>| value.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok());
    let compared = number(value).zip(number(stated.first()));
    match text(expression, "/operator") {
        "In" => value.is_some_and(|value| stated.contains(value)),
        "NotIn" => value.is_none_or(|value| !stated.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared.is_some_and(|(value, bound)| value > bound),
        "Lt" => compared.is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// The place of the node.
pub(in crate::workloads) fn key() -> Key {
    Key::new(Kind::Node, "", NODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_can_select_the_node_by_the_common_labels() {
        let node = node();
        for (key, value) in [
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", NODE),
            ("node-role.kubernetes.io/control-plane", ""),
            ("node-role.kubernetes.io/master", ""),
            ("node-role.kubernetes.io/worker", ""),
            ("topology.kubernetes.io/zone", "devcluster-a"),
            ("topology.kubernetes.io/region", "devcluster"),
        ] {
            assert!(fits(&node, &json!({"nodeSelector": {key: value}})), "{key}");
        }
        assert!(!fits(&node, &json!({"nodeSelector": {"kubernetes.io/os": "windows"}})));
    }

    #[test]
    fn only_missing_labels_are_added() {
        let mut old = node();
        old["metadata"]["labels"] = json!({"kubernetes.io/os": "plan9", "own": "x"});
        let missing = missing_labels(&old);
        assert_eq!(missing.len(), LABELS.len() - 1);
        assert!(!missing.contains_key("kubernetes.io/os"));
        assert!(missing_labels(&node()).is_empty());
    }
}
