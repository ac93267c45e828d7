//! What `chandler get` prints of a BundleDeployment: values, notes and objects.

use std::fmt::Write as _;

use chandler_api::BundleDeployment;
use serde_json::{Map, Value};

use super::{error::CommandError, listing::Row, output, text::one_line};

/// Fields of metadata that the API server sets, or that say who owns the object.
const SERVER_FIELDS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
];
/// An annotation with a copy of the object, values of Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Prefixes of labels and annotations that the controller and requests for a reconcile set on a BundleDeployment.
const OF_CONTROLLER: [&str; 2] = ["applyset.kubernetes.io/", "reconcile.chandler.dev/"];
/// In place of a value that is not shown.
const HIDDEN: &str = "(hidden)";

/// An object as a manifest: without status and without the fields that the API server sets. Values of Secrets are hidden.
pub fn manifest(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
        if members.get("kind").is_some_and(|kind| kind == "Secret") {
            for field in ["data", "stringData"] {
                if let Some(Value::Object(values)) = members.get_mut(field) {
                    values.values_mut().for_each(|value| *value = HIDDEN.into());
                }
            }
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
    }
    object
}

/// A BundleDeployment as its author writes it: a manifest without the finalizers, labels and annotations of the controller.
pub fn authored(object: Value) -> Value {
    let mut object = manifest(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("finalizers");
        for field in ["labels", "annotations"] {
            if let Some(Value::Object(entries)) = metadata.get_mut(field) {
                entries.retain(|key, _| !OF_CONTROLLER.iter().any(|prefix| key.starts_with(prefix)));
            }
            if metadata.get(field).is_some_and(|entries| *entries == Value::Object(Map::new())) {
                metadata.remove(field);
            }
        }
    }
    object
}

/// The configuration in the spec.
pub fn values(deployment: &BundleDeployment) -> Map<String, Value> {
    deployment.spec.config.clone().unwrap_or_default()
}

/// Warnings about the bundle and its release, one per line. Empty if there are none.
pub fn notes(deployment: &BundleDeployment) -> Vec<String> {
    let status = deployment.status.clone().unwrap_or_default();
    let of_release = status.release.map(|release| release.warnings).unwrap_or_default();
    let warnings = status.warnings.into_iter().chain(of_release);
    warnings.map(|warning| format!("{}: {}", one_line(&warning.code), one_line(&warning.message))).collect()
}

/// Everything, as text with a heading for each part.
pub fn all(deployment: &BundleDeployment, row: &Row, objects: &[Value]) -> Result<String, CommandError> {
    let mut text = String::new();
    let none = || "-".to_owned();
    for (label, value) in [
        ("NAME", row.name.clone()),
        ("NAMESPACE", row.namespace.clone()),
        ("VERSION", row.installed_version.clone().unwrap_or_else(none)),
        ("PENDING", row.pending_version.clone().unwrap_or_else(none)),
        ("REVISION", row.revision.map_or_else(none, |revision| revision.to_string())),
        ("STATE", row.state_text()),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label}: {}", one_line(&value));
    }
    text.push_str("\nVALUES:\n");
    text.push_str(&output::yaml(&[Value::Object(values(deployment))])?);
    let notes = notes(deployment);
    if !notes.is_empty() {
        text.push_str("\nNOTES:\n");
        for note in notes {
            let _ = writeln!(text, "{note}");
        }
    }
    text.push_str("\nMANIFEST:\n");
    text.push_str(&output::yaml(objects)?);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_has_neither_status_nor_secret_values() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "status": {"x": 1},
            "metadata": {"name": "a", "uid": "1", "resourceVersion": "2", "managedFields": [],
                "annotations": {LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "keep": "me"}},
            "data": {"password": "aHVudGVyMg=="}, "type": "Opaque",
        });
        let shown = manifest(secret);
        assert_eq!(
            shown,
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": "(hidden)"},
                "metadata": {"name": "a", "annotations": {"keep": "me"}},
            })
        );
        assert!(!shown.to_string().contains("aHVudGVyMg"));
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}});
        assert_eq!(manifest(map.clone()), map);
    }

    #[test]
    fn a_deployment_as_its_author_writes_it_has_no_marks_of_the_controller() {
        let deployment = |labels: Value, annotations: Value| {
            json!({"kind": "BundleDeployment", "spec": {"a": 1}, "metadata": {
                "name": "a", "finalizers": ["chandler.dev/teardown"], "labels": labels, "annotations": annotations,
            }})
        };
        let marked = json!({"applyset.kubernetes.io/id": "x", "team": "shop"});
        let requested = json!({"applyset.kubernetes.io/tooling": "x", "reconcile.chandler.dev/requestedAt": "now"});
        assert_eq!(
            authored(deployment(marked, requested)),
            json!({"kind": "BundleDeployment", "spec": {"a": 1}, "metadata": {"name": "a", "labels": {"team": "shop"}}})
        );
    }
}
