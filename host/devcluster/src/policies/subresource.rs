//! The kinds of subresources.

use chandler_devcluster_apimachinery::schema::GroupVersionKind;

use crate::registry::Resource;

/// The kind of the objects that a subresource takes; without a subresource, the kind of the resource. `None` if the resource has no such
/// subresource.
pub fn kind(resource: &Resource, subresource: &str) -> Option<GroupVersionKind> {
    let own = || resource.kind().clone();
    match subresource {
        "" => Some(own()),
        "status" => resource.resource_type.status.then(own),
        "finalize" => resource.is_core("namespaces").then(own),
        "scale" => resource.resource_type.scale.is_some().then(|| GroupVersionKind::new("autoscaling", "v1", "Scale")),
        "binding" => resource.is_core("pods").then(|| GroupVersionKind::new("", "v1", "Binding")),
        "token" => resource
            .is_core("serviceaccounts")
            .then(|| GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest")),
        _ => None,
    }
}
