//! The namespaces that the controller creates for packages, and whether one may go with its PlatformOperator.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// On a namespace that the controller created: the package that it was created for.
pub const PACKAGE_LABEL: &str = "platform.chandler.dev/package";

/// Whether the controller created a namespace for a package.
pub fn is_made_for(labels: Option<&BTreeMap<String, String>>, managed_by: (&str, &str), package: &str) -> bool {
    let has = |key: &str, value: &str| labels.and_then(|labels| labels.get(key)).is_some_and(|it| it == value);
    has(managed_by.0, managed_by.1) && has(PACKAGE_LABEL, package)
}

/// Whether an object means that a namespace is in use. Kubernetes and OpenShift put some objects into each namespace, and some only record
/// what happened there. Objects of a workload are deleted with it, so only the workload counts.
pub fn is_content(group: &str, kind: &str, metadata: &ObjectMeta) -> bool {
    let has_owner = metadata.owner_references.as_ref().is_some_and(|it| !it.is_empty());
    let is_of_workload = matches!(
        (group, kind),
        ("", "Pod")
            | ("apps", "ReplicaSet" | "ControllerRevision")
            | ("batch", "Job")
            | ("discovery.k8s.io", "EndpointSlice")
    );
    if metadata.deletion_timestamp.is_some() || is_of_workload && has_owner {
        return false;
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    match (group, kind) {
        // The last two groups have what an API server computes, in every namespace.
        ("", "Event" | "Endpoints")
        | ("events.k8s.io", "Event")
        | ("coordination.k8s.io", "Lease")
        | ("metrics.k8s.io" | "packages.operators.coreos.com", _) => false,
        ("", "ConfigMap") => !matches!(name, "kube-root-ca.crt" | "openshift-service-ca.crt"),
        ("", "ServiceAccount") => !matches!(name, "default" | "builder" | "deployer"),
        ("", "Secret") => !has_token(metadata),
        ("rbac.authorization.k8s.io" | "authorization.openshift.io", "RoleBinding") => {
            !matches!(name, "system:image-pullers" | "system:image-builders" | "system:deployers")
        }
        _ => true,
    }
}

/// Whether a Secret has the token of a ServiceAccount that every namespace has.
fn has_token(metadata: &ObjectMeta) -> bool {
    let accounts = ["kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account"];
    let annotation = |name: &&str| metadata.annotations.as_ref()?.get(*name);
    accounts.iter().filter_map(annotation).any(|account| matches!(account.as_str(), "default" | "builder" | "deployer"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_every_namespace_has_does_not_count() {
        let token = json!({"annotations": {"kubernetes.io/service-account.name": "default"}});
        let owned =
            json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1"}]});
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for (group, kind, name, more, expected) in [
            ("", "ConfigMap", "kube-root-ca.crt", json!({}), false),
            ("", "ConfigMap", "mine", json!({}), true),
            ("", "ServiceAccount", "default", json!({}), false),
            ("", "ServiceAccount", "mine", json!({}), true),
            ("", "Secret", "default-token", token, false),
            ("", "Secret", "mine", json!({"annotations": {"kubernetes.io/service-account.name": "mine"}}), true),
            ("", "Pod", "mine", json!({}), true),
            ("", "Pod", "of-a-replica-set", owned.clone(), false),
            ("", "ConfigMap", "of-something", owned, true),
            ("", "Service", "terminating", deleted, false),
            ("", "Event", "mine.1", json!({}), false),
            ("coordination.k8s.io", "Lease", "leader", json!({}), false),
            ("rbac.authorization.k8s.io", "RoleBinding", "system:deployers", json!({}), false),
            ("example.com", "Lease", "flat", json!({}), true),
        ] {
            let mut metadata: Value = more;
            metadata["name"] = json!(name);
            let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
            assert_eq!(is_content(group, kind, &metadata), expected, "{kind} {name}");
        }
    }

    #[test]
    fn a_namespace_is_known_by_both_labels() {
        let managed = ("app.kubernetes.io/managed-by", "chandler");
        let labels = |package: &str| {
            BTreeMap::from([
                (managed.0.to_owned(), managed.1.to_owned()),
                (PACKAGE_LABEL.to_owned(), package.to_owned()),
            ])
        };
        assert!(is_made_for(Some(&labels("app")), managed, "app"));
        assert!(!is_made_for(Some(&labels("app")), managed, "other"));
        assert!(!is_made_for(Some(&labels("app")), (managed.0, "helm"), "app"));
        assert!(!is_made_for(None, managed, "app"));
    }
}
