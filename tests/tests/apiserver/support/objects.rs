//! Objects and CRDs to work with.

use serde_json::{Value, json};

use super::Http;

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().expect("a resource version")
}

/// The names of a list's items.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("items").iter().map(name).collect()
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Adds labels to an object.
pub(crate) fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

pub(crate) fn pod_template(name: &str, containers: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
    })
}

pub(crate) fn ingress(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    })
}

pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [
                    {"name": "main", "image": "registry.example.com/web:1", "ports": [{"containerPort": 80}]},
                ]},
            },
        },
    })
}

/// A CRD of kind `Widget`, version `v1`, with a status subresource and this schema.
pub(crate) fn crd(group: &str, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// The CRD that most cases share, with every type of list and map, defaults, limits, rules, a scale subresource and columns.
pub(crate) fn widgets(group: &str) -> Value {
    let text = || json!({"type": "string"});
    let part = |key: &[&str]| {
        json!({"type": "object", "required": key, "properties": {
            "name": text(), "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
            "value": text()}})
    };
    let conditions = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "properties": {"type": text(), "status": text()}}});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100, "default": 3},
        "replicas": {"type": "integer"},
        "color": text(),
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text()},
        "steps": {"type": "array", "items": text()},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": part(&["name"])},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"], "items": part(&["port"])},
        "limits": {"type": "object", "additionalProperties": text()},
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text()},
        "nested": {"type": "object", "properties": {"a": text(), "b": text()}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text(), "b": text()}},
    }});
    let status = json!({"type": "object", "properties": {
        "phase": text(), "replicas": {"type": "integer"}, "selector": text(), "conditions": conditions}});
    let mut crd = crd(group, json!({"type": "object", "properties": {"spec": spec, "status": status}}));
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    crd["spec"]["names"]["categories"] = json!(["conformance"]);
    let version = &mut crd["spec"]["versions"][0];
    version["additionalPrinterColumns"] = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    ]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    version["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"});
    crd
}

pub(crate) fn widget(group: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Whether a condition of this type is `True`.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

/// Creates a CRD, waits until each of its versions is served, and returns it.
pub(crate) async fn establish(http: &Http, crd: &Value) -> Value {
    http.post(CRDS, crd).await.is(201);
    until_served(http, crd).await
}

/// Waits until each version of a CRD that exists is served.
pub(crate) async fn until_served(http: &Http, crd: &Value) -> Value {
    let path = format!("{CRDS}/{}", name(crd));
    let established = http.until(&path, "established", |answer| has_condition(&answer.body, "Established")).await;
    let spec = &crd["spec"];
    for version in spec["versions"].as_array().expect("versions") {
        if version["served"] == true {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let collection =
                format!("/apis/{}/{}/{}", text(&spec["group"]), text(&version["name"]), text(&spec["names"]["plural"]));
            http.until(&collection, "served", |answer| answer.status == 200).await;
        }
    }
    established.body
}

/// A reference to an owner.
pub(crate) fn owner(object: &Value) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"]})
}

/// An entry of `metadata.managedFields` by manager, operation and subresource.
pub(crate) fn entry<'a>(object: &'a Value, manager: &str, operation: &str, subresource: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == operation
            && entry["subresource"].as_str().unwrap_or_default() == subresource
    })
}
