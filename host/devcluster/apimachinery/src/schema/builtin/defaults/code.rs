//! Defaults that depend on other fields.

use serde_json::{Map, Value, json};

use super::rows::{
    self,
    Default::{Bool, Int, Object, Text},
};

fn is(value: &Value, pointer: &str, expected: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_str) == Some(expected)
}

fn absent(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).is_none_or(Value::is_null)
}

fn set(object: &mut Value, parent: &str, name: &str, value: Value) {
    if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.insert(name.to_owned(), value);
    }
}

/// Rolling updates, and how many completions a Job has.
pub(super) fn controller(kind: &str, object: &mut Value) {
    match kind {
        "Deployment" if is(object, "/spec/strategy/type", "RollingUpdate") => {
            rows::fill(object, &[("spec.strategy.rollingUpdate", Object)]);
            let quarter = Text("25%");
            rows::fill(
                object,
                &[
                    ("spec.strategy.rollingUpdate.maxSurge", quarter),
                    ("spec.strategy.rollingUpdate.maxUnavailable", quarter),
                ],
            );
        }
        "StatefulSet" if is(object, "/spec/updateStrategy/type", "RollingUpdate") => {
            rows::fill(
                object,
                &[
                    ("spec.updateStrategy.rollingUpdate", Object),
                    ("spec.updateStrategy.rollingUpdate.partition", Int(0)),
                ],
            );
        }
        "DaemonSet" if is(object, "/spec/updateStrategy/type", "RollingUpdate") => {
            let path = "spec.updateStrategy.rollingUpdate";
            rows::fill(object, &[(path, Object)]);
            rows::fill(
                object,
                &[
                    ("spec.updateStrategy.rollingUpdate.maxUnavailable", Int(1)),
                    ("spec.updateStrategy.rollingUpdate.maxSurge", Int(0)),
                ],
            );
        }
        "ReplicationController" => replication_controller(object),
        "Job" => {
            // One run to completion, unless the Job specifies otherwise; a Job with parallelism alone is a work queue.
            if absent(object, "/spec/completions") && object.pointer("/spec/parallelism") == Some(&Value::from(1)) {
                rows::fill(object, &[("spec.completions", Int(1))]);
            }
            let policy = if absent(object, "/spec/podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
            rows::fill(object, &[("spec.podReplacementPolicy", Text(policy))]);
        }
        _ => {}
    }
}

fn replication_controller(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|_| absent(object, "/spec/selector")) {
        set(object, "/spec", "selector", labels);
    }
}

/// Traffic policies, target ports.
pub(super) fn service(object: &mut Value) {
    let service_type = object.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if is(object, "/spec/sessionAffinity", "ClientIP") {
        let config = "spec.sessionAffinityConfig";
        rows::fill(
            object,
            &[
                (config, Object),
                ("spec.sessionAffinityConfig.clientIP", Object),
                ("spec.sessionAffinityConfig.clientIP.timeoutSeconds", Int(10_800)),
            ],
        );
    }
    if service_type != "ExternalName" {
        rows::fill(object, &[("spec.internalTrafficPolicy", Text("Cluster"))]);
    }
    if matches!(service_type.as_str(), "NodePort" | "LoadBalancer") {
        rows::fill(object, &[("spec.externalTrafficPolicy", Text("Cluster"))]);
    }
    if service_type == "LoadBalancer" {
        rows::fill(object, &[("spec.allocateLoadBalancerNodePorts", Bool(true))]);
    }
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let (Some(number), Some(port)) = (port.get("port").cloned(), port.as_object_mut()) {
            let target = port.entry("targetPort").or_insert(Value::Null);
            if target.is_null() || target == 0 || target == "" {
                *target = number;
            }
        }
    }
}

/// The label with the name of a Namespace.
pub(super) fn namespace(object: &mut Value) {
    if let Some(name) = object.pointer("/metadata/name").cloned().filter(Value::is_string) {
        rows::fill(object, &[("metadata.labels", Object)]);
        set(object, "/metadata/labels", "kubernetes.io/metadata.name", name);
    }
}

/// The groups of the subjects of a binding.
pub(super) fn subjects(object: &mut Value) {
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            rows::fill(subject, &[("apiGroup", Text("rbac.authorization.k8s.io"))]);
        }
    }
}

/// Which directions a policy is about.
pub(super) fn network_policy(object: &mut Value) {
    if absent(object, "/spec/policyTypes") {
        let egress = object.pointer("/spec/egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        set(object, "/spec", "policyTypes", types);
    }
}

/// An autoscaler without metrics looks at the processor.
pub(super) fn autoscaler(object: &mut Value) {
    if object.pointer("/spec/metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        set(object, "/spec", "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    let Some(behavior) = object.pointer_mut("/spec/behavior").and_then(Value::as_object_mut) else { return };
    let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]});
    let down = json!({"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]});
    for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        let rules = behavior.entry(direction).or_insert(Value::Null);
        if rules.is_null() {
            *rules = defaults;
        } else if let (Some(rules), Value::Object(defaults)) = (rules.as_object_mut(), defaults) {
            for (field, value) in defaults {
                rules.entry(field).or_insert(value);
            }
        }
    }
}

/// Names derived from the kind.
pub(super) fn definition(object: &mut Value) {
    let Some(kind) = object.pointer("/spec/names/kind").and_then(Value::as_str).map(str::to_owned) else { return };
    let Some(names) = object.pointer_mut("/spec/names").and_then(Value::as_object_mut) else { return };
    let derive = |names: &mut Map<String, Value>, field: &str, derived: String| {
        if names.get(field).is_none_or(|name| name.is_null() || name == "") {
            names.insert(field.to_owned(), derived.into());
        }
    };
    derive(names, "singular", kind.to_lowercase());
    derive(names, "listKind", format!("{kind}List"));
}

/// The number of devices that a claim requests: one by default.
pub(super) fn device_requests(requests: Option<&mut Value>) {
    for request in requests.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            device_request(exactly);
        }
        let alternatives = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(device_request);
    }
}

fn device_request(request: &mut Value) {
    const EXACT: &str = "ExactCount";
    let Some(request) = request.as_object_mut() else { return };
    let mode = request.entry("allocationMode").or_insert_with(|| "".into());
    if mode == "" {
        *mode = EXACT.into();
    }
    if mode == EXACT && request.get("count").and_then(Value::as_i64).unwrap_or(0) == 0 {
        request.insert("count".to_owned(), 1.into());
    }
}
