//! CustomResourceDefinitions that stay while the Service of their conversion webhook is deleted. Pure.
//!
//! Without its webhook such a CRD blocks more than its own kind: the API server can neither list nor delete its custom resources, so the
//! deletion of every namespace of the cluster waits. With the strategy `None` only `apiVersion` changes, and nothing stored is touched.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;
use serde_json::{Value, json};

use crate::pure::{
    crd::is_crd,
    deletion_plan::{DeletionPlan, Unwanted as _},
    member::Member,
};

/// The Services that a deletion removes.
#[derive(Debug, Default)]
pub(crate) struct DeletedServices {
    services: BTreeSet<(String, String)>,
    /// Namespaces, with all Services in them.
    namespaces: BTreeSet<String>,
}

impl DeletedServices {
    /// The Services among the objects that a plan deletes.
    pub(crate) fn of(plan: &DeletionPlan<Member>) -> Self {
        let mut deleted = Self::default();
        for ObjectKey { group, kind, namespace, name, .. } in plan.deleted().map(|member| &member.key) {
            match (group.as_str(), kind.as_str(), namespace) {
                ("", "Service", Some(namespace)) => {
                    deleted.services.insert((namespace.clone(), name.clone()));
                }
                ("", "Namespace", _) => drop(deleted.namespaces.insert(name.clone())),
                _ => {}
            }
        }
        deleted
    }

    /// Whether a CRD calls one of these Services to convert its custom resources.
    pub(crate) fn convert(&self, member: &Member) -> bool {
        let text = |pointer: &str| member.object.pointer(pointer).and_then(Value::as_str);
        if !is_crd(&member.key) || member.is_terminating() || text("/spec/conversion/strategy") != Some("Webhook") {
            return false;
        }
        let service = |field: &str| text(&format!("/spec/conversion/webhook/clientConfig/service/{field}"));
        let (Some(namespace), Some(name)) = (service("namespace"), service("name")) else { return false };
        self.namespaces.contains(namespace) || self.services.contains(&(namespace.to_owned(), name.to_owned()))
    }
}

/// The merge patch after which a CRD converts its custom resources without a webhook.
pub(crate) fn without_webhook() -> Value {
    json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}})
}

#[cfg(test)]
mod tests {
    use kube::api::ApiResource;

    use super::*;

    fn member(group: &str, kind: &str, namespace: Option<&str>, name: &str, spec: Value) -> Member {
        let key = ObjectKey {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        };
        let resource = ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version: key.api_version(),
            kind: kind.into(),
            plural: kind.to_lowercase(),
        };
        Member { key, resource, object: json!({"metadata": {"name": name}, "spec": spec}) }
    }

    fn crd(client: Value) -> Member {
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": client}});
        member("apiextensions.k8s.io", "CustomResourceDefinition", None, "oxen.a.b", json!({"conversion": conversion}))
    }

    #[test]
    fn a_crd_whose_webhook_is_deleted_is_found() {
        let plan = DeletionPlan {
            delete: vec![
                vec![member("", "Service", Some("n"), "hook", json!({}))],
                vec![
                    member("", "Namespace", None, "gone", json!({})),
                    member("", "ConfigMap", Some("n"), "map", json!({})),
                ],
            ],
            ..DeletionPlan::default()
        };
        let deleted = DeletedServices::of(&plan);
        for (client, expected) in [
            (json!({"service": {"namespace": "n", "name": "hook"}}), true),
            (json!({"service": {"namespace": "gone", "name": "any"}}), true),
            (json!({"service": {"namespace": "n", "name": "map"}}), false),
            (json!({"service": {"namespace": "other", "name": "hook"}}), false),
            (json!({"url": "https://hook.example.com"}), false),
        ] {
            assert_eq!(deleted.convert(&crd(client.clone())), expected, "{client}");
        }
        let service = json!({"service": {"namespace": "n", "name": "hook"}});
        let mut other = crd(service.clone());
        other.object["spec"]["conversion"]["strategy"] = json!("None");
        assert!(!deleted.convert(&other));
        let mut other = crd(service.clone());
        other.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!deleted.convert(&other));
        assert!(!DeletedServices::of(&DeletionPlan::default()).convert(&crd(service)));
    }
}
