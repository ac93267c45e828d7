//! The verb and the resource of a request.

use std::fmt;

use chandler_client::RequestAttributes;
use http::Request;

/// What a request does, and to which resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    /// Such as `list`, `apply` or `create (dry run)`.
    pub verb: String,
    /// Such as `configmaps` or `bundledeployments/status`. Secrets and ConfigMaps in the namespace of the controller are `records`.
    pub resource: String,
}

impl RequestKind {
    /// Reads the method, the path and the query of a request.
    pub fn of<B>(request: &Request<B>, system_namespace: &str) -> Self {
        let attributes = RequestAttributes::of(request);
        let is_record =
            attributes.namespace == Some(system_namespace) && ["configmaps", "secrets"].contains(&attributes.resource);
        let resource = match attributes.subresource {
            _ if is_record => "records".to_owned(),
            Some(subresource) => format!("{}/{subresource}", attributes.resource),
            None => attributes.resource.to_owned(),
        };
        let dry_run = if attributes.is_dry_run { " (dry run)" } else { "" };
        Self { verb: format!("{}{dry_run}", attributes.verb), resource }
    }

    /// Whether it changes something in the API server.
    pub fn writes(&self) -> bool {
        let reads = ["get", "list", "watch"].contains(&self.verb.as_str());
        !reads && !self.verb.ends_with("(dry run)") && !self.resource.ends_with("reviews")
    }

    /// Whether it changes an object of a release: neither a BundleDeployment nor a ProvisionerClass, a Catalog, an
    /// Event or a record.
    pub fn writes_object(&self) -> bool {
        let resource = self.resource.split('/').next().unwrap_or_default();
        let ours = ["bundledeployments", "provisionerclasses", "catalogs", "events", "records", "leases"];
        self.writes() && !ours.contains(&resource)
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    fn kind(method: &str, uri: &str, content_type: &str) -> RequestKind {
        let request = Request::builder().method(method).uri(uri).header(CONTENT_TYPE, content_type);
        RequestKind::of(&request.body(()).expect("a request"), "chandler-system")
    }

    #[test]
    fn a_request_has_the_verb_and_resource_that_an_audit_log_shows() {
        let (json, apply) = ("application/json", "application/apply-patch+yaml");
        for (method, uri, content_type, expected) in [
            ("GET", "/version", json, "get discovery"),
            ("GET", "/apis", json, "get discovery"),
            ("GET", "/apis/apps/v1", json, "get discovery"),
            ("GET", "/api/v1/namespaces", json, "list namespaces"),
            ("GET", "/api/v1/namespaces/a", json, "get namespaces"),
            ("GET", "/api/v1/namespaces/a/configmaps?limit=5", json, "list configmaps"),
            ("GET", "/api/v1/configmaps?&watch=true&limit=5", json, "watch configmaps"),
            ("GET", "/apis/apps/v1/namespaces/a/deployments/b", json, "get deployments"),
            ("POST", "/api/v1/namespaces/a/configmaps?&dryRun=All", json, "create (dry run) configmaps"),
            (
                "PATCH",
                "/apis/core.rukpak.io/v1alpha2/bundledeployments/b/status",
                json,
                "patch bundledeployments/status",
            ),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b?force=true", apply, "apply deployments"),
            ("PATCH", "/api/v1/namespaces/a/secrets/b?dryRun=All", apply, "apply (dry run) secrets"),
            ("PATCH", "/api/v1/namespaces/chandler-system/secrets/b", apply, "apply records"),
            ("PUT", "/api/v1/namespaces/a/finalize", json, "update namespaces/finalize"),
            ("DELETE", "/api/v1/namespaces/a/services/b", json, "delete services"),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", json, "create selfsubjectrulesreviews"),
        ] {
            assert_eq!(kind(method, uri, content_type).to_string(), expected, "{method} {uri}");
        }
    }

    #[test]
    fn only_changes_of_objects_of_a_release_count_as_such() {
        for (method, uri, writes, object) in [
            ("POST", "/api/v1/namespaces/a/configmaps", true, true),
            ("POST", "/api/v1/namespaces/a/configmaps?dryRun=All", false, false),
            ("GET", "/api/v1/namespaces/a/configmaps/b", false, false),
            ("PATCH", "/apis/core.rukpak.io/v1alpha2/bundledeployments/b/status", true, false),
            ("PATCH", "/api/v1/namespaces/chandler-system/secrets/b", true, false),
            ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", true, false),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", false, false),
        ] {
            let kind = kind(method, uri, "application/json");
            assert_eq!((kind.writes(), kind.writes_object()), (writes, object), "{kind}");
        }
    }
}
