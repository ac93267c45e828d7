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
    aggregation::{TooMuchToCollect, aggregate_within},
    cover::{is_covered, uncovered},
    missing::Held,
    requirements::{Item, Need, Scope, Why, one},
    role::{GROUP, Role, RoleRef},
    rule::{LONG, PolicyRule},
};

/// The most permissions, each of one verb, one resource and at most one name, of one role in one scope that are compared with what an account
/// holds, and the most that a release lacks and that are listed. A role that the account holds as a whole takes few of them. The largest bundles
/// known to us grant 3,200.
const PARTS: usize = 50_000;
/// The most permissions that are compared for all roles and scopes of a release together: the same role may be bound in many namespaces.
const ALL_PARTS: usize = 4 * PARTS;
/// How many texts of a rule that is compared as a whole count as one permission.
const WHOLE: usize = 64;
/// The most steps that collecting the rules of all aggregated ClusterRoles of a release takes.
const COLLECTED: usize = 200_000;

/// The label of the roles that Kubernetes itself creates, and its value. Their rules are documented.
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

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

    /// Adds a role with more rules than are compared.
    pub fn insert_large(&mut self, key: RoleKey) {
        self.0.insert(key, Value::Null);
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

/// What the objects of a release grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grants {
    all: Vec<Grant>,
    /// The rules of each role, once for all its bindings.
    roles: Vec<Vec<PolicyRule>>,
}

/// What an object of the release grants.
#[derive(Clone, Debug, PartialEq)]
struct Grant {
    object: ObjectKey,
    scope: Scope,
    granted: Granted,
    /// The rule that allows the object whatever it grants.
    waiver: PolicyRule,
    /// Whether the rules are of a role of the cluster that not everyone knows.
    of_others: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Granted {
    /// The rules at this index of [`Grants::roles`].
    Rules(usize),
    /// An aggregated role: any permission.
    Anything,
    /// The role is unknown, and so are its permissions.
    Unknown(RoleKey),
    /// More than is compared.
    TooMuch,
}

/// The parts of rules that an account lacks, or that they are too many to compare.
type Lacking = Option<Vec<PolicyRule>>;

impl Grants {
    /// Where the grants apply.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.all.iter().map(|grant| &grant.scope)
    }

    /// The bindings whose rules are of roles of the cluster that not everyone knows.
    pub(crate) fn of_others(&self) -> impl Iterator<Item = &ObjectKey> {
        self.all.iter().filter(|grant| grant.of_others).map(|grant| &grant.object)
    }

    /// About how many steps it takes to compare them with one rule.
    pub(crate) fn steps(&self) -> usize {
        let steps = |rule: &PolicyRule| rule.texts().saturating_add(rule.parts());
        self.roles.iter().flatten().map(steps).fold(self.all.len(), usize::saturating_add)
    }

    /// What a writer with these rules lacks.
    pub(crate) fn missing(&self, held: &Held, escalation: Escalation) -> Vec<Need> {
        let mut left = ALL_PARTS;
        let mut rules_in: BTreeMap<&Scope, Vec<&PolicyRule>> = BTreeMap::new();
        let mut lacking: BTreeMap<(&Scope, usize), Lacking> = BTreeMap::new();
        let mut listed = BTreeSet::new();
        let mut needs = Vec::new();
        for grant in &self.all {
            let scope = &grant.scope;
            let rules = &*rules_in.entry(scope).or_insert_with(|| held.in_scope(scope));
            if is_covered(rules, &grant.waiver) {
                continue;
            }
            let Granted::Rules(role) = grant.granted else {
                needs.extend(grant.lacks_waiver(rules));
                continue;
            };
            // What the account holds in the whole cluster is compared once, not once for each namespace.
            let everywhere = lacking
                .entry((&Scope::Cluster, role))
                .or_insert_with(|| self.lacking(role, &held.everywhere(), &mut left));
            if everywhere.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let again = !listed.insert((scope, role));
            let parts = lacking.entry((scope, role)).or_insert_with(|| self.lacking(role, rules, &mut left));
            match parts {
                None => needs.push(grant.need(grant.waiver.clone(), Why::GrantsTooMuch)),
                Some(parts) if parts.is_empty() => {}
                Some(_) if escalation == Escalation::Allow => needs.push(grant.need(grant.waiver.clone(), Why::Grants)),
                // The same permissions were listed for another binding.
                Some(parts) if needs.len().saturating_add(parts.len()) > PARTS => {
                    if !again {
                        needs.push(grant.need(grant.waiver.clone(), Why::GrantsTooMuch));
                    }
                }
                Some(parts) => needs.extend(parts.iter().map(|part| grant.need(part.clone(), Why::Grants))),
            }
        }
        needs
    }

