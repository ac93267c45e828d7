//! Roles, bindings and how they are looked up.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use crate::access::{
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
    /// The namespace of a ServiceAccount; empty means the binding's.
    pub namespace: String,
}

impl Subject {
    /// Whether this subject is the user; `namespace` is the binding's.
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

    /// The role that a binding of a namespace names. The namespace is empty for a ClusterRoleBinding.
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
    /// By namespace and name. A clone that changes copies what is in the changed namespace.
    roles: Arc<HashMap<String, Arc<HashMap<String, Role>>>>,
    cluster_roles: Arc<HashMap<String, Arc<Role>>>,
    /// By namespace, in the order of their names.
    role_bindings: Arc<HashMap<String, Arc<Vec<Binding>>>>,
    /// In the order of their names.
    cluster_role_bindings: Arc<Vec<Binding>>,
}

impl PolicySet {
    /// Replaces all Roles by these objects.
    pub fn set_roles<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        self.roles = Arc::default();
        for object in objects {
            self.put_role(object);
        }
    }

    /// Adds or replaces a Role.
    pub fn put_role(&mut self, object: &Value) {
        let (namespace, name) = identity(object);
        let roles = Arc::make_mut(&mut self.roles).entry(namespace.to_owned()).or_default();
        Arc::make_mut(roles).insert(name.to_owned(), Role::read(object));
    }

    /// Removes a Role.
    pub fn remove_role(&mut self, object: &Value) {
        let (namespace, name) = identity(object);
        let places = Arc::make_mut(&mut self.roles);
        if let Some(roles) = places.get_mut(namespace).map(Arc::make_mut) {
            roles.remove(name);
            if roles.is_empty() {
                places.remove(namespace);
            }
        }
    }

    /// Replaces all ClusterRoles by these objects.
    pub fn set_cluster_roles<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        self.cluster_roles = Arc::default();
        for object in objects {
            self.put_cluster_role(object);
        }
    }

    /// Adds or replaces a ClusterRole.
    pub fn put_cluster_role(&mut self, object: &Value) {
        let roles = Arc::make_mut(&mut self.cluster_roles);
        roles.insert(identity(object).1.to_owned(), Arc::new(Role::read(object)));
    }

    /// Removes a ClusterRole.
    pub fn remove_cluster_role(&mut self, object: &Value) {
        Arc::make_mut(&mut self.cluster_roles).remove(identity(object).1);
    }

    /// Replaces all RoleBindings by these objects.
    pub fn set_role_bindings<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        self.role_bindings = Arc::default();
        for object in objects {
            self.put_role_binding(object);
        }
    }

    /// Adds or replaces a RoleBinding.
    pub fn put_role_binding(&mut self, object: &Value) {
        let bindings = Arc::make_mut(&mut self.role_bindings).entry(identity(object).0.to_owned()).or_default();
        put(Arc::make_mut(bindings), Binding::read(object));
    }

    /// Removes a RoleBinding.
    pub fn remove_role_binding(&mut self, object: &Value) {
        let (namespace, name) = identity(object);
        let places = Arc::make_mut(&mut self.role_bindings);
        if let Some(bindings) = places.get_mut(namespace).map(Arc::make_mut) {
            remove(bindings, name);
            if bindings.is_empty() {
                places.remove(namespace);
            }
        }
    }

    /// Replaces all ClusterRoleBindings by these objects.
    pub fn set_cluster_role_bindings<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        self.cluster_role_bindings = Arc::default();
        for object in objects {
            self.put_cluster_role_binding(object);
        }
    }

    /// Adds or replaces a ClusterRoleBinding.
    pub fn put_cluster_role_binding(&mut self, object: &Value) {
        put(Arc::make_mut(&mut self.cluster_role_bindings), Binding::read(object));
    }

    /// Removes a ClusterRoleBinding.
    pub fn remove_cluster_role_binding(&mut self, object: &Value) {
        remove(Arc::make_mut(&mut self.cluster_role_bindings), identity(object).1);
    }
}

/// Adds or replaces a binding in a list in the order of names.
fn put(bindings: &mut Vec<Binding>, binding: Binding) {
    match bindings.binary_search_by(|known| known.name.cmp(&binding.name)) {
        Ok(index) => {
            if let Some(known) = bindings.get_mut(index) {
                *known = binding;
            }
        }
        Err(index) => bindings.insert(index, binding),
    }
}

fn remove(bindings: &mut Vec<Binding>, name: &str) {
    if let Ok(index) = bindings.binary_search_by(|known| known.name.as_str().cmp(name)) {
        bindings.remove(index);
    }
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
        self.cluster_roles.get(name).map(AsRef::as_ref)
    }

    fn role_bindings(&self, namespace: &str) -> &[Binding] {
        self.role_bindings.get(namespace).map(|bindings| bindings.as_slice()).unwrap_or_default()
    }

    fn cluster_role_bindings(&self) -> &[Binding] {
        &self.cluster_role_bindings
    }
}
