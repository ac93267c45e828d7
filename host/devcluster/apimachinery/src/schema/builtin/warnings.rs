//! The warnings of kube-apiserver about accepted objects.
//!
//! Source: `k8s.io/kubernetes/pkg/api/pod/warnings.go`, `pkg/api/node/util.go`, `pkg/api/service/warnings.go`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::schema::{
    fields::{list, text},
    path::FieldPath,
    quantity,
    resources::GroupVersionKind,
};

const DEPRECATED_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const DEPRECATED_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

const DEPRECATED_VOLUMES: &[(&str, &str)] = &[
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings about a write of a built-in kind; `old` is the stored object of an update.
pub fn warnings(kind: &GroupVersionKind, new: &Value, old: Option<&Value>) -> Vec<String> {
    // Templates that stay as they are were warned of before.
    if old.is_some_and(|old| old.get("spec") == new.get("spec")) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let root = FieldPath::Root;
    let spec = root.field("spec");
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => template(new, &root, &mut found),
        ("", "PodTemplate") => {
            template(new.get("template").unwrap_or(&Value::Null), &root.field("template"), &mut found);
        }
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => {
            template(new.pointer("/spec/template").unwrap_or(&Value::Null), &spec.field("template"), &mut found);
        }
        ("batch", "CronJob") => {
            let pod = new.pointer("/spec/jobTemplate/spec/template").unwrap_or(&Value::Null);
            let job = spec.field("jobTemplate");
            template(pod, &job.field("spec").field("template"), &mut found);
        }
        ("", "Service") => service(new, &mut found),
        _ => {}
    }
    found
}

fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, message)| *message)
}

fn template(template: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    let Some(spec) = template.get("spec") else { return };
    let spec_path = path.field("spec");
    let nodes = spec_path.field("nodeSelector");
    for key in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flat_map(|labels| labels.keys()) {
        found.extend(deprecated_label(key).map(|message| format!("{}: {message}", nodes.key(key))));
    }
    affinity(spec, &spec_path.field("affinity"), found);
    let spreads = spec_path.field("topologySpreadConstraints");
    for (index, spread) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = spreads.index(index);
        let key = text(spread, "topologyKey");
        found.extend(deprecated_label(key).map(|message| format!("{}: {key} is {message}", path.field("topologyKey"))));
        without_selector(spread, &path, found);
    }
    annotations(template, path, found);
    let volumes = spec_path.field("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (name, message) in DEPRECATED_VOLUMES.iter().filter(|(name, _)| volume.get(name).is_some()) {
            found.push(format!("{}: {message}", volumes.index(index).field(name)));
        }
    }
    pull_secrets(spec, &spec_path.field("imagePullSecrets"), found);
    containers(spec, &spec_path, found);
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        let path = spec_path.field("terminationGracePeriodSeconds");
        found.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_affinity(spec, &spec_path.field("affinity"), found);
}

fn affinity(spec: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    let Some(affinity) = spec.pointer("/affinity/nodeAffinity") else { return };
    let path = path.field("nodeAffinity");
    let mut term = |term: &Value, path: &FieldPath<'_>| {
        let expressions = path.field("matchExpressions");
        for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
            let key = text(expression, "key");
            let path = expressions.index(index);
            found.extend(deprecated_label(key).map(|message| format!("{}: {key} is {message}", path.field("key"))));
        }
    };
    let required = path.field("requiredDuringSchedulingIgnoredDuringExecution");
    let terms_path = required.field("nodeSelectorTerms");
    let terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution").unwrap_or(&Value::Null);
    for (index, item) in list(terms, "nodeSelectorTerms").iter().enumerate() {
        term(item, &terms_path.index(index));
    }
    let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, item) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
        let item_path = preferred.index(index);
        term(item.get("preference").unwrap_or(&Value::Null), &item_path.field("preference"));
    }
}

fn pod_affinity(spec: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get("affinity").and_then(|affinity| affinity.get(kind)) else { continue };
        let path = path.field(kind);
        let required = path.field("requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            without_selector(term, &required.index(index), found);
        }
        let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
        for (index, item) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            let item_path = preferred.index(index);
            let term = item.get("podAffinityTerm").unwrap_or(&Value::Null);
            without_selector(term, &item_path.field("podAffinityTerm"), found);
        }
    }
}

fn without_selector(object: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    if object.get("labelSelector").is_none_or(Value::is_null) {
        found.push(format!("{}: a null labelSelector results in matching no pod", path.field("labelSelector")));
    }
}

fn annotations(template: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let Some(annotations) = template.pointer("/metadata/annotations").and_then(Value::as_object) else { return };
    let metadata = path.field("metadata");
    let path = metadata.field("annotations");
    for (key, message) in DEPRECATED_ANNOTATIONS.iter().filter(|(key, _)| annotations.contains_key(*key)) {
        found.push(format!("{}: {message}", path.key(key)));
    }
    if annotations.contains_key(SECCOMP) && template.pointer("/spec/securityContext/seccompProfile").is_none() {
        let message = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        found.push(format!("{}: {message}", path.key(SECCOMP)));
    }
}

