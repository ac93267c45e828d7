//! The bundle's other objects: as they are, the namespaced ones in the install namespace.

use serde_json::Value;

use super::{Context, Generated};
use crate::{compatibility::Placement, json::set};

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
            // Nobody can apply an object without an apiVersion, and which one was meant is beyond doubt.
            if other.api_version.is_empty()
                && let Some(listed) = context.compatibility.listed(other)
            {
                set(&mut value, ["apiVersion"], listed.api_version);
            }
            Generated::new(&value, other.place.object.clone())
        })
        .collect()
}
