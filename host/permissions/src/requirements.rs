//! The permissions that a release requires, and why.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_core::ObjectKey;
use serde_json::{Map, Value};

use crate::{
    account::Account,
    delegation::{self, Delegation, Installation},
    grants::{self, ExistingRoles, Grants, RoleKey},
    rule::PolicyRule,
};

/// Where a permission is required.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the whole cluster, and for cluster-scoped objects.
    Cluster,
    /// In this namespace.
    Namespace(String),
}

impl Scope {
    /// The scope of an object: its namespace if it has one, else the cluster.
    pub fn of(namespace: Option<&str>) -> Self {
        namespace.map_or(Self::Cluster, |namespace| Self::Namespace(namespace.to_owned()))
    }

    /// The namespace; none for the whole cluster.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Cluster => None,
            Self::Namespace(namespace) => Some(namespace),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("in the whole cluster"),
            Self::Namespace(namespace) => write!(f, "in namespace {namespace}"),
        }
    }
}

/// Why a permission is required.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The object is created, read and changed, and deleted once it is no longer in the release.
    Object(ObjectKey),
    /// Objects have an owner reference that delays the deletion of the owner (`blockOwnerDeletion`). Clusters with the
    /// admission plugin `OwnerReferencesPermissionEnforcement`, such as OpenShift, require this permission.
    OwnerReference,
    /// The object is deleted: it was in an earlier release and is not in this one.
    Stale(ObjectKey),
    /// The CRD may be deleted later, and then the controller must first check that no custom resources exist.
    Counting(ObjectKey),
    /// An earlier release may have had objects of this kind, which this release does not have.
    Pruning(String),
    /// The controller checks that this namespace exists, with the permissions of a kubeconfig.
    Namespace(String),
    /// The role or binding grants this permission, and its writer must hold what it grants.
    Grants(ObjectKey),
    /// The role or binding grants so many permissions that they are not compared; its writer must be allowed to grant any.
    GrantsTooMuch(ObjectKey),
    /// The ClusterRole aggregates others; its writer must hold all permissions.
    Aggregates(ObjectKey),
    /// The object makes Chandler act for its writer, who may lack the permissions. The API server does not check them.
    Delegates {
        /// The object.
        object: ObjectKey,
        /// What it makes Chandler do.
        what: Delegation,
    },
    /// The binding refers to a role that does not exist.
    UnknownRole {
        /// The binding.
        binding: ObjectKey,
        /// The role.
        role: RoleKey,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => write!(f, "to install {object}"),
            Self::OwnerReference => f.write_str("to set the BundleDeployment as the owner of the objects"),
            Self::Stale(object) => write!(f, "to delete {object}, which is no longer in the release"),
            Self::Counting(object) => {
                write!(f, "to check for custom resources before {object} is deleted")
            }
            Self::Pruning(kind) => write!(f, "to find {kind} that are no longer in the release"),
            Self::Namespace(name) => write!(f, "to check that namespace {name} exists"),
            Self::Grants(object) => write!(f, "{object} grants it"),
            Self::GrantsTooMuch(object) => write!(
                f,
                "{object} grants so many permissions that they are not compared with the account's (each verb, resource and name counts)"
            ),
            Self::Delegates { object, what } => write!(f, "{object} {what}"),
            Self::Aggregates(object) => write!(f, "{object} aggregates other ClusterRoles"),
            Self::UnknownRole { binding, role } => write!(f, "{binding} refers to {role}, which does not exist"),
        }
    }
}

/// One required permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Where it is required.
    pub scope: Scope,
    /// A rule of one verb, one resource or path, and at most one name.
    pub rule: PolicyRule,
    /// Why it is required.
    pub why: Why,
}

/// An object of a release with its resource.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its identity, with the namespace that it has in the cluster.
    pub key: &'a ObjectKey,
    /// The resource, e.g. `deployments`.
    pub plural: &'a str,
    /// The whole object.
    pub value: &'a Map<String, Value>,
}

/// The cluster-scoped object that owns the objects of a release.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its resource, e.g. `bundledeployments`.
    pub plural: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A kind whose objects are listed to find those that are no longer in the release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Where they are listed.
    pub scope: Scope,
    /// The API group.
    pub group: String,
    /// The resource, e.g. `deployments`.
    pub plural: String,
}

/// All permissions that a release requires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirements {
    /// The permissions for the requests that install and remove it.
    pub(crate) requests: Vec<Need>,
    /// The permissions that its roles and bindings grant.
    pub(crate) grants: Grants,
}

/// Verbs for one object that cannot be restricted to its name: it does not exist yet, or all objects are listed.
const OF_ANY_NAME: &[&str] = &["create", "list", "watch"];
/// Verbs for one object by its name: it is read, applied (a patch) and pruned.
const OF_ONE_NAME: &[&str] = &["get", "patch", "delete"];
/// Verbs for pruning one object; if it changed in between, it is read again.
const PRUNING: &[&str] = &["get", "delete"];

