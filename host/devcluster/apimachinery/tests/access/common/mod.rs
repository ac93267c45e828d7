//! A compact notation for policies.

#![expect(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use chandler_devcluster_apimachinery::access::{Attributes, PolicySet, ResourceAttributes};
use serde_json::{Value, json};

/// `verbs | groups | resources | names`, words; `core` is the core group.
pub(crate) fn rule(text: &str) -> Value {
    let fields: Vec<Vec<&str>> = text
        .split('|')
        .map(|field| field.split_whitespace().map(|word| if word == "core" { "" } else { word }).collect())
        .collect();
    let field = |index: usize| fields.get(index).cloned().unwrap_or_default();
    json!({"verbs": field(0), "apiGroups": field(1), "resources": field(2), "resourceNames": field(3)})
}

/// A Role, or a ClusterRole without a namespace.
pub(crate) fn role(namespace: &str, name: &str, rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|text| rule(text)).collect();
    json!({"metadata": {"name": name, "namespace": namespace}, "rules": rules})
}

/// A binding for `Kind:name` or `ServiceAccount:namespace/name`.
pub(crate) fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: &[&str]) -> Value {
    let subjects = subjects.iter().map(|subject| {
        let (kind, name) = subject.split_once(':').expect("a kind");
        match name.split_once('/') {
            Some((namespace, name)) => json!({"kind": kind, "name": name, "namespace": namespace}),
            None => json!({"kind": kind, "name": name, "namespace": null}),
        }
    });
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": subjects.collect::<Vec<_>>(),
    })
}

pub(crate) fn policy(roles: &[Value], bindings: &[Value]) -> PolicySet {
    let local = |object: &&Value| object.pointer("/metadata/namespace").is_some_and(|namespace| namespace != "");
    let mut policy = PolicySet::default();
    policy.set_roles(roles.iter().filter(local));
    policy.set_cluster_roles(roles.iter().filter(|object| !local(object)));
    policy.set_role_bindings(bindings.iter().filter(local));
    policy.set_cluster_role_bindings(bindings.iter().filter(|object| !local(object)));
    policy
}

/// `verb group resource/subresource name` in a namespace; `core` is the core group.
pub(crate) fn wants(namespace: &str, text: &str) -> Attributes {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or_default().to_owned();
    let (verb, group, resource, name) = (next(), next(), next(), next());
    let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
    Attributes::Resource(ResourceAttributes {
        namespace: namespace.to_owned(),
        verb,
        group: if group == "core" { String::new() } else { group },
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        name,
    })
}
