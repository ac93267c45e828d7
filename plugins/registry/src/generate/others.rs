//! The bundle's other objects: as they are, the namespaced ones in the install namespace.

use serde_json::{Value, json};

use super::{Context, Generated};
use crate::kinds;

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    context
        .bundle
        .others
        .iter()
        .map(|other| {
            let mut value = other.value.clone();
            if let Some(supported) = kinds::supported(&other.kind) {
                if context.compatibility.is_namespaced(&supported) {
                    set_namespace(&mut value, context.namespace);
                }
                // Nobody can apply an object without it, and which one was meant is beyond doubt.
                if other.api_version.is_empty() {
                    value["apiVersion"] = json!(supported.api_version);
                }
            }
            Generated::new(&value, other.place.clone())
        })
        .collect()
}

/// Whatever the object said: bundles are written without knowing where they will be installed.
fn set_namespace(object: &mut Value, namespace: &str) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata["namespace"] = json!(namespace);
}
