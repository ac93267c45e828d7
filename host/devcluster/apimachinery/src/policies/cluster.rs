//! What policies read of the cluster.

use serde_json::Value;

use crate::{
    access::{Attributes as Access, Decision, User},
    policies::{attributes::Resource, model::LabelSelector},
    schema::GroupVersionKind,
};

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamScope {
    /// In namespaces.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// What policies read of the cluster.
pub trait Cluster: Sync {
    /// A Namespace.
    fn namespace(&self, name: &str) -> Option<Value>;

    /// The resources, in other versions or groups, that show the same objects; with the kind of the subresource there.
    fn equivalents(&self, resource: &Resource, subresource: &str) -> Vec<(Resource, GroupVersionKind)>;

    /// An object in the version of an equivalent resource.
    fn convert(&self, object: &Value, resource: &Resource, subresource: &str) -> Option<Value>;

    /// Where the objects of a kind live; `None` if the kind is not served.
    fn scope(&self, kind: &GroupVersionKind) -> Option<ParamScope>;

    /// An object of a kind.
    fn object(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Option<Value>;

    /// Calls a function with each object of a kind that is selected, of one namespace if one is given, until it returns `false`.
    fn objects(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &LabelSelector,
        each: &mut dyn FnMut(&Value) -> bool,
    );

    /// Whether a user may do something.
    fn authorize(&self, user: &User, access: &Access) -> Decision;
}
