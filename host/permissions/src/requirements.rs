//! What a release needs, and why.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_core::ObjectKey;
use serde_json::{Map, Value};

use crate::{
    account::Account,
    delegation::{self, Delegation, Installation},
    grants::{self, ExistingRoles, Grant, RoleKey},
    rule::PolicyRule,
};

/// Where something must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the whole cluster, and for cluster-scoped objects.
    Cluster,
    /// In this namespace.
    Namespace(String),
}

impl Scope {
    /// The scope of an object: of its namespace, if it has one.
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

/// Why something must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The object is created, read, changed, and deleted when the release no longer has it.
    Object(ObjectKey),
    /// Objects refer to their owner in a way that delays its deletion (`blockOwnerDeletion`). Clusters with the admission
    /// plugin `OwnerReferencesPermissionEnforcement`, as OpenShift has it, ask for this.
    OwnerReference,
    /// An earlier release had it, and this one does not: it is deleted.
    Stale(ObjectKey),
    /// The CRD is deleted some day, and first it has to be known whether custom resources would go with it.
    Counting(ObjectKey),
    /// An earlier release may have had objects of this kind here, which this one does not have.
    Pruning(String),
    /// The role or binding passes this permission on, and nobody passes on what they do not hold.
    PassedOn(ObjectKey),
    /// The ClusterRole is made of others, which nobody may write who does not hold every permission.
    Aggregates(ObjectKey),
    /// The object has Chandler do something for which its writer may lack the rights. The API server does not ask for them.
    Delegates {
        /// The object.
        object: ObjectKey,
        /// What it has Chandler do.
        what: Delegation,
    },
    /// The binding is for a role that does not exist.
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
            Self::OwnerReference => f.write_str("to refer to the BundleDeployment as the owner of the objects"),
            Self::Stale(object) => write!(f, "to delete {object}, which the release no longer has"),
            Self::Counting(object) => {
                write!(f, "to see whether custom resources exist before {object} is deleted")
            }
            Self::Pruning(kind) => write!(f, "to find {kind} that the release no longer has"),
            Self::PassedOn(object) => write!(f, "{object} passes it on"),
            Self::Delegates { object, what } => write!(f, "{object} {what}"),
            Self::Aggregates(object) => write!(f, "{object} is made of other ClusterRoles"),
            Self::UnknownRole { binding, role } => write!(f, "{binding} is for {role}, which does not exist"),
        }
    }
}

/// One thing that must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Where.
    pub scope: Scope,
    /// What: a rule of one verb, one resource or path, and at most one name.
    pub rule: PolicyRule,
    /// Why.
    pub why: Why,
}

/// An object of a release, with how it is addressed.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its identity, with the namespace that it has in the cluster.
    pub key: &'a ObjectKey,
    /// The resource, e.g. `deployments`.
    pub plural: &'a str,
    /// All of it.
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

/// A kind whose objects are listed somewhere, to find those that the release no longer has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Where.
    pub scope: Scope,
    /// The API group.
    pub group: String,
    /// The resource, e.g. `deployments`.
    pub plural: String,
}

/// Everything that a release needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirements {
    /// What the requests need that install and remove it.
    pub(crate) requests: Vec<Need>,
    /// What its roles and bindings pass on.
    pub(crate) grants: Vec<Grant>,
}

/// What the requests for one object need. A name cannot restrict what is asked before the object exists, nor a list.
const OF_ANY_NAME: &[&str] = &["create", "list", "watch"];
/// What they need with the name of the object: it is read, applied (a patch), and pruned.
const OF_ONE_NAME: &[&str] = &["get", "patch", "delete"];
/// What pruning one object needs: where it changed in between, it is read again.
const PRUNING: &[&str] = &["get", "delete"];

/// What a release needs: for its objects, for those that an earlier one left, for listing kinds where it has no objects of
/// them, and for what it passes on. Of the roles that its bindings name and that exist already
/// ([`references`](Requirements::references) tells which) their rules have to be known.
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
        // A CRD may be left to itself instead.
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
    /// The same with what an account needs that writes these objects: a bundle passes on no right that its account lacks.
    #[must_use]
    pub fn with_delegations(mut self, items: &[Item<'_>], installation: &Installation, account: &Account) -> Self {
        self.requests.extend(delegation::needs(items, installation, account));
        self
    }

    /// The same where custom resources need not be counted before their CRDs are deleted.
    #[must_use]
    pub fn without_counting(mut self) -> Self {
        self.requests.retain(|need| !matches!(need.why, Why::Counting(_)));
        self
    }

    /// Every place where something is needed, and the whole cluster.
    pub fn scopes(&self) -> BTreeSet<Scope> {
        let requests = self.requests.iter().map(|need| &need.scope);
        let grants = self.grants.iter().map(Grant::scope);
        requests.chain(grants).cloned().chain([Scope::Cluster]).collect()
    }

    /// The roles outside a release that its bindings name. What they allow has to be known to tell what the bindings pass
    /// on.
    pub fn references(items: &[Item<'_>]) -> Vec<RoleKey> {
        grants::references(items)
    }

    /// Whether a release has ClusterRoles that are made of others, so that all ClusterRoles have to be known.
    pub fn aggregates(items: &[Item<'_>]) -> bool {
        grants::aggregates(items)
    }
}

/// What counting the custom resources of a CRD needs.
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

/// Needs by where they are.
pub(crate) fn by_scope<'a>(needs: impl IntoIterator<Item = &'a Need>) -> BTreeMap<Scope, Vec<&'a PolicyRule>> {
    let mut scopes: BTreeMap<Scope, Vec<&PolicyRule>> = BTreeMap::new();
    for need in needs {
        scopes.entry(need.scope.clone()).or_default().push(&need.rule);
    }
    scopes
}
