//! The owner as a watch delivered it, so that a rollout need not read it. Pure.

use std::cmp::Ordering;

use chandler_core::resource_version;
use kube::{Resource, ResourceExt as _};
use serde_json::{Map, Value, json};

use crate::pure::live;

/// The prefix of the labels and annotations that a rollout writes to its owner.
pub const PARENT_MARKS: &str = "applyset.kubernetes.io/";

/// What a rollout uses of its owner: identity, version, deletion, finalizers, and the marks of its ApplySet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent(Value);

impl Parent {
    /// The parent that this object is.
    pub fn of(object: &impl Resource) -> Self {
        let metadata = object.meta();
        let marks = |all: &std::collections::BTreeMap<String, String>| -> Map<String, Value> {
            let marks = all.iter().filter(|(name, _)| name.starts_with(PARENT_MARKS));
            marks.map(|(name, value)| (name.clone(), json!(value))).collect()
        };
        Self(json!({"metadata": {
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "deletionTimestamp": metadata.deletion_timestamp,
            "finalizers": metadata.finalizers,
            "labels": marks(object.labels()),
            "annotations": marks(object.annotations()),
        }}))
    }

    /// The parent in an object as the API server returned it.
    pub(crate) fn read(object: &Value) -> Self {
        let copy = |name: &str| object.pointer(&format!("/metadata/{name}")).cloned().unwrap_or_default();
        let marks = |name: &str| {
            let mut all = copy(name);
            if let Some(all) = all.as_object_mut() {
                all.retain(|name, _| name.starts_with(PARENT_MARKS));
            }
            all
        };
        Self(json!({"metadata": {
            "name": copy("name"),
            "uid": copy("uid"),
            "resourceVersion": copy("resourceVersion"),
            "deletionTimestamp": copy("deletionTimestamp"),
            "finalizers": copy("finalizers"),
            "labels": marks("labels"),
            "annotations": marks("annotations"),
        }}))
    }

    /// The object without everything else.
    pub(crate) fn object(&self) -> &Value {
        &self.0
    }

    pub(crate) fn uid(&self) -> &str {
        live::uid(&self.0)
    }

    /// Which of two states of one object is newer. None if their versions cannot be compared.
    pub(crate) fn compare_versions(&self, other: &Self) -> Option<Ordering> {
        resource_version::compare(self.version(), other.version())
    }

    pub(crate) fn version(&self) -> &str {
        live::resource_version(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;

    use super::*;

    #[test]
    fn only_what_a_rollout_uses_is_kept() {
        let object = json!({
            "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "7", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["f"],
                "labels": {"applyset.kubernetes.io/id": "i", "other": "x"},
                "annotations": {"applyset.kubernetes.io/tooling": "t", "other": "x"},
            },
            "spec": {},
        });
        let typed: Namespace = serde_json::from_value(object.clone()).unwrap();
        let parent = Parent::of(&typed);
        assert_eq!(parent, Parent::read(&object));
        assert_eq!((parent.uid(), parent.version()), ("u", "7"));
        assert!(live::is_terminating(parent.object()));
        assert_eq!(parent.object()["metadata"]["labels"], json!({"applyset.kubernetes.io/id": "i"}));
        assert_eq!(parent.object()["metadata"]["annotations"], json!({"applyset.kubernetes.io/tooling": "t"}));
        assert!(!live::is_terminating(Parent::of(&Namespace::default()).object()));
    }
}
