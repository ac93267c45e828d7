//! Creates roles and bindings from rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{account::Account, merge::merge, requirements::Scope, role::GROUP, rule::PolicyRule};

/// Groups rules by the namespace of the Role that can grant them; none for a ClusterRole.
///
/// A Role can only be created in an existing namespace, so rules for namespaces that the release creates (`not_yet`)
/// are granted in the whole cluster.
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

/// Roles with this name that grant the rules to an account: a ClusterRole for the whole cluster and a Role for each
/// namespace, each followed by its binding.
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