    /// The parts of the rules of a role that these rules do not contain; `None` if they are more than are left to compare.
    fn lacking(&self, role: usize, held: &[&PolicyRule], left: &mut usize) -> Lacking {
        let mut open = Vec::new();
        for rule in self.roles.get(role).into_iter().flatten() {
            *left = left.checked_sub(1 + rule.texts() / WHOLE)?;
            if !is_covered(held, rule) {
                open.push(rule);
            }
        }
        // Counted before the first rule is split: few texts make very many parts.
        let parts = |rule: &&PolicyRule| rule.parts().saturating_mul(1 + rule.longest_part() / LONG);
        let parts = open.iter().map(parts).fold(0, usize::saturating_add);
        *left = left.checked_sub(parts).filter(|_| parts <= PARTS)?;
        Some(uncovered(held, open))
    }
}

impl Grant {
    fn need(&self, rule: PolicyRule, why: fn(ObjectKey) -> Why) -> Need {
        Need { scope: self.scope.clone(), rule, why: why(self.object.clone()) }
    }

    /// The permission that allows the object whatever it grants, if what it grants is unknown and not certainly held.
    fn lacks_waiver(&self, held: &[&PolicyRule]) -> Option<Need> {
        let waiver = self.waiver.clone();
        match &self.granted {
            Granted::Rules(_) => None,
            Granted::Anything => {
                let all = [PolicyRule::everything(), PolicyRule::every_path()];
                all.iter().any(|rule| !is_covered(held, rule)).then(|| self.need(waiver, Why::Aggregates))
            }
            Granted::TooMuch => Some(self.need(waiver, Why::GrantsTooMuch)),
            Granted::Unknown(role) => {
                let why = Why::UnknownRole { binding: self.object.clone(), role: role.clone() };
                Some(Need { scope: self.scope.clone(), rule: waiver, why })
            }
        }
    }
}

/// What the roles and bindings among these objects grant.
pub(crate) fn grants(items: &[Item<'_>], existing: &ExistingRoles) -> Grants {
    let own: BTreeMap<RoleKey, Value> =
        items.iter().filter_map(|item| Some((role_key(item)?, Value::Object(item.value.clone())))).collect();
    let mut roles = Roles { own, existing, read: Vec::new(), bound: BTreeMap::new(), left: COLLECTED };
    let all = items
        .iter()
        .filter(|item| item.key.group == GROUP)
        .flat_map(|item| match item.key.kind.as_str() {
            "Role" | "ClusterRole" => roles.of_role(item),
            "RoleBinding" | "ClusterRoleBinding" => roles.of_binding(item).into_iter().collect(),
            _ => Vec::new(),
        })
        .collect();
    Grants { all, roles: roles.read }
}

/// The roles of a release and of the cluster.
struct Roles<'a> {
    own: BTreeMap<RoleKey, Value>,
    existing: &'a ExistingRoles,
    /// The rules of the roles that were read.
    read: Vec<Vec<PolicyRule>>,
    /// What the bound roles grant.
    bound: BTreeMap<RoleKey, Granted>,
    /// The steps that are left to collect the rules of aggregated ClusterRoles.
    left: usize,
}

