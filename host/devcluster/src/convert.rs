//! Conversion between the versions of a kind.
//!
//! Custom resources convert by the strategy `None`: only `apiVersion` changes. Two built-in kinds are served twice:
//! Events in the core group and `events.k8s.io`, HorizontalPodAutoscalers in `autoscaling/v1` and `v2`.

use serde_json::{Map, Value, json};

use crate::registry::Resource;

/// An object as stored, in the version in which a resource serves it.
pub fn to_served(resource: &Resource, stored: &Value) -> Value {
    let mut object = convert(stored, &resource.storage_api_version, &resource.kind().api_version());
    set_api_version(&mut object, &resource.kind().api_version());
    object
}

/// An object in the storage version of a resource.
pub fn to_stored(resource: &Resource, served: Value) -> Value {
    if resource.is_storage_version() {
        return served;
    }
    let mut object = convert(&served, &resource.kind().api_version(), &resource.storage_api_version);
    set_api_version(&mut object, &resource.storage_api_version);
    object
}

/// Whether a stored object is also what the resource serves.
pub fn is_identity(resource: &Resource, stored: Option<&str>) -> bool {
    resource.is_storage_version() && stored == Some(resource.storage_api_version.as_str())
}

fn set_api_version(object: &mut Value, api_version: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), api_version.into());
    }
}

fn convert(object: &Value, from: &str, to: &str) -> Value {
    match (from, to) {
        ("v1", "events.k8s.io/v1") => rename(object, EVENT_FIELDS.iter().copied()),
        ("events.k8s.io/v1", "v1") => rename(object, EVENT_FIELDS.iter().map(|(core, grouped)| (*grouped, *core))),
        ("autoscaling/v2", "autoscaling/v1") => autoscaler_to_v1(object),
        ("autoscaling/v1", "autoscaling/v2") => autoscaler_to_v2(object),
        _ => object.clone(),
    }
}

/// Names in the core group and in `events.k8s.io` (`k8s.io/kubernetes/pkg/apis/events/v1/conversion.go`).
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn rename<'a>(object: &Value, names: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let mut converted = object.as_object().cloned().unwrap_or_default();
    for (from, to) in names {
        if let Some(value) = converted.remove(from) {
            converted.insert(to.to_owned(), value);
        }
    }
    Value::Object(converted)
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric.get("type").and_then(Value::as_str) == Some("Resource")
        && metric.pointer("/resource/name").and_then(Value::as_str) == Some("cpu")
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn autoscaler_to_v1(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let metrics = spec.remove("metrics");
        let cpu = metrics
            .as_ref()
            .and_then(Value::as_array)
            .and_then(|all| all.iter().find(|metric| is_cpu_utilization(metric)));
        if let Some(target) = cpu.and_then(|metric| metric.pointer("/resource/target/averageUtilization")) {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), target.clone());
        }
        spec.remove("behavior");
    }
    object
}

fn autoscaler_to_v2(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(target) = spec.remove("targetCPUUtilizationPercentage")
    {
        let metric = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}});
        spec.insert("metrics".to_owned(), Value::Array(vec![metric]));
    }
    object
}

/// Type and metadata of an object, as `PartialObjectMetadata`.
pub fn partial_metadata(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn events_and_autoscalers_survive_the_way_there_and_back() {
        let snapshot = Registry::default().snapshot();
        let cases = [
            (
                ("events.k8s.io", "v1", "events"),
                json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "hello",
                "regarding": {"kind": "Pod"}, "reportingController": "c", "deprecatedCount": 2}),
            ),
            (
                ("autoscaling", "v1", "horizontalpodautoscalers"),
                json!({
                "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}}),
            ),
        ];
        for ((group, version, plural), served) in cases {
            let resource = snapshot.resource(group, version, plural).unwrap();
            let stored = to_stored(resource, served.clone());
            assert_ne!(stored, served);
            assert_eq!(to_served(resource, &stored), served);
        }
    }
}
