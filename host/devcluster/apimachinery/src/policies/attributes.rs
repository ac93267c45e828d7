//! A request for a change of an object.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::{access::User, schema::GroupVersionKind};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It creates an object.
    Create,
    /// It changes an object.
    Update,
    /// It deletes an object.
    Delete,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        })
    }
}

/// A resource in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The plural.
    pub plural: String,
}

impl Resource {
    /// Names a resource.
    pub fn new(group: impl Into<String>, version: impl Into<String>, plural: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), plural: plural.into() }
    }

    /// As `request.resource` shows it.
    fn shown(&self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.plural})
    }
}

/// A request for a change of one object.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    /// What it does.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The resource.
    pub resource: Resource,
    /// The subresource; empty for none.
    pub subresource: &'a str,
    /// The namespace; of a Namespace its own name, of other cluster-scoped objects empty.
    pub namespace: &'a str,
    /// The name, also where it is generated; empty for each object of a collection that is deleted.
    pub name: &'a str,
    /// The object that is to be stored.
    pub object: Option<&'a Value>,
    /// The stored object.
    pub old_object: Option<&'a Value>,
    /// Whose request it is.
    pub user: &'a User,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// The options of the request, such as a `CreateOptions`.
    pub options: Value,
}

impl Attributes<'_> {
    /// Whether it is about a Namespace.
    pub fn is_about_namespaces(&self) -> bool {
        self.resource.group.is_empty() && self.resource.plural == "namespaces"
    }

    /// The variable `request`, for a policy whose rules name this resource and kind. Empty members are left out.
    pub fn request(&self, resource: &Resource, kind: &GroupVersionKind) -> Value {
        let mut request = Map::new();
        let mut set = |field: &str, value: Value| {
            if value.as_str() != Some("") {
                request.insert(field.to_owned(), value);
            }
        };
        set("kind", shown_kind(kind));
        set("resource", resource.shown());
        set("subResource", self.subresource.into());
        set("requestKind", shown_kind(&self.kind));
        set("requestResource", self.resource.shown());
        set("requestSubResource", self.subresource.into());
        set("name", self.name.into());
        set("namespace", self.namespace.into());
        set("operation", self.operation.to_string().into());
        set("userInfo", serde_json::to_value(self.user).unwrap_or_default());
        set("dryRun", self.dry_run.into());
        set("options", self.options.clone());
        request.into()
    }

    /// The name that a denial shows.
    pub fn shown_name(&self) -> &str {
        let metadata = |field: &str| self.object?.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty());
        let own = (!self.name.is_empty()).then_some(self.name);
        own.or_else(|| metadata("name")).or_else(|| metadata("generateName")).unwrap_or("Unknown")
    }
}

fn shown_kind(kind: &GroupVersionKind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}
