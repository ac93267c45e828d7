//! Columns of built-in kinds, as kubectl's users know them (`k8s.io/kubernetes/pkg/printers/internalversion`).

use chandler_devcluster_schema::GroupVersionKind;
use serde_json::Value;

use super::columns::{Column, Source};
use crate::metadata;

pub(super) fn columns(kind: &GroupVersionKind) -> Vec<Column> {
    let text = |name: &str, path: &str| Column::new(name, "string", 0, Source::Path(path.to_owned()));
    let wide = |name: &str, path: &str| Column::new(name, "string", 1, Source::Path(path.to_owned()));
    let number = |name: &str, path: &str| Column::new(name, "integer", 0, Source::Path(path.to_owned()));
    let compute =
        |name: &str, function: fn(&Value) -> Value| Column::new(name, "string", 0, Source::Function(function));
    let wide_compute =
        |name: &str, function: fn(&Value) -> Value| Column::new(name, "string", 1, Source::Function(function));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => vec![
            compute("Ready", pod_ready),
            compute("Status", pod_status),
            Column::new("Restarts", "integer", 0, Source::Function(pod_restarts)),
            wide("IP", ".status.podIP"),
            wide("Node", ".spec.nodeName"),
        ],
        ("", "Namespace") => vec![text("Status", ".status.phase")],
        ("", "Node") => vec![
            compute("Status", node_status),
            compute("Roles", node_roles),
            text("Version", ".status.nodeInfo.kubeletVersion"),
        ],
        ("", "Service") => vec![
            text("Type", ".spec.type"),
            compute("Cluster-IP", |service| or_none(service, "/spec/clusterIP")),
            compute("External-IP", service_external),
            compute("Port(s)", service_ports),
            wide_compute("Selector", |service| selector(service.pointer("/spec/selector"))),
        ],
        ("", "ConfigMap") => vec![Column::new("Data", "integer", 0, Source::Function(data_count))],
        ("", "Secret") => vec![text("Type", ".type"), Column::new("Data", "integer", 0, Source::Function(data_count))],
        ("", "ServiceAccount") => {
            vec![Column::new("Secrets", "integer", 0, Source::Function(|account| count(account, "/secrets").into()))]
        }
        ("", "PersistentVolumeClaim") => vec![
            text("Status", ".status.phase"),
            text("Volume", ".spec.volumeName"),
            text("Capacity", ".status.capacity.storage"),
            text("Access Modes", ".status.accessModes[*]"),
            text("StorageClass", ".spec.storageClassName"),
        ],
        ("", "PersistentVolume") => vec![
            text("Capacity", ".spec.capacity.storage"),
            text("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            text("Status", ".status.phase"),
        ],
        ("", "Event") => vec![
            text("Type", ".type"),
            text("Reason", ".reason"),
            compute("Object", event_object),
            text("Message", ".message"),
        ],
        ("apps", "Deployment") => vec![
            compute("Ready", |object| ready(object, "/status/readyReplicas", "/spec/replicas")),
            Column::new(
                "Up-to-date",
                "integer",
                0,
                Source::Function(|object| integer(object, "/status/updatedReplicas")),
            ),
            Column::new(
                "Available",
                "integer",
                0,
                Source::Function(|object| integer(object, "/status/availableReplicas")),
            ),
            wide("Images", ".spec.template.spec.containers[*].image"),
            wide_compute("Selector", |object| selector(object.pointer("/spec/selector/matchLabels"))),
        ],
        ("apps", "StatefulSet") => {
            vec![compute("Ready", |object| ready(object, "/status/readyReplicas", "/spec/replicas"))]
        }
        ("apps", "ReplicaSet") => vec![
            number("Desired", ".spec.replicas"),
            Column::new("Current", "integer", 0, Source::Function(|object| integer(object, "/status/replicas"))),
            Column::new("Ready", "integer", 0, Source::Function(|object| integer(object, "/status/readyReplicas"))),
        ],
        ("apps", "DaemonSet") => vec![
            Column::new(
                "Desired",
                "integer",
                0,
                Source::Function(|object| integer(object, "/status/desiredNumberScheduled")),
            ),
            Column::new("Ready", "integer", 0, Source::Function(|object| integer(object, "/status/numberReady"))),
            Column::new(
                "Available",
                "integer",
                0,
                Source::Function(|object| integer(object, "/status/numberAvailable")),
            ),
        ],
        ("batch", "Job") => vec![
            compute("Status", job_status),
            compute("Completions", |object| ready(object, "/status/succeeded", "/spec/completions")),
        ],
        ("batch", "CronJob") => vec![text("Schedule", ".spec.schedule"), text("Suspend", ".spec.suspend")],
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            vec![Column::new("Created At", "date", 0, Source::Path(".metadata.creationTimestamp".to_owned()))]
        }
        ("apiregistration.k8s.io", "APIService") => vec![
            compute("Service", |object| match object.pointer("/spec/service") {
                Some(service) => format!("{}/{}", field(service, "namespace"), field(service, "name")).into(),
                None => "Local".into(),
            }),
            text("Available", r#".status.conditions[?(@.type=="Available")].status"#),
        ],
        ("coordination.k8s.io", "Lease") => vec![text("Holder", ".spec.holderIdentity")],
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => {
            vec![text("Created At", ".metadata.creationTimestamp")]
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            vec![compute("Role", |object| {
                format!("{}/{}", at(object, "/roleRef/kind"), at(object, "/roleRef/name")).into()
            })]
        }
        ("networking.k8s.io", "Ingress") => {
            vec![text("Class", ".spec.ingressClassName"), text("Hosts", ".spec.rules[*].host")]
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            vec![number("MinPods", ".spec.minReplicas"), number("MaxPods", ".spec.maxReplicas")]
        }
        ("storage.k8s.io", "StorageClass") => vec![text("Provisioner", ".provisioner")],
        ("policy", "PodDisruptionBudget") => {
            vec![text("Min Available", ".spec.minAvailable"), text("Max Unavailable", ".spec.maxUnavailable")]
        }
        _ => Vec::new(),
    }
}