/// The permissions that a release requires: for its objects, for objects of earlier releases, for listing kinds without
/// objects in this release, and for what it grants. `existing` must contain the existing roles that its bindings refer
/// to ([`references`](Requirements::references)).
pub fn requirements(
    items: &[Item<'_>],
    stale: &[Item<'_>],
    listed: &[Listed],
    parent: Option<Parent<'_>>,
    existing: &ExistingRoles,
) -> Requirements {
    let mut requests = Vec::new();
    for item in items {
        let scope = Scope::of(item.key.namespace.as_deref());
        let mut need = |verb: &str, name: Option<&str>| {
            requests.push(Need {
                scope: scope.clone(),
                rule: one(verb, &item.key.group, item.plural, name),
                why: Why::Object(item.key.clone()),
            });
        };
        for verb in OF_ANY_NAME {
            need(verb, None);
        }
        for verb in OF_ONE_NAME {
            need(verb, Some(&item.key.name));
        }
    }
    for item in stale {
        // A CRD may be orphaned instead.
        let verbs = PRUNING.iter().chain(is_crd(item.key).then_some(&"patch"));
        requests.extend(verbs.map(|verb| Need {
            scope: Scope::of(item.key.namespace.as_deref()),
            rule: one(verb, &item.key.group, item.plural, Some(&item.key.name)),
            why: Why::Stale(item.key.clone()),
        }));
    }
    requests.extend(items.iter().chain(stale).filter_map(counting));
    requests.extend(listed.iter().map(|listed| Need {
        scope: listed.scope.clone(),
        rule: one("list", &listed.group, &listed.plural, None),
        why: Why::Pruning(qualified(&listed.plural, &listed.group)),
    }));
    requests.extend(parent.map(|Parent { group, plural, name }| Need {
        scope: Scope::Cluster,
        rule: one("update", group, &format!("{plural}/finalizers"), Some(name)),
        why: Why::OwnerReference,
    }));
    Requirements { requests, grants: grants::grants(items, existing) }
}

impl Requirements {
    /// Adds the permissions that the account needs as the writer of these objects: a bundle grants no permission that
    /// its account lacks.
    #[must_use]
    pub fn with_delegations(mut self, items: &[Item<'_>], installation: &Installation, account: &Account) -> Self {
        self.requests.extend(delegation::needs(items, installation, account));
        self
    }

    /// Whether an object makes Chandler act for its writer, so that permissions are needed that no API server checks.
    pub fn delegates(&self) -> bool {
        self.requests.iter().any(|need| matches!(need.why, Why::Delegates { .. }))
    }

    /// Removes the permissions to watch objects.
    #[must_use]
    pub fn without_watches(mut self) -> Self {
        self.requests.retain(|need| need.rule.verbs != ["watch"]);
        self
    }

    /// Adds the permissions to check that these namespaces exist.
    #[must_use]
    pub fn with_namespaces(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.requests.extend(names.into_iter().map(|name| Need {
            // A Role in the namespace grants it, too.
            scope: Scope::Namespace(name.clone()),
            rule: one("get", "", "namespaces", Some(&name)),
            why: Why::Namespace(name),
        }));
        self
    }

    /// Removes the permissions for checking for custom resources before CRDs are deleted.
    #[must_use]
    pub fn without_counting(mut self) -> Self {
        self.requests.retain(|need| !matches!(need.why, Why::Counting(_)));
        self
    }

    /// About how many steps it takes to compare them with one rule of an account.
    pub fn steps(&self) -> usize {
        self.requests.len().saturating_add(self.grants.steps())
    }

    /// All scopes with a requirement, and the whole cluster.
    pub fn scopes(&self) -> BTreeSet<Scope> {
        let requests = self.requests.iter().map(|need| &need.scope);
        let grants = self.grants.scopes();
        requests.chain(grants).cloned().chain([Scope::Cluster]).collect()
    }

    /// The roles outside the release that its bindings refer to. Their rules must be known to compute what the bindings
    /// grant.
    pub fn references(items: &[Item<'_>]) -> Vec<RoleKey> {
        grants::references(items)
    }

    /// Whether a release has aggregated ClusterRoles, so that all ClusterRoles must be known.
    pub fn aggregates(items: &[Item<'_>]) -> bool {
        grants::aggregates(items)
    }
}

/// The permission to check for custom resources of a CRD.
fn counting(item: &Item<'_>) -> Option<Need> {
    let spec = item.value.get("spec").filter(|_| is_crd(item.key))?;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
    let rule = one("list", text("/group")?, text("/names/plural")?, None);
    Some(Need { scope: Scope::Cluster, rule, why: Why::Counting(item.key.clone()) })
}

pub(crate) fn is_crd(key: &ObjectKey) -> bool {
    key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition"
}

/// A rule of one verb and one resource.
pub(crate) fn one(verb: &str, group: &str, resource: &str, name: Option<&str>) -> PolicyRule {
    PolicyRule {
        verbs: vec![verb.to_owned()],
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        resource_names: name.map(str::to_owned).into_iter().collect(),
        ..PolicyRule::default()
    }
}

/// A resource with its group: `deployments.apps`, `pods`.
pub(crate) fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// Groups needs by scope.
pub(crate) fn by_scope<'a>(needs: impl IntoIterator<Item = &'a Need>) -> BTreeMap<Scope, Vec<&'a PolicyRule>> {
    let mut scopes: BTreeMap<Scope, Vec<&PolicyRule>> = BTreeMap::new();
    for need in needs {
        scopes.entry(need.scope.clone()).or_default().push(&need.rule);
    }
    scopes
}
