//! Fields that an endpoint does not write, regardless of the request.
//!
//! Source: `GetResetFields` of the strategies in `k8s.io/kubernetes/pkg/registry`. Such a field keeps the stored value, and the write makes
//! no manager its owner.

use serde_json::Value;

use crate::{metadata, registry::Resource};

/// Paths of fields.
pub type Fields = &'static [&'static [&'static str]];

const STATUS: Fields = &[&["status"]];
const SPEC: Fields = &[&["spec"]];
const SPEC_AND_METADATA: Fields = &[&["spec"], &["metadata"]];

/// Kinds whose `status` endpoint writes no metadata either; the others keep the `spec` alone.
const STATUS_WITHOUT_METADATA: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "ResourceClaim"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// The fields that a write to an endpoint leaves as they are.
pub fn fields(resource: &Resource, subresource: Option<&str>) -> Fields {
    let kind = (resource.kind().group.as_str(), resource.kind().kind.as_str());
    match subresource {
        Some("status") if resource.custom.is_some() || STATUS_WITHOUT_METADATA.contains(&kind) => SPEC_AND_METADATA,
        Some("status") => match kind {
            ("apps", "Deployment") => &[&["spec"], &["metadata", "labels"]],
            ("", "Pod") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            ("certificates.k8s.io", _) => &[&["spec"], &["status", "conditions"]],
            _ => SPEC,
        },
        Some("approval") => &[&["spec"], &["status", "certificate"]],
        Some("finalize") => STATUS,
        None if kind.0 == "certificates.k8s.io" => &[&["spec"], &["status"]],
        None if resource.resource_type.status => STATUS,
        _ => &[],
    }
}

/// Resets fields to the values of the stored object.
pub fn restore(object: &mut Value, old: &Value, fields: Fields) {
    for path in fields {
        match path {
            [field] => metadata::set(metadata::as_map(object), field, old.get(field).cloned()),
            [parent, field] => {
                let value = old.get(parent).and_then(|parent| parent.get(field)).cloned();
                metadata::set(metadata::child(metadata::as_map(object), parent), field, value);
            }
            _ => {}
        }
    }
}

/// Takes fields out of a declared object, so that applying it does not touch them. The identity in `metadata` stays.
pub fn strip(object: &mut Value, fields: Fields) {
    for path in fields {
        match path {
            ["metadata"] => metadata::of(object).retain(|field, _| {
                matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion" | "managedFields")
            }),
            [field] => drop(metadata::as_map(object).remove(*field)),
            [parent, field] => {
                if let Some(parent) = object.get_mut(parent).and_then(Value::as_object_mut) {
                    parent.remove(*field);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn endpoints_keep_fields_of_other_endpoints() {
        let snapshot = Registry::default().snapshot();
        let old = json!({"metadata": {"labels": {"a": "old"}, "annotations": {"a": "old"}}, "spec": 1, "status": 1});
        let new = json!({"metadata": {"labels": {"a": "new"}, "annotations": {"a": "new"}}, "spec": 2, "status": 2});
        let cases = [
            ("apps", "deployments", None, json!([2, 1, "new", "new"])),
            ("apps", "deployments", Some("status"), json!([1, 2, "old", "new"])),
            ("apps", "daemonsets", Some("status"), json!([1, 2, "new", "new"])),
            ("apiextensions.k8s.io", "customresourcedefinitions", Some("status"), json!([1, 2, "old", "old"])),
            ("", "namespaces", Some("finalize"), json!([2, 1, "new", "new"])),
            ("", "configmaps", None, json!([2, 2, "new", "new"])),
        ];
        for (group, plural, subresource, expected) in cases {
            let resource = snapshot.resource(group, "v1", plural).unwrap();
            let mut object = new.clone();
            restore(&mut object, &old, fields(resource, subresource));
            let found = json!([
                object["spec"],
                object["status"],
                object["metadata"]["labels"]["a"],
                object["metadata"]["annotations"]["a"]
            ]);
            assert_eq!(found, expected, "{group} {plural} {subresource:?}");
        }
    }
}
