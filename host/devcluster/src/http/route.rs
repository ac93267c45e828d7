//! Paths.

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, also with a check's name behind.
    Health,
    /// `/api`
    LegacyVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    GroupVersion(String, String),
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/<path of a group and version>`
    OpenApi(String),
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    OpenIdKeys,
    /// `/chandler.dev/faults`, also with the id of a fault behind.
    Faults(Option<String>),
    /// Objects.
    Objects(ObjectPath),
    /// Anything else.
    Unknown,
}

/// A path that names objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPath {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, where the path names one.
    pub namespace: Option<String>,
    /// Name of the resource.
    pub plural: String,
    /// Name of the object; `None` for a collection.
    pub name: Option<String>,
    /// The subresource, with the rest of the path.
    pub subresource: Option<String>,
}

impl Route {
    /// Reads a path, still percent-encoded.
    pub fn parse(path: &str) -> Self {
        let decoded = |segment: &str| {
            percent_encoding::percent_decode_str(segment).decode_utf8().map(std::borrow::Cow::into_owned)
        };
        let Ok(segments) =
            path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect::<Result<Vec<_>, _>>()
        else {
            return Self::Unknown;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["api"] => Self::LegacyVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group, version] => Self::GroupVersion((*group).to_owned(), (*version).to_owned()),
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            [".well-known", "openid-configuration"] => Self::OpenIdConfiguration,
            ["openid", "v1", "jwks"] => Self::OpenIdKeys,
            ["chandler.dev", "faults"] => Self::Faults(None),
            ["chandler.dev", "faults", id] => Self::Faults(Some((*id).to_owned())),
            ["api", version, rest @ ..] => objects("", version, rest),
            ["apis", group, version, rest @ ..] => objects(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // `namespaces/<name>/status` and `/finalize` are about the namespace itself.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        _ => (None, rest),
    };
    let owned = |text: &&str| (*text).to_owned();
    match rest {
        [plural, rest @ ..] => Route::Objects(ObjectPath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            plural: owned(plural),
            name: rest.first().map(owned),
            subresource: rest.get(1..).filter(|rest| !rest.is_empty()).map(|rest| rest.join("/")),
        }),
        [] => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ObjectPath {
        match Route::parse(text) {
            Route::Objects(path) => path,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn object_paths_are_taken_apart() {
        let deployment = path("/apis/apps/v1/namespaces/default/deployments/web/status");
        assert_eq!((deployment.group.as_str(), deployment.version.as_str()), ("apps", "v1"));
        assert_eq!(deployment.namespace.as_deref(), Some("default"));
        assert_eq!(deployment.plural, "deployments");
        assert_eq!((deployment.name.as_deref(), deployment.subresource.as_deref()), (Some("web"), Some("status")));

        let namespace = path("/api/v1/namespaces/default/finalize");
        assert_eq!((namespace.plural.as_str(), namespace.namespace), ("namespaces", None));
        assert_eq!((namespace.name.as_deref(), namespace.subresource.as_deref()), (Some("default"), Some("finalize")));

        assert_eq!(path("/api/v1/namespaces/default").name.as_deref(), Some("default"));
        assert_eq!(path("/api/v1/namespaces").name, None);
        assert_eq!(path("/api/v1/pods").plural, "pods");
        assert_eq!(
            path("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin").name.as_deref(),
            Some("system:admin")
        );
        assert_eq!(path("/api/v1/namespaces/a/pods/p/proxy/x/y").subresource.as_deref(), Some("proxy/x/y"));
    }

    #[test]
    fn other_paths_are_recognised() {
        let cases = [
            ("/api", Route::LegacyVersions),
            ("/apis/", Route::Groups),
            ("/apis/apps", Route::Group("apps".into())),
            ("/apis/apps/v1", Route::GroupVersion("apps".into(), "v1".into())),
            ("/openapi/v3/apis/apps/v1", Route::OpenApi("apis/apps/v1".into())),
            ("/openid/v1/jwks/", Route::OpenIdKeys),
            ("/.well-known/openid-configuration", Route::OpenIdConfiguration),
            ("/chandler.dev/faults", Route::Faults(None)),
            ("/chandler.dev/faults/7", Route::Faults(Some("7".into()))),
            ("/openapi/v2", Route::Unknown),
            ("/readyz/ping", Route::Health),
            ("/%FF", Route::Unknown),
            ("/", Route::Unknown),
        ];
        for (text, route) in cases {
            assert_eq!(Route::parse(text), route, "{text}");
        }
    }
}
