//! Objects as in real clusters.

use serde_json::{Value, json};

/// How many namespaces the objects are in.
pub(crate) const NAMESPACES: usize = 20;

/// A namespace's name.
pub(crate) fn namespace(number: usize) -> String {
    format!("bench-{}", number % NAMESPACES)
}

/// One in two is a ConfigMap, one in four a Deployment, one in four a Pod: path of the collection, object.
pub(crate) fn object(number: usize) -> (String, Value) {
    let namespace = namespace(number / 4);
    match number % 4 {
        0 | 1 => (format!("/api/v1/namespaces/{namespace}/configmaps"), config_map(&format!("config-{number}"))),
        2 => (format!("/apis/apps/v1/namespaces/{namespace}/deployments"), deployment(&format!("app-{number}"), 1)),
        _ => (format!("/api/v1/namespaces/{namespace}/pods"), pod(&format!("pod-{number}"))),
    }
}

/// About a kilobyte.
pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels(name)},
        "data": {"application.yaml": "setting: value with some words\n".repeat(30), "log.level": "info"},
    })
}

/// A Deployment of two containers.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": labels(name),
            "annotations": {"example.com/description": "An operator that is installed from a bundle", "example.com/owner": "team"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels(name)}, "spec": pod_spec()},
        },
    })
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels(name)}, "spec": pod_spec()})
}

fn labels(name: &str) -> Value {
    json!({
        "app": name,
        "app.kubernetes.io/name": "bench",
        "app.kubernetes.io/managed-by": "chandler",
        "shard": (name.len() + name.bytes().map(usize::from).sum::<usize>()).rem_euclid(16).to_string(),
    })
}

fn pod_spec() -> Value {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/bench/{name}@sha256:{}", "0123456789abcdef".repeat(4)),
            "args": ["--leader-elect", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081"],
            "env": [
                {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "WATCH_NAMESPACE", "value": ""},
                {"name": "LOG_LEVEL", "value": "info"},
            ],
            "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8081}, "initialDelaySeconds": 15, "periodSeconds": 20},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "initialDelaySeconds": 5, "periodSeconds": 10},
            "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
        })
    };
    json!({
        "serviceAccountName": "default",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container("manager"), container("proxy")],
        "volumes": [{"name": "config", "configMap": {"name": "config"}}],
        "terminationGracePeriodSeconds": 10,
    })
}

/// A CRD with a version and some fields.
pub(crate) fn crd(number: usize) -> Value {
    let plural = format!("benches{number}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.bench{number}.example.com")},
        "spec": {
            "group": format!("bench{number}.example.com"),
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("bench{number}"), "kind": format!("Bench{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    })
}