impl Roles<'_> {
    fn of_role(&mut self, item: &Item<'_>) -> Vec<Grant> {
        let role = Role::read(&Value::Object(item.value.clone()));
        // A `create` request has no name yet, so `escalate` for one name would not cover it.
        let waiver = one("escalate", GROUP, item.plural, None);
        let scope = Scope::of(item.key.namespace.as_deref());
        let grant = |granted| {
            let (object, scope, waiver) = (item.key.clone(), scope.clone(), waiver.clone());
            Grant { object, scope, granted, waiver, of_others: false }
        };
        let mut grants = Vec::new();
        if role.aggregates && item.key.namespace.is_none() {
            grants.push(grant(Granted::Anything));
        }
        grants.push(grant(self.add(role.rules)));
        grants
    }

    fn of_binding(&mut self, item: &Item<'_>) -> Option<Grant> {
        let key = bound(item)?;
        let resource = if key.namespace.is_some() { "roles" } else { "clusterroles" };
        let waiver = one("bind", GROUP, resource, Some(&key.name));
        let of_others = self.is_of_others(&key);
        let known = self.bound.get(&key).cloned();
        let granted = known.unwrap_or_else(|| {
            let granted = match rules_of(&key, &self.own, self.existing, &mut self.left) {
                Ok(Some(rules)) => self.add(rules),
                Ok(None) => Granted::Unknown(key.clone()),
                Err(TooMuchToCollect) => Granted::TooMuch,
            };
            self.bound.insert(key, granted.clone());
            granted
        });
        let scope = Scope::of(item.key.namespace.as_deref());
        Some(Grant { object: item.key.clone(), scope, granted, waiver, of_others })
    }

    /// Whether a role has rules that the author of the release need not know: it is in the cluster, and not one that every cluster has; or it collects
    /// the rules of others.
    fn is_of_others(&self, key: &RoleKey) -> bool {
        if let Some(own) = self.own.get(key) {
            return own.get("aggregationRule").is_some();
        }
        let role = self.existing.0.get(key);
        let known = role.and_then(|role| role.pointer("/metadata/labels")?.get(BOOTSTRAPPING.0)?.as_str());
        role.is_some() && known != Some(BOOTSTRAPPING.1)
    }

    fn add(&mut self, rules: Vec<PolicyRule>) -> Granted {
        self.read.push(rules.into_iter().map(sorted).collect());
        Granted::Rules(self.read.len() - 1)
    }
}

/// A rule with each text once.
fn sorted(mut rule: PolicyRule) -> PolicyRule {
    let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } = &mut rule;
    for texts in [verbs, api_groups, resources, resource_names, non_resource_urls] {
        texts.sort_unstable();
        texts.dedup();
    }
    rule
}

/// The rules of a role when the binding is written: the release's if it contains the role, else the cluster's.
fn rules_of(
    key: &RoleKey,
    own: &BTreeMap<RoleKey, Value>,
    existing: &ExistingRoles,
    left: &mut usize,
) -> Result<Option<Vec<PolicyRule>>, TooMuchToCollect> {
    let Some(role) = own.get(key) else {
        return match existing.0.get(key) {
            Some(Value::Null) => Err(TooMuchToCollect),
            role => Ok(role.map(|role| Role::read(role).rules)),
        };
    };
    // A role that was too large to keep has no labels here, so that no selector would take it.
    if role.get("aggregationRule").is_some() && existing.cluster_roles().any(|(_, role)| role.is_null()) {
        return Err(TooMuchToCollect);
    }
    let others = existing.cluster_roles().filter(|(key, _)| !own.contains_key(*key));
    let own_others = own.iter().filter(|(key, _)| key.namespace.is_none());
    let all = others.chain(own_others).map(|(_, role)| role);
    Ok(Some(aggregate_within(role, all, left)?.unwrap_or_else(|| Role::read(role).rules)))
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
