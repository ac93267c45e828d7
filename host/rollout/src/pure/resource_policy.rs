//! Objects that their own annotation keeps in the cluster when a release no longer has them, or when their owner is deleted. Pure.
//!
//! The annotation is Helm's: charts have it on CRDs, PersistentVolumeClaims and Secrets whose deletion would delete data. It counts on the
//! object in the cluster, of every format, so that an administrator can also add it to an object.

use std::collections::BTreeSet;

use chandler_core::{ObjectKey, is_custom_group};
use serde_json::Value;

use crate::pure::{
    crd::is_crd,
    deletion_plan::Unwanted,
    live,
    policy::{CrdPolicy, Deletion},
};

/// The annotation of Helm that keeps an object, if its value is [`KEEP`].
pub(crate) const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// The value of [`RESOURCE_POLICY`]. Helm ignores case and space around it.
const KEEP: &str = "keep";

/// The API groups whose objects are always deleted: they grant permissions, or send requests to a Service that the owner deletes. A bundle
/// must not leave them behind.
const NEVER_KEPT: [&str; 3] = ["admissionregistration.k8s.io", "apiregistration.k8s.io", "rbac.authorization.k8s.io"];

/// Whether an object as the cluster has it asks to be kept.
pub(crate) fn asks_to_stay(key: &ObjectKey, object: &Value) -> bool {
    let policy = live::annotation(object, RESOURCE_POLICY);
    !NEVER_KEPT.contains(&key.group.as_str()) && policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case(KEEP))
}

/// Objects that are unwanted.
pub(crate) struct Split<T> {
    /// They are kept.
    pub(crate) kept: Vec<T>,
    pub(crate) rest: Vec<T>,
}

/// Splits objects into those that are kept, and the rest. Objects that are being deleted are not kept.
///
/// A Namespace with a kept object is kept, and so is a CRD of the API group of a kept custom resource: with them, the object would be deleted.
pub(crate) fn split<T: Unwanted>(deletion: Deletion, objects: Vec<T>) -> Split<T> {
    if deletion.delete_kept {
        return Split { kept: Vec::new(), rest: objects };
    }
    let is_doomed = |object: &T| object.is_terminating() || is_crd(object.key()) && deletion.crds == CrdPolicy::Delete;
    let asking = objects.iter().filter(|object| object.asks_to_stay() && !is_doomed(object));
    let (mut namespaces, mut groups) = (BTreeSet::new(), BTreeSet::new());
    for object in asking {
        let ObjectKey { group, namespace, .. } = object.key();
        namespaces.extend(namespace.clone());
        groups.extend(is_custom_group(group).then(|| group.clone()));
    }
    let is_needed = |key: &ObjectKey| match key.name.split_once('.') {
        Some((_, group)) if is_crd(key) => groups.contains(group),
        _ => key.is_namespace() && namespaces.contains(&key.name),
    };
    let is_kept = |object: &T| !is_doomed(object) && (object.asks_to_stay() || is_needed(object.key()));
    let (kept, rest) = objects.into_iter().partition(is_kept);
    Split { kept, rest }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::{desired::tests::desired, member::Member};

    fn member(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, policy: Option<&str>) -> Member {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(policy) = policy {
            object["metadata"]["annotations"] = json!({RESOURCE_POLICY: policy});
        }
        let desired = desired(&object, namespace.is_some());
        Member { key: desired.key, resource: desired.resource, object }
    }

    fn crd(name: &str, policy: Option<&str>) -> Member {
        member("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name, policy)
    }

    fn kept(deletion: Deletion, objects: Vec<Member>) -> Vec<String> {
        split(deletion, objects).kept.into_iter().map(|object| object.key.name).collect()
    }

    #[test]
    fn only_the_value_of_helm_keeps_an_object() {
        for (policy, expected) in [("keep", true), (" Keep ", true), ("delete", false), ("", false)] {
            let claim = member("v1", "PersistentVolumeClaim", Some("a"), "data", Some(policy));
            assert_eq!(claim.asks_to_stay(), expected, "{policy}");
        }
        assert!(!member("v1", "Secret", Some("a"), "data", None).asks_to_stay());
    }

    #[test]
    fn permissions_and_webhooks_are_never_kept() {
        for (api_version, kind) in [
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            ("apiregistration.k8s.io/v1", "APIService"),
        ] {
            assert!(!member(api_version, kind, None, "x", Some("keep")).asks_to_stay(), "{kind}");
        }
    }

    #[test]
    fn the_policy_of_the_owner_decides() {
        let objects =
            || vec![crd("oxen.example.com", Some("keep")), member("v1", "Secret", Some("a"), "password", Some("keep"))];
        let of = |delete_kept, crds| kept(Deletion { delete_kept, crds, ..Deletion::default() }, objects());
        assert_eq!(of(false, CrdPolicy::WhileUnused), ["oxen.example.com", "password"]);
        assert_eq!(of(false, CrdPolicy::Delete), ["password"]);
        assert!(of(true, CrdPolicy::Keep).is_empty());
    }

    #[test]
    fn what_a_kept_object_needs_is_kept() {
        let objects = vec![
            member("v1", "Namespace", None, "a", None),
            member("v1", "Namespace", None, "b", None),
            member("v1", "PersistentVolumeClaim", Some("a"), "data", Some("keep")),
            member("v1", "ConfigMap", Some("a"), "settings", None),
            member("example.com/v1", "Ox", Some("a"), "x", Some("keep")),
            crd("oxen.example.com", None),
            crd("cows.example.org", None),
        ];
        assert_eq!(kept(Deletion::default(), objects), ["a", "data", "x", "oxen.example.com"]);
    }

    #[test]
    fn an_object_that_is_being_deleted_keeps_nothing() {
        let mut claim = member("v1", "PersistentVolumeClaim", Some("a"), "data", Some("keep"));
        claim.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let namespace = member("v1", "Namespace", None, "a", None);
        assert!(kept(Deletion::default(), vec![claim, namespace]).is_empty());
    }
}
