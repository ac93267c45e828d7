//! The attributes of a request that authorization checks.

use serde::{Deserialize, Serialize};

/// The attributes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// A request for objects.
    Resource(ResourceAttributes),
    /// A request for another path.
    NonResource(NonResourceAttributes),
}

/// A request for objects; in JSON the `ResourceAttributes` of `authorization.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceAttributes {
    /// The namespace; empty for cluster-scoped objects and for all namespaces.
    pub namespace: String,
    /// The verb, e.g. `list`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version; rules ignore it.
    pub version: String,
    /// The resource, e.g. `pods`.
    pub resource: String,
    /// The subresource, e.g. `log`; empty for none.
    pub subresource: String,
    /// The name of the object; empty for all.
    pub name: String,
}

/// A request for a path without objects; in JSON the `NonResourceAttributes` of `authorization.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NonResourceAttributes {
    /// The path.
    pub path: String,
    /// The HTTP method in lower case.
    pub verb: String,
}

impl Attributes {
    /// The verb.
    pub fn verb(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.verb,
            Self::NonResource(path) => &path.verb,
        }
    }

    /// The namespace; empty for none.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.namespace,
            Self::NonResource(_) => "",
        }
    }

    /// These attributes with another verb.
    pub fn with_verb(&self, verb: String) -> Self {
        match self {
            Self::Resource(resource) => Self::Resource(ResourceAttributes { verb, ..resource.clone() }),
            Self::NonResource(path) => Self::NonResource(NonResourceAttributes { verb, ..path.clone() }),
        }
    }
}

impl ResourceAttributes {
    /// Resource and subresource as in rules and messages: `pods/log`.
    pub fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}