fn at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Object(fields)) => fields.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

fn integer(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0).into()
}

fn ready(object: &Value, done: &str, wanted: &str) -> Value {
    let number = |pointer: &str, default: i64| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default);
    format!("{}/{}", number(done, 0), number(wanted, 1)).into()
}

fn or_none(object: &Value, pointer: &str) -> Value {
    let text = at(object, pointer);
    if text.is_empty() { "<none>".into() } else { text.into() }
}

fn selector(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let text: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if text.is_empty() { "<none>".into() } else { text.join(",").into() }
}

fn data_count(object: &Value) -> Value {
    (count(object, "/data") + count(object, "/binaryData")).into()
}

fn pod_ready(pod: &Value) -> Value {
    let ready =
        list(pod, "/status/containerStatuses").filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
    format!("{ready}/{}", count(pod, "/spec/containers")).into()
}

fn pod_restarts(pod: &Value) -> Value {
    list(pod, "/status/containerStatuses").filter_map(|status| status.get("restartCount")?.as_i64()).sum::<i64>().into()
}

fn pod_status(pod: &Value) -> Value {
    if metadata::is_deleting(pod) {
        return "Terminating".into();
    }
    let reason = |status: &Value| {
        ["/state/waiting/reason", "/state/terminated/reason"]
            .iter()
            .find_map(|pointer| status.pointer(pointer).cloned())
    };
    let reason = list(pod, "/status/containerStatuses").find_map(reason);
    reason
        .or_else(|| pod.pointer("/status/reason").cloned())
        .or_else(|| pod.pointer("/status/phase").cloned())
        .unwrap_or(Value::Null)
}

fn node_status(node: &Value) -> Value {
    let ready = list(node, "/status/conditions").find(|condition| field(condition, "type") == "Ready");
    match ready.map(|condition| field(condition, "status")) {
        Some("True") => "Ready".into(),
        Some(_) => "NotReady".into(),
        None => "Unknown".into(),
    }
}

fn node_roles(node: &Value) -> Value {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
}

fn service_external(service: &Value) -> Value {
    let addresses: Vec<&str> = list(service, "/status/loadBalancer/ingress")
        .map(|ingress| if field(ingress, "ip").is_empty() { field(ingress, "hostname") } else { field(ingress, "ip") })
        .collect();
    match (addresses.is_empty(), at(service, "/spec/type")) {
        (false, _) => addresses.join(",").into(),
        (true, "LoadBalancer") => "<pending>".into(),
        (true, "ExternalName") => at(service, "/spec/externalName").into(),
        (true, _) => "<none>".into(),
    }
}

fn service_ports(service: &Value) -> Value {
    let port = |port: &Value| {
        let number = |name: &str| port.get(name).and_then(Value::as_i64);
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        let node_port = number("nodePort").map(|node_port| format!(":{node_port}")).unwrap_or_default();
        format!("{}{node_port}/{protocol}", number("port").unwrap_or(0))
    };
    let ports: Vec<String> = list(service, "/spec/ports").map(port).collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
}

fn event_object(event: &Value) -> Value {
    format!("{}/{}", at(event, "/involvedObject/kind").to_lowercase(), at(event, "/involvedObject/name")).into()
}

fn job_status(job: &Value) -> Value {
    let holds = |wanted: &str| {
        list(job, "/status/conditions")
            .any(|condition| field(condition, "type") == wanted && field(condition, "status") == "True")
    };
    ["Complete", "Failed", "Suspended"].into_iter().find(|wanted| holds(wanted)).unwrap_or("Running").into()
}
