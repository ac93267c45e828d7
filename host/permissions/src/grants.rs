//! The permissions that roles and bindings grant, which their writer must hold.
//!
//! Follows `k8s.io/kubernetes/pkg/registry/rbac`: the writer of a role must hold all its rules or be allowed to
//! `escalate` it; the writer of a binding must hold all rules of the role or be allowed to `bind` it. A role in the
//! release does not give its own writer any permission, whatever it is bound to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_core::ObjectKey;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    aggregation::aggregate,
    cover::{break_down, is_covered, uncovered},
    requirements::{Item, Need, Scope, Why, one},
    role::{GROUP, Role, RoleRef},
    rule::PolicyRule,
};

/// The identity of a Role or a ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleKey {
    /// The namespace of a Role; none for a ClusterRole.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl fmt::Display for RoleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "Role {namespace}/{}", self.name),
            None => write!(f, "ClusterRole {}", self.name),
        }
    }
}

/// The roles in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExistingRoles(BTreeMap<RoleKey, Value>);

impl ExistingRoles {
    /// Adds a Role or ClusterRole.
    pub fn insert(&mut self, key: RoleKey, role: Value) {
        self.0.insert(key, role);
    }

    fn cluster_roles(&self) -> impl Iterator<Item = (&RoleKey, &Value)> {
        self.0.iter().filter(|(key, _)| key.namespace.is_none())
    }
}

/// How a writer of roles and bindings becomes allowed to grant permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escalation {
    /// By holding them.
    #[default]
    Hold,
    /// By being allowed to grant anything: `escalate` and `bind`. Shorter, but far more powerful.
    Allow,
}

/// What an object of the release grants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grant {
    object: ObjectKey,
    scope: Scope,
    granted: Granted,
    /// The rule that allows the object whatever it grants.
    waiver: PolicyRule,
}

#[derive(Clone, Debug, PartialEq)]
enum Granted {
    Rules(Vec<PolicyRule>),
    /// An aggregated role: any permission.
    Anything,
    /// The role is unknown, and so are its permissions.
    Unknown(RoleKey),
}

impl Grant {
    /// Where the grant applies.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The rules that a writer with these rules in the scope of the grant lacks.
    pub(crate) fn missing(&self, held: &[&PolicyRule], escalation: Escalation) -> Vec<Need> {
        let lacks = |rule: &PolicyRule| !is_covered(held, rule);
        if !lacks(&self.waiver) {
            return Vec::new();
        }
        let need = |rule, why| Need { scope: self.scope.clone(), rule, why };
        let object = || self.object.clone();
        match &self.granted {
            Granted::Rules(rules) => {
                let parts = uncovered(held, rules);
                match escalation {
                    Escalation::Allow if !parts.is_empty() => {
                        vec![need(self.waiver.clone(), Why::Grants(object()))]
                    }
                    _ => parts.into_iter().map(|part| need(part, Why::Grants(object()))).collect(),
                }
            }
            Granted::Anything => {
                let all = [PolicyRule::everything(), PolicyRule::every_path()];
                if all.iter().any(lacks) {
                    vec![need(self.waiver.clone(), Why::Aggregates(object()))]
                } else {
                    Vec::new()
                }
            }
            Granted::Unknown(role) => {
                vec![need(self.waiver.clone(), Why::UnknownRole { binding: object(), role: role.clone() })]
            }
        }
    }
}

/// What the roles and bindings among these objects grant.
pub(crate) fn grants(items: &[Item<'_>], existing: &ExistingRoles) -> Vec<Grant> {
    let own: BTreeMap<RoleKey, Value> =
        items.iter().filter_map(|item| Some((role_key(item)?, Value::Object(item.value.clone())))).collect();
    items
        .iter()
        .filter(|item| item.key.group == GROUP)
        .flat_map(|item| match item.key.kind.as_str() {
            "Role" | "ClusterRole" => of_role(item),
            "RoleBinding" | "ClusterRoleBinding" => of_binding(item, &own, existing).into_iter().collect(),
            _ => Vec::new(),
        })
        .collect()
}

fn of_role(item: &Item<'_>) -> Vec<Grant> {
    let role = Role::read(&Value::Object(item.value.clone()));
    // A `create` request has no name yet, so `escalate` for one name would not cover it.
    let waiver = one("escalate", GROUP, item.plural, None);
    let scope = Scope::of(item.key.namespace.as_deref());
    let grant = |granted| Grant { object: item.key.clone(), scope: scope.clone(), granted, waiver: waiver.clone() };
    let mut grants = Vec::new();
    if role.aggregates && item.key.namespace.is_none() {
        grants.push(grant(Granted::Anything));
    }
    grants.push(grant(Granted::Rules(role.rules.iter().flat_map(break_down).collect())));
    grants
}

fn of_binding(item: &Item<'_>, own: &BTreeMap<RoleKey, Value>, existing: &ExistingRoles) -> Option<Grant> {
    let key = bound(item)?;
    let resource = if key.namespace.is_some() { "roles" } else { "clusterroles" };
    let granted = match rules_of(&key, own, existing) {
        Some(rules) => Granted::Rules(rules.iter().flat_map(break_down).collect()),
        None => Granted::Unknown(key.clone()),
    };
    Some(Grant {
        object: item.key.clone(),
        scope: Scope::of(item.key.namespace.as_deref()),
        granted,
        waiver: one("bind", GROUP, resource, Some(&key.name)),
    })
}

/// The rules of a role when the binding is written: the release's if it contains the role, else the cluster's.
fn rules_of(key: &RoleKey, own: &BTreeMap<RoleKey, Value>, existing: &ExistingRoles) -> Option<Vec<PolicyRule>> {
    let Some(role) = own.get(key) else { return Some(Role::read(existing.0.get(key)?).rules) };
    let others = existing.cluster_roles().filter(|(key, _)| !own.contains_key(*key));
    let own_others = own.iter().filter(|(key, _)| key.namespace.is_none());
    let all: Vec<&Value> = others.chain(own_others).map(|(_, role)| role).collect();
    Some(aggregate(role, all.into_iter()).unwrap_or_else(|| Role::read(role).rules))
}

fn role_key(item: &Item<'_>) -> Option<RoleKey> {
    let named = item.key.group == GROUP && matches!(item.key.kind.as_str(), "Role" | "ClusterRole");
    named.then(|| RoleKey { namespace: item.key.namespace.clone(), name: item.key.name.clone() })
}

/// The role that a binding refers to; none for a malformed binding, which the API server rejects.
fn bound(item: &Item<'_>) -> Option<RoleKey> {
    let role = RoleRef::deserialize(item.value.get("roleRef")?).ok()?;
    let namespace = match role.kind.as_str() {
        "ClusterRole" => None,
        "Role" => Some(item.key.namespace.clone()?),
        _ => return None,
    };
    Some(RoleKey { namespace, name: role.name })
}

pub(crate) fn references(items: &[Item<'_>]) -> Vec<RoleKey> {
    let own: BTreeSet<RoleKey> = items.iter().filter_map(role_key).collect();
    let bindings = items.iter().filter(|item| {
        item.key.group == GROUP && matches!(item.key.kind.as_str(), "RoleBinding" | "ClusterRoleBinding")
    });
    let bound: BTreeSet<RoleKey> = bindings.filter_map(bound).collect();
    bound.difference(&own).cloned().collect()
}

pub(crate) fn aggregates(items: &[Item<'_>]) -> bool {
    items.iter().any(|item| {
        role_key(item).is_some_and(|key| key.namespace.is_none())
            && Role::read(&Value::Object(item.value.clone())).aggregates
    })
}
