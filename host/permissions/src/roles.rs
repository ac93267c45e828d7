//! Rules as roles and bindings that can be applied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{account::Account, merge::merge, requirements::Scope, role::GROUP, rule::PolicyRule};

/// Rules by the namespace of the role that can grant them; none for a ClusterRole.
///
/// A Role can only be created in a namespace that exists. What is needed in the namespaces that come with the release
/// (`not_yet`) is therefore granted in the whole cluster.
pub fn place(
    rules: &BTreeMap<Scope, Vec<PolicyRule>>,
    not_yet: &BTreeSet<String>,
) -> BTreeMap<Option<String>, Vec<PolicyRule>> {
    let mut places: BTreeMap<Option<&str>, Vec<&PolicyRule>> = BTreeMap::new();
    for (scope, rules) in rules {
        let place = scope.namespace().filter(|namespace| !not_yet.contains(*namespace));
        places.entry(place).or_default().extend(rules);
    }
    places.into_iter().map(|(place, rules)| (place.map(str::to_owned), merge(rules))).collect()
}

/// Roles of this name that grant these rules to an account: a ClusterRole for what is needed in the whole cluster, a Role for
/// each namespace, each followed by its binding.
pub fn roles(places: &BTreeMap<Option<String>, Vec<PolicyRule>>, account: &Account, name: &str) -> Vec<Value> {
    places
        .iter()
        .flat_map(|(namespace, rules)| {
            let prefix = if namespace.is_some() { "" } else { "Cluster" };
            let metadata = match namespace {
                Some(namespace) => json!({"name": name, "namespace": namespace}),
                None => json!({"name": name}),
            };
            [
                json!({
                    "apiVersion": format!("{GROUP}/v1"),
                    "kind": format!("{prefix}Role"),
                    "metadata": metadata,
                    "rules": rules,
                }),
                json!({
                    "apiVersion": format!("{GROUP}/v1"),
                    "kind": format!("{prefix}RoleBinding"),
                    "metadata": metadata,
                    "roleRef": {"apiGroup": GROUP, "kind": format!("{prefix}Role"), "name": name},
                    "subjects": [{"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name}],
                }),
            ]
        })
        .collect()
}
