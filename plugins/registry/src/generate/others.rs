//! The bundle's other objects: unchanged, the namespaced ones in the install namespace.

use serde_json::Value;

use super::{Context, Generated, Source};
use crate::{bundle::Other, compatibility::Placement, json::set};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    context
        .bundle
        .others
        .iter()
        .map(|other| {
            let mut value = other.value.clone();
            match context.compatibility.placement(other) {
                Placement::Install => set(&mut value, ["metadata", "namespace"], context.namespace),
                Placement::Cluster => {
                    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.remove("namespace");
                    }
                }
                Placement::AsWritten => {}
            }
            // An object without an apiVersion cannot be applied, and the intended one is certain.
            if other.api_version.is_empty()
                && let Some(listed) = context.compatibility.listed(other)
            {
                set(&mut value, ["apiVersion"], listed.api_version);
            }
            if let Some(version) = context.compatibility.current_api_version(other) {
                upgrade(&mut value, version);
            }
            if context.compatibility.sets_subject_namespaces() {
                for index in subjects_without_namespace(other) {
                    if let Some(subject) = value.pointer_mut(&format!("/subjects/{index}")) {
                        set(subject, ["namespace"], context.namespace);
                    }
                }
            }
            let namespace = other.value.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
            let source = Source::Manifest { namespace };
            Generated { source, ..Generated::new(&value, other.place.object.clone()) }
        })
        .collect()
}

/// Changes the API version of an object; the schema is the same.
fn upgrade(value: &mut Value, version: &str) {
    set(value, ["apiVersion"], version);
    // An empty selector matched no pods in v1beta1, and matches all in v1; an absent one matches none in both.
    if version == "policy/v1"
        && let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("selector").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    {
        spec.remove("selector");
    }
}

/// The indices of the ServiceAccounts without a namespace among the subjects of a binding of the bundle.
pub(crate) fn subjects_without_namespace(other: &Other) -> Vec<usize> {
    if !matches!(other.kind.as_str(), "RoleBinding" | "ClusterRoleBinding") {
        return Vec::new();
    }
    let subjects = other.value.get("subjects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |subject: &Value, field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lacks = |subject: &Value| text(subject, "kind") == "ServiceAccount" && text(subject, "namespace").is_empty();
    subjects.iter().enumerate().filter(|(_, subject)| lacks(subject)).map(|(index, _)| index).collect()
}
