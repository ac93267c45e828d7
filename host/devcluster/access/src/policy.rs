//! Roles, bindings and how they are looked up.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    quote::quote,
    user::{User, is_service_account},
};
pub use chandler_permissions::role::{GROUP, Role, RoleRef};

/// Whom a binding is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace of a ServiceAccount; empty means that of the binding.
    pub namespace: String,
}

impl Subject {
    /// Whether a user is meant; the namespace is that of the binding.
    pub fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                !namespace.is_empty() && is_service_account(&user.name, namespace, &self.name)
            }
            _ => false,
        }
    }
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The namespace; empty for a ClusterRoleBinding.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The bound role.
    pub role: RoleRef,
    /// The user of the request.
    pub subjects: Vec<Subject>,
}

impl Binding {
    /// Reads a RoleBinding or ClusterRoleBinding. Subjects that are not well formed count as absent.
    pub fn read(object: &Value) -> Self {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let subjects = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            role: object.get("roleRef").and_then(|role| RoleRef::deserialize(role).ok()).unwrap_or_default(),
            subjects: subjects.filter_map(|subject| Subject::deserialize(lenient(subject)).ok()).collect(),
        }
    }

    /// The first subject that a user is.
    pub fn subject(&self, user: &User) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(user, &self.namespace))
    }
}

/// A subject without the fields that are null.
fn lenient(subject: &Value) -> Value {
    let fields = subject.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The binding that grants a rule to a user; shown as in reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The binding.
    pub binding: &'a Binding,
    /// The subject that the user is.
    pub subject: &'a Subject,
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, .. } = self.binding;
        let (kind, name) = if namespace.is_empty() {
            ("ClusterRoleBinding", quote(name))
        } else {
            ("RoleBinding", quote(&format!("{name}/{namespace}")))
        };
        let subject = self.subject;
        let whom = match subject.kind.as_str() {
            "ServiceAccount" => {
                let namespace = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                quote(&format!("{}/{namespace}", subject.name))
            }
            _ => quote(&subject.name),
        };
        write!(f, "{kind} {name} of {} {} to {} {whom}", role.kind, quote(&role.name), subject.kind)
    }
}

/// How roles and bindings are looked up.
pub trait Policies {
    /// A Role.
    fn role(&self, namespace: &str, name: &str) -> Option<&Role>;
    /// A ClusterRole.
    fn cluster_role(&self, name: &str) -> Option<&Role>;
    /// The RoleBindings of a namespace, in the order of their names.
    fn role_bindings(&self, namespace: &str) -> &[Binding];
    /// The ClusterRoleBindings, in the order of their names.
    fn cluster_role_bindings(&self) -> &[Binding];

    /// The role that a binding of a namespace names; an empty namespace is that of a ClusterRoleBinding.
    ///
    /// # Errors
    /// When there is none.
    fn referenced(&self, role: &RoleRef, namespace: &str) -> Result<&Role, MissingRole> {
        let found = match role.kind.as_str() {
            "ClusterRole" => self.cluster_role(&role.name),
            "Role" => self.role(namespace, &role.name),
            _ => None,
        };
        found.ok_or_else(|| MissingRole { kind: role.kind.clone(), name: role.name.clone() })
    }
}

/// A binding names a role that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}.{GROUP} {} not found", .kind.to_lowercase(), quote(.name))]
pub struct MissingRole {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A policy in memory. Clones share what has not been set since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySet {
    /// By namespace and name.
    roles: Arc<HashMap<String, HashMap<String, Role>>>,
    cluster_roles: Arc<HashMap<String, Role>>,
    role_bindings: Arc<HashMap<String, Vec<Binding>>>,
    cluster_role_bindings: Arc<Vec<Binding>>,
}

impl PolicySet {
    /// Replaces all Roles by these objects.
    pub fn set_roles<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let mut roles: HashMap<String, HashMap<String, Role>> = HashMap::new();
        for object in objects {
            let (namespace, name) = identity(object);
            roles.entry(namespace.to_owned()).or_default().insert(name.to_owned(), Role::read(object));
        }
        self.roles = Arc::new(roles);
    }

    /// Replaces all ClusterRoles by these objects.
    pub fn set_cluster_roles<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let named = objects.into_iter().map(|object| (identity(object).1.to_owned(), Role::read(object)));
        self.cluster_roles = Arc::new(named.collect());
    }

    /// Replaces all RoleBindings by these objects.
    pub fn set_role_bindings<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let mut bindings: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in objects.into_iter().map(Binding::read) {
            bindings.entry(binding.namespace.clone()).or_default().push(binding);
        }
        for bindings in bindings.values_mut() {
            sort(bindings);
        }
        self.role_bindings = Arc::new(bindings);
    }

    /// Replaces all ClusterRoleBindings by these objects.
    pub fn set_cluster_role_bindings<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        let mut bindings: Vec<Binding> = objects.into_iter().map(Binding::read).collect();
        sort(&mut bindings);
        self.cluster_role_bindings = Arc::new(bindings);
    }
}

fn sort(bindings: &mut [Binding]) {
    bindings.sort_by(|left, right| left.name.cmp(&right.name));
}

fn identity(object: &Value) -> (&str, &str) {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
    (text("/metadata/namespace"), text("/metadata/name"))
}

impl Policies for PolicySet {
    fn role(&self, namespace: &str, name: &str) -> Option<&Role> {
        self.roles.get(namespace)?.get(name)
    }

    fn cluster_role(&self, name: &str) -> Option<&Role> {
        self.cluster_roles.get(name)
    }

    fn role_bindings(&self, namespace: &str) -> &[Binding] {
        self.role_bindings.get(namespace).map(Vec::as_slice).unwrap_or_default()
    }

    fn cluster_role_bindings(&self) -> &[Binding] {
        &self.cluster_role_bindings
    }
}
