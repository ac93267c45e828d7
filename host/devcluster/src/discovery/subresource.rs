//! Subresources as discovery lists them.

use crate::registry::Resource;

const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const CONNECT: &[&str] = &["create", "get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

/// A subresource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subresource<'a> {
    /// Its name in paths.
    pub(super) name: &'a str,
    /// The kind that it takes or answers, where it is not the resource's own.
    pub(super) kind: Option<&'static str>,
    /// Group and version of that kind, where they are not the resource's own.
    pub(super) group_version: Option<(&'static str, &'static str)>,
    /// Its verbs.
    pub(super) verbs: &'static [&'static str],
}

/// The subresources of a resource, by name. Those that a development cluster has no use for answer 501.
pub(super) fn of(resource: &Resource) -> Vec<Subresource<'_>> {
    let names = &resource.resource_type;
    let mut all: Vec<Subresource<'_>> =
        names.subresources.iter().map(|name| described(name, names.plural.as_str())).collect();
    if names.scale.is_some() {
        all.push(described("scale", &names.plural));
    }
    if names.status {
        all.push(described("status", &names.plural));
    }
    all.sort_by_key(|subresource| subresource.name);
    all
}

fn described<'a>(name: &'a str, plural: &str) -> Subresource<'a> {
    let own = |verbs| Subresource { name, kind: None, group_version: None, verbs };
    let of_kind = |kind, verbs| Subresource { kind: Some(kind), ..own(verbs) };
    let elsewhere =
        |group, version, kind, verbs| Subresource { group_version: Some((group, version)), ..of_kind(kind, verbs) };
    match name {
        "attach" => of_kind("PodAttachOptions", CONNECT),
        "binding" => of_kind("Binding", CREATE),
        "eviction" => elsewhere("policy", "v1", "Eviction", CREATE),
        "exec" => of_kind("PodExecOptions", CONNECT),
        "finalize" => own(&["update"]),
        "log" => own(&["get"]),
        "portforward" => of_kind("PodPortForwardOptions", CONNECT),
        "proxy" if plural == "nodes" => of_kind("NodeProxyOptions", PROXY),
        "proxy" if plural == "services" => of_kind("ServiceProxyOptions", PROXY),
        "proxy" => of_kind("PodProxyOptions", PROXY),
        "scale" => elsewhere("autoscaling", "v1", "Scale", READ_AND_WRITE),
        "token" => elsewhere("authentication.k8s.io", "v1", "TokenRequest", CREATE),
        _ => own(READ_AND_WRITE),
    }
}
