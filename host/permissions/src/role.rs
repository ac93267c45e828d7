//! Roles and role references.

use serde::Deserialize;
use serde_json::Value;

use crate::rule::PolicyRule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The rules of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// What it allows.
    pub rules: Vec<PolicyRule>,
    /// Whether it is an aggregated ClusterRole.
    pub aggregates: bool,
}

impl Role {
    /// Reads a Role or ClusterRole. Malformed parts count as absent, so that they allow nothing.
    pub fn read(object: &Value) -> Self {
        let rules = object.get("rules").and_then(Value::as_array).into_iter().flatten();
        let selectors = object.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
        Self {
            rules: rules.filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect(),
            aggregates: selectors.is_some_and(|selectors| !selectors.is_empty()),
        }
    }
}

/// The role that a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// The API group.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}
