//! Keys and scopes.

use std::sync::Arc;

/// Where an object is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The group resource, e.g. `deployments.apps`.
    pub resource: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Names a place.
    pub fn new(resource: Arc<str>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { resource, namespace: namespace.into(), name: name.into() }
    }
}

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The group resource; `None` means every resource.
    pub resource: Option<Arc<str>>,
    /// The namespace; `None` means every namespace.
    pub namespace: Option<String>,
}

impl Scope {
    /// Every object of every resource.
    pub fn everything() -> Self {
        Self { resource: None, namespace: None }
    }

    /// Whether a place is one of the scope's.
    pub fn contains(&self, key: &Key) -> bool {
        self.resource.as_ref().is_none_or(|resource| *resource == key.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}
