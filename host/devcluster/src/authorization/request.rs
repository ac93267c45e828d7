//! Derives the requested access from method, path and query (`k8s.io/apiserver/pkg/endpoints/request.RequestInfo`).

use chandler_devcluster_apimachinery::access::{Attributes, NonResourceAttributes, ResourceAttributes};
use http::Method;

use crate::request::query::Query;

/// The requested access. The path is still percent-encoded; it is split as for dispatching, so that nothing else
/// is allowed than what then happens.
pub fn attributes(method: &Method, path: &str, query: &Query) -> Attributes {
    let decoded =
        |segment: &str| percent_encoding::percent_decode_str(segment).decode_utf8().map(std::borrow::Cow::into_owned);
    let segments = path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect::<Result<Vec<_>, _>>();
    // A path that cannot be decoded names nothing; an authorized user gets 404.
    let segments = segments.unwrap_or_default();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let resource = match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => resource(method, query, "", version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => resource(method, query, group, version, rest),
        _ => None,
    };
    resource.map_or_else(
        || {
            let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
            Attributes::NonResource(NonResourceAttributes { path, verb: method.as_str().to_lowercase() })
        },
        Attributes::Resource,
    )
}

fn resource(method: &Method, query: &Query, group: &str, version: &str, rest: &[&str]) -> Option<ResourceAttributes> {
    let (prefixed, rest) = match rest {
        // The old paths for watches.
        [verb @ ("watch" | "proxy"), rest @ ..] => (Some(*verb), rest),
        _ => (None, rest),
    };
    let (namespace, rest) = match rest {
        // These are about the namespace itself, which then is both namespace and name.
        ["namespaces", namespace, "status" | "finalize", ..] | ["namespaces", namespace] => (*namespace, rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let part = |index: usize| rest.get(index).copied().unwrap_or_default();
    let (plural, mut name) = (part(0), part(1));
    if plural.is_empty() {
        return None;
    }
    let verb = match (prefixed, method.as_str()) {
        (Some(verb), _) => verb,
        // kube-apiserver ignores the parameter in this case; this server watches the object.
        (None, "GET") if !name.is_empty() && part(2).is_empty() && query.flag("watch") => "watch",
        (None, "GET" | "HEAD") if !name.is_empty() => "get",
        (None, "GET" | "HEAD") => {
            name = query.get("fieldSelector").and_then(selected_name).unwrap_or_default();
            if query.flag("watch") { "watch" } else { "list" }
        }
        (None, "POST") => "create",
        (None, "PUT") => "update",
        (None, "PATCH") => "patch",
        (None, "DELETE") if name.is_empty() => "deletecollection",
        (None, "DELETE") => "delete",
        _ => "",
    };
    let own = str::to_owned;
    Some(ResourceAttributes {
        namespace: own(namespace),
        verb: own(verb),
        group: own(group),
        version: own(version),
        resource: own(plural),
        subresource: own(part(2)),
        name: own(name),
    })
}

/// The name that a field selector requires, when it is one that a path could hold.
fn selected_name(selector: &str) -> Option<&str> {
    let terms = selector.split(',').filter_map(|term| {
        let value = term.trim().strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value))
    });
    let plain = |name: &&str| !name.is_empty() && !name.contains(['/', '%', '\\', '=']) && !matches!(*name, "." | "..");
    terms.into_iter().find(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(method: &str, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        match attributes(&method, path, &Query::parse(query)) {
            Attributes::NonResource(NonResourceAttributes { path, verb }) => format!("{verb} {path}"),
            Attributes::Resource(wanted) => {
                let ResourceAttributes { namespace, verb, group, version, resource, subresource, name } = wanted;
                format!("{verb} {group}/{version} {resource}/{subresource} {namespace}/{name}")
            }
        }
    }

    #[test]
    fn attributes_are_derived_from_method_path_and_query() {
        let cases = [
            ("GET", "/api/v1/pods", "list /v1 pods/ /"),
            ("GET", "/api/v1/namespaces/n/pods?watch=true", "watch /v1 pods/ n/"),
            ("GET", "/api/v1/namespaces/n/pods?watch=0", "list /v1 pods/ n/"),
            ("HEAD", "/api/v1/namespaces/n/pods/a", "get /v1 pods/ n/a"),
            ("GET", "/api/v1/namespaces/n/pods/a?watch=1", "watch /v1 pods/ n/a"),
            ("GET", "/api/v1/namespaces/n/pods/a/log?watch=1", "get /v1 pods/log n/a"),
            ("POST", "/api/v1/namespaces/n/serviceaccounts/a/token", "create /v1 serviceaccounts/token n/a"),
            ("POST", "/apis/apps/v1/namespaces/n/deployments", "create apps/v1 deployments/ n/"),
            ("PUT", "/apis/apps/v1/namespaces/n/deployments/a/scale", "update apps/v1 deployments/scale n/a"),
            ("PATCH", "/apis/apps/v1/namespaces/n/deployments/a", "patch apps/v1 deployments/ n/a"),
            ("DELETE", "/apis/apps/v1/namespaces/n/deployments/a", "delete apps/v1 deployments/ n/a"),
            ("DELETE", "/apis/apps/v1/namespaces/n/deployments", "deletecollection apps/v1 deployments/ n/"),
            ("GET", "/api/v1/namespaces", "list /v1 namespaces/ /"),
            ("GET", "/api/v1/namespaces/n", "get /v1 namespaces/ n/n"),
            ("PUT", "/api/v1/namespaces/n/finalize", "update /v1 namespaces/finalize n/n"),
            ("GET", "/api/v1/nodes/n/proxy/x/y", "get /v1 nodes/proxy /n"),
            ("GET", "/api/v1/watch/namespaces/n/pods", "watch /v1 pods/ n/"),
            ("OPTIONS", "/api/v1/pods", " /v1 pods/ /"),
            (
                "GET",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin",
                "get rbac.authorization.k8s.io/v1 clusterroles/ /system:admin",
            ),
            // Other paths.
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("POST", "/version", "post /version"),
            ("GET", "/api/v1/%FF", "get /api/v1/\u{fffd}"),
            ("GET", "/api/v1/watch", "get /api/v1/watch"),
            // An encoded slash is part of a name.
            ("GET", "/api/v1/namespaces/n/pods%2Flog", "list /v1 pods/log/ n/"),
            ("GET", "//api//v1//pods", "list /v1 pods/ /"),
        ];
        for (method, target, expected) in cases {
            assert_eq!(shown(method, target), expected, "{method} {target}");
        }
    }

    #[test]
    fn a_list_of_one_name_is_about_that_object() {
        let cases = [
            ("fieldSelector=metadata.name%3Da", "a"),
            ("fieldSelector=metadata.name%3D%3Da,spec.x%3D1", "a"),
            ("fieldSelector=spec.x%3D1,metadata.name%3Da", "a"),
            ("fieldSelector=metadata.name!%3Da", ""),
            ("fieldSelector=metadata.name%3D..", ""),
            ("fieldSelector=metadata.namespace%3Da", ""),
            ("labelSelector=metadata.name%3Da", ""),
        ];
        for (query, name) in cases {
            let target = format!("/api/v1/namespaces/n/pods?watch=1&{query}");
            assert_eq!(shown("GET", &target), format!("watch /v1 pods/ n/{name}"), "{query}");
            assert_eq!(shown("DELETE", &target), "deletecollection /v1 pods/ n/", "{query}");
        }
    }
}
