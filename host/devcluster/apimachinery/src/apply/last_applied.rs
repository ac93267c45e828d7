//! kubectl's migration from client-side to server-side apply.
//!
//! `kubectl apply` keeps what it applied in an annotation and owns its fields as an updater. The first
//! `kubectl apply --server-side` finds those fields owned by another manager; kube-apiserver lets it take over the fields that the
//! annotation names.

use serde_json::Value;

use crate::{
    apply::{conflict::Conflict, field_set::display_path, managers::without_managed_fields, typed},
    schema::Schema,
};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const POINTER: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// Longest annotation that is kept up to date; all annotations together may have 256 KiB.
const LONGEST: usize = 256 * 1024;

/// Whether a manager is kubectl's server-side apply with its default name.
pub(crate) fn is_kubectl(manager: &str) -> bool {
    manager == "kubectl"
}

/// Conflicts about fields that client-side apply did not set.
pub(crate) fn remaining_conflicts(schema: &Schema, live: &Value, conflicts: &[Conflict]) -> Vec<Conflict> {
    let last = live.pointer(POINTER).and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let allowed: Vec<String> = last
        .and_then(|last| typed::field_set(schema, &last).ok())
        .map(|set| set.paths().iter().map(|path| display_path(path)).collect())
        .unwrap_or_default();
    conflicts.iter().filter(|conflict| !allowed.contains(&conflict.field)).cloned().collect()
}

/// Keeps the annotation in step where there is one, so that a later client-side apply knows what was applied.
pub(crate) fn refresh(live: &Value, applied: &Value, object: &mut Value) {
    if live.pointer(POINTER).is_none() {
        return;
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    let mut applied = without_managed_fields(applied);
    if let Some(own) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(ANNOTATION);
    }
    let text = applied.to_string();
    if text.len() <= LONGEST {
        annotations.insert(ANNOTATION.to_owned(), Value::from(text + "\n"));
    }
}
