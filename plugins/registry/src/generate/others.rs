//! The bundle's other objects: as they are, the namespaced ones in the install namespace.

use super::{Context, Generated};
use crate::{json::set, kinds};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    context
        .bundle
        .others
        .iter()
        .map(|other| {
            let mut value = other.value.clone();
            if let Some(supported) = kinds::supported(&other.kind) {
                if context.compatibility.is_namespaced(&supported) {
                    // Whatever the object said: bundles are written without knowing where they will be installed.
                    set(&mut value, ["metadata", "namespace"], context.namespace);
                }
                // Nobody can apply an object without it, and which one was meant is beyond doubt.
                if other.api_version.is_empty() {
                    set(&mut value, ["apiVersion"], supported.api_version);
                }
            }
            Generated::new(&value, other.place.clone())
        })
        .collect()
}
