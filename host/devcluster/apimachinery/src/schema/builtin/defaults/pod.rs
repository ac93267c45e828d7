//! Defaults of Pods and pod templates.

use serde_json::{Map, Value};

use super::rows::{
    self,
    Default::{self, Bool, Int, Object, Text},
};

const SPEC: &[(&str, Default)] = &[
    ("restartPolicy", Text("Always")),
    ("terminationGracePeriodSeconds", Int(30)),
    ("dnsPolicy", Text("ClusterFirst")),
    ("securityContext", Object),
    ("schedulerName", Text("default-scheduler")),
    ("volumes[].secret.defaultMode", Int(0o644)),
    ("volumes[].configMap.defaultMode", Int(0o644)),
    ("volumes[].projected.defaultMode", Int(0o644)),
    ("volumes[].projected.sources[].serviceAccountToken.expirationSeconds", Int(3600)),
    ("volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    ("volumes[].downwardAPI.defaultMode", Int(0o644)),
    ("volumes[].downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    ("volumes[].hostPath.type", Text("")),
    ("volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", Text("Filesystem")),
];

const CONTAINER: &[(&str, Default)] = &[
    ("terminationMessagePath", Text("/dev/termination-log")),
    ("terminationMessagePolicy", Text("File")),
    ("resources", Object),
    ("ports[].protocol", Text("TCP")),
    ("env[].valueFrom.fieldRef.apiVersion", Text("v1")),
    ("lifecycle.postStart.httpGet.path", Text("/")),
    ("lifecycle.postStart.httpGet.scheme", Text("HTTP")),
    ("lifecycle.preStop.httpGet.path", Text("/")),
    ("lifecycle.preStop.httpGet.scheme", Text("HTTP")),
];

const PROBE: &[(&str, Default)] = &[
    ("timeoutSeconds", Int(1)),
    ("periodSeconds", Int(10)),
    ("successThreshold", Int(1)),
    ("failureThreshold", Int(3)),
    ("httpGet.path", Text("/")),
    ("httpGet.scheme", Text("HTTP")),
    ("grpc.service", Text("")),
];

/// Fills in the defaults of a Pod.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    self::spec(spec);
    rows::fill(spec, &[("enableServiceLinks", Bool(true))]);
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            requests_from_limits(container);
        }
    }
}

/// Fills in the defaults of a pod template.
pub(super) fn template(template: Option<&mut Value>) {
    if let Some(spec) = template.and_then(|template| template.get_mut("spec")) {
        self::spec(spec);
    }
}

fn spec(spec: &mut Value) {
    rows::fill(spec, SPEC);
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) = volume.as_object_mut()
            && volume.keys().all(|key| key == "name")
        {
            volume.insert("emptyDir".to_owned(), Value::Object(Map::new()));
        }
    }
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            self::container(container, host_network);
        }
    }
    // The deprecated field mirrors its successor.
    if let Some(spec) = spec.as_object_mut() {
        match (spec.get("serviceAccountName").cloned(), spec.get("serviceAccount").cloned()) {
            (Some(name), _) => drop(spec.insert("serviceAccount".to_owned(), name)),
            (None, Some(name)) => drop(spec.insert("serviceAccountName".to_owned(), name)),
            (None, None) => {}
        }
    }
}

fn container(container: &mut Value, host_network: bool) {
    rows::fill(container, CONTAINER);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            rows::fill(probe, PROBE);
        }
    }
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    rows::fill(container, &[("imagePullPolicy", Text(policy))]);
    if host_network {
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if let (Some(number), Some(port)) = (port.get("containerPort").cloned(), port.as_object_mut()) {
                port.entry("hostPort").or_insert(number);
            }
        }
    }
}

/// Whether an image reference means the newest image: no digest, and the tag `latest` or none.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned() else { return };
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let requests = resources.entry("requests").or_insert_with(|| Value::Object(Map::new()));
    if let Some(requests) = requests.as_object_mut() {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}