fn pull_secrets(spec: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    let names: Vec<&str> = list(spec, "imagePullSecrets").iter().map(|secret| text(secret, "name")).collect();
    for (index, name) in names.iter().enumerate() {
        if !seen.insert(name) {
            found.push(format!("{}: duplicate name {name:?}", path.index(index).field("name")));
        }
    }
    for (index, name) in names.iter().enumerate().filter(|(_, name)| name.is_empty()) {
        found.push(format!("{}: invalid empty name {name:?}", path.index(index).field("name")));
    }
}

fn containers(spec: &Value, path: &FieldPath<'_>, found: &mut Vec<String>) {
    let all: Vec<(String, &Value)> = ["initContainers", "containers"]
        .iter()
        .flat_map(|field| {
            let path = path.field(field);
            let items = list(spec, field).iter().enumerate();
            items.map(|(index, container)| (path.index(index).to_string(), container)).collect::<Vec<_>>()
        })
        .collect();
    for (path, container) in &all {
        fractions(container, path, found);
        hidden_variables(container, path, found);
    }
    let (mut numbers, mut names) = (HashMap::new(), HashMap::new());
    let ports = || {
        all.iter().flat_map(|(path, container)| {
            let ports = list(container, "ports").iter().enumerate();
            ports.map(move |(index, port)| (format!("{path}.ports[{index}]"), port))
        })
    };
    for (path, port) in ports() {
        let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or(0);
        let key = (number("containerPort"), text(port, "protocol"));
        let others: &mut Vec<(String, i64, &str)> = numbers.entry(key).or_default();
        let (host_port, host_ip) = (number("hostPort"), text(port, "hostIP"));
        for (other, other_port, other_ip) in others.iter() {
            if (*other_port, *other_ip) == (host_port, host_ip) {
                found.push(format!("{path}: duplicate port definition with {other}"));
            } else if *other_port == 0 || host_port == 0 {
                found.push(format!("{path}: overlapping port definition with {other}"));
            } else if *other_port == host_port && host_ip.is_empty() != other_ip.is_empty() {
                found.push(format!("{path}: dangerously ambiguous port definition with {other}"));
            }
        }
        others.push((path, host_port, host_ip));
    }
    for (path, port) in ports() {
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        match names.get(name) {
            Some(first) => found.push(format!(
                "{path}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}"
            )),
            None => drop(names.insert(name, path)),
        }
    }
}

fn fractions(container: &Value, path: &str, found: &mut Vec<String>) {
    const NANO: i128 = 1_000_000_000;
    for resource in ["memory", "ephemeral-storage"] {
        for kind in ["limits", "requests"] {
            let amount = container.pointer(&format!("/resources/{kind}")).and_then(|amounts| amounts.get(resource));
            let Some(amount) = amount.and_then(Value::as_str) else { continue };
            if quantity::parse(amount).is_ok_and(|nanos| nanos.0 % NANO != 0) {
                let field = format!("{path}.resources.{kind}[{resource}]");
                found.push(format!("{field}: fractional byte value {amount:?} is invalid, must be an integer"));
            }
        }
    }
}

fn hidden_variables(container: &Value, path: &str, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if variable.get("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            found.push(format!(
                "{path}.env[{index}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn service(service: &Value, found: &mut Vec<String>) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = service.get("spec").unwrap_or(&Value::Null);
    if service.pointer("/metadata/annotations").and_then(|annotations| annotations.get(HINTS)).is_some() {
        found.push(format!("annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"));
    }
    let service_type = text(spec, "type");
    let headless = service_type == "ClusterIP" && text(spec, "clusterIP") == "None";
    let external = !list(spec, "externalIPs").is_empty();
    if headless {
        let ignored = [
            ("spec.loadBalancerIP", !text(spec, "loadBalancerIP").is_empty()),
            ("spec.externalIPs", external),
            ("spec.SessionAffinity", text(spec, "sessionAffinity") != "None"),
        ];
        found.extend(
            ignored
                .iter()
                .filter(|(_, set)| *set)
                .map(|(field, _)| format!("{field} is ignored for headless services")),
        );
    }
    if external && !headless && service_type != "ExternalName" {
        found.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    if service_type == "ExternalName" && external {
        found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if service_type != "ExternalName" && !text(spec, "externalName").is_empty() {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        found.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_are_reported() {
        let kind = GroupVersionKind::new("apps", "v1", "Deployment");
        let deployment = json!({"spec": {"template": {
        "metadata": {"annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
        "spec": {
            "nodeSelector": {"beta.kubernetes.io/os": "linux"},
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}]}]}},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
            "imagePullSecrets": [{"name": "a"}, {"name": "a"}],
            "containers": [
                {"name": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}],
                 "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
                 "resources": {"limits": {"memory": "100m"}}},
                {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}],
        }}}});
        insta::assert_debug_snapshot!(warnings(&kind, &deployment, None), @r#"
        [
            "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: node-role.kubernetes.io/master is use \"node-role.kubernetes.io/control-plane\" instead",
            "spec.template.metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the \"priorityClassName\" field instead",
            "spec.template.spec.imagePullSecrets[1].name: duplicate name \"a\"",
            "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
            "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.template.spec.containers[1].ports[0]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
            "spec.template.spec.containers[1].ports[0]: duplicate port name \"http\" with spec.template.spec.containers[0].ports[0], services and probes that select ports by name will use spec.template.spec.containers[0].ports[0]",
            "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod",
        ]
        "#);
        assert_eq!(warnings(&kind, &deployment, Some(&deployment)), Vec::<String>::new());
    }
}
