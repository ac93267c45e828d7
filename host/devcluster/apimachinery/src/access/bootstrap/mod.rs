//! The roles and bindings that every cluster has (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy`).
//!
//! It omits the roles of components that a development cluster does not have: the kubelet, the scheduler, the controllers
//! of kube-controller-manager and the approvers of certificates.

mod rows;

use serde_json::{Map, Value, json};

use self::rows::{Binding, CLUSTER_ROLES, ROLES, Role, Row};
use crate::access::{policy::GROUP, rule::PolicyRule};

/// An object of the bootstrap policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`.
    pub resource: &'static str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'static str,
    /// The object.
    pub value: Value,
}

/// Every object of the bootstrap policy; roles come before bindings.
pub fn objects() -> Vec<Object> {
    let mut objects = Vec::new();
    for role in CLUSTER_ROLES {
        objects.push(Object { resource: "clusterroles", namespace: "", value: cluster_role(role) });
    }
    for (namespace, role, rows) in ROLES {
        let value = object("Role", role, namespace, &[], [("rules", rules(rows))]);
        objects.push(Object { resource: "roles", namespace, value });
    }
    for binding in rows::CLUSTER_ROLE_BINDINGS {
        objects.push(Object { resource: "clusterrolebindings", namespace: "", value: cluster_role_binding(binding) });
    }
    objects
}

fn cluster_role(role: &Role) -> Value {
    let labels: Vec<(String, &str)> =
        role.aggregated_to.iter().map(|to| (format!("{GROUP}/aggregate-to-{to}"), "true")).collect();
    let mut fields = Vec::new();
    if let Some(from) = role.aggregates {
        let label = format!("{GROUP}/aggregate-to-{from}");
        fields.push(("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]})));
    }
    fields.push(("rules", rules(role.rules)));
    object("ClusterRole", role.name, "", &labels, fields)
}

fn cluster_role_binding(Binding { role, kind, subjects }: &Binding) -> Value {
    let subjects = subjects.iter().map(|name| json!({"apiGroup": GROUP, "kind": kind, "name": name}));
    let role_ref = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": role});
    let fields = [("roleRef", role_ref), ("subjects", subjects.collect())];
    object("ClusterRoleBinding", role, "", &[], fields)
}

fn object(
    kind: &str,
    name: &str,
    namespace: &str,
    labels: &[(String, &str)],
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut all: Map<String, Value> = Map::new();
    all.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into());
    all.extend(labels.iter().map(|(key, value)| (key.clone(), Value::from(*value))));
    let mut metadata = json!({
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": all,
    });
    if let (false, Some(metadata)) = (namespace.is_empty(), metadata.as_object_mut()) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let head = [("apiVersion", format!("{GROUP}/v1").into()), ("kind", kind.into()), ("metadata", metadata)];
    head.into_iter().chain(fields).map(|(field, value)| (field.to_owned(), value)).collect()
}

fn rules(rows: &[Row]) -> Value {
    rows.iter().map(|row| serde_json::to_value(rule(row)).unwrap_or_default()).collect()
}

fn rule(row: &Row) -> PolicyRule {
    let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    match row {
        Row::Resources(verbs, groups, resources) => PolicyRule {
            verbs: words(verbs),
            api_groups: groups
                .split_whitespace()
                .map(|group| if group == rows::CORE { "" } else { group }.to_owned())
                .collect(),
            resources: words(resources),
            ..PolicyRule::default()
        },
        Row::Named(verbs, groups, resources, names) => {
            PolicyRule { resource_names: words(names), ..rule(&Row::Resources(verbs, groups, resources)) }
        }
        Row::Paths(verbs, paths) => {
            PolicyRule { verbs: words(verbs), non_resource_urls: words(paths), ..PolicyRule::default() }
        }
    }
}
