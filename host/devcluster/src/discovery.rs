//! Discovery: which groups, versions and resources there are, in the plain and in the aggregated form.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    http::{
        negotiate::MediaType,
        respond::{self, Body},
    },
    registry::{Resource, Snapshot},
    status::Status,
    store::object::render,
};

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// `/api`
pub fn legacy_versions(snapshot: &Snapshot, accept: &str) -> Response<Body> {
    if let Some(version) = aggregated_version(accept) {
        return aggregated(snapshot, version, true);
    }
    respond::value(
        StatusCode::OK,
        &json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }),
    )
}

/// `/apis`
pub fn groups(snapshot: &Snapshot, accept: &str) -> Response<Body> {
    if let Some(version) = aggregated_version(accept) {
        return aggregated(snapshot, version, false);
    }
    let groups = snapshot.groups();
    let groups: Vec<Value> = groups
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| api_group(group, versions))
        .collect();
    respond::value(StatusCode::OK, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/<group>`
pub fn group(snapshot: &Snapshot, wanted: &str) -> Result<Response<Body>, Status> {
    let groups = snapshot.groups();
    let (group, versions) = groups.iter().find(|(group, _)| *group == wanted).ok_or_else(Status::no_such_resource)?;
    let mut document = api_group(group, versions);
    if let Some(document) = document.as_object_mut() {
        document.insert("kind".to_owned(), "APIGroup".into());
        document.insert("apiVersion".to_owned(), "v1".into());
    }
    Ok(respond::value(StatusCode::OK, &document))
}

fn api_group(group: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    json!({
        "name": group,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

/// `/api/v1`, `/apis/<group>/<version>`
pub fn group_version(snapshot: &Snapshot, group: &str, version: &str) -> Result<Response<Body>, Status> {
    let resources: Vec<Value> =
        snapshot.group_version(group, version).flat_map(|resource| plain_resources(resource)).collect();
    if resources.is_empty() {
        return Err(Status::no_such_resource());
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(respond::value(
        StatusCode::OK,
        &json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": resources,
        }),
    ))
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.resource_type.virtual_resource { &["create"] } else { VERBS }
}

fn plain_resources(resource: &Resource) -> Vec<Value> {
    let names = &resource.resource_type;
    let kind = &resource.kind().kind;
    let mut main = Map::new();
    main.insert("name".to_owned(), names.plural.as_str().into());
    main.insert("singularName".to_owned(), names.singular.as_str().into());
    main.insert("namespaced".to_owned(), names.namespaced.into());
    main.insert("kind".to_owned(), kind.as_str().into());
    main.insert("verbs".to_owned(), verbs(resource).into());
    if !names.short_names.is_empty() {
        main.insert("shortNames".to_owned(), names.short_names.clone().into());
    }
    if !names.categories.is_empty() {
        main.insert("categories".to_owned(), names.categories.clone().into());
    }
    main.insert("storageVersionHash".to_owned(), storage_version_hash(resource).into());
    let mut all = vec![Value::Object(main)];
    for Subresource { name, kind: other, verbs } in subresources(resource) {
        let mut entry = json!({
            "name": format!("{}/{name}", names.plural),
            "singularName": "",
            "namespaced": names.namespaced,
            "kind": other.map_or(kind.as_str(), |[.., kind]| kind),
            "verbs": verbs,
        });
        if let (Some([group, version, _]), Some(entry)) = (other, entry.as_object_mut()) {
            entry.insert("group".to_owned(), group.into());
            entry.insert("version".to_owned(), version.into());
        }
        all.push(entry);
    }
    all
}

/// A subresource that is served.
struct Subresource {
    name: &'static str,
    /// Group, version and kind where it is not the resource's own.
    kind: Option<[&'static str; 3]>,
    verbs: &'static [&'static str],
}

/// The subresources that are served.
fn subresources(resource: &Resource) -> Vec<Subresource> {
    let own = |name| Subresource { name, kind: None, verbs: SUBRESOURCE_VERBS };
    let mut all = Vec::new();
    if resource.is_core("namespaces") {
        all.push(Subresource { verbs: &["update"], ..own("finalize") });
    }
    if resource.resource_type.scale.is_some() {
        all.push(Subresource { kind: Some(["autoscaling", "v1", "Scale"]), ..own("scale") });
    }
    if resource.resource_type.status {
        all.push(own("status"));
    }
    if resource.is_core("serviceaccounts") {
        let kind = Some(["authentication.k8s.io", "v1", "TokenRequest"]);
        all.push(Subresource { name: "token", kind, verbs: &["create"] });
    }
    all
}

fn storage_version_hash(resource: &Resource) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let digest = Sha256::digest(format!("{}/{}", resource.storage_api_version, resource.kind().kind));
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// The version of aggregated discovery that a client prefers over the plain form.
fn aggregated_version(accept: &str) -> Option<&'static str> {
    for media in MediaType::parse_all(accept).filter(MediaType::is_json) {
        let known = match (media.parameter("g"), media.parameter("v"), media.parameter("as")) {
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => Some("v2"),
            (Some("apidiscovery.k8s.io"), Some("v2beta1"), Some("APIGroupDiscoveryList")) => Some("v2beta1"),
            (None, None, None) => return None,
            _ => None,
        };
        if known.is_some() {
            return known;
        }
    }
    None
}

fn aggregated(snapshot: &Snapshot, version: &'static str, core: bool) -> Response<Body> {
    let body =
        snapshot.document(&format!("discovery/{version}/{core}"), || aggregated_document(snapshot, version, core));
    let mut response = respond::json(StatusCode::OK, body);
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn aggregated_document(snapshot: &Snapshot, version: &str, core: bool) -> Bytes {
    let groups = snapshot.groups();
    let groups = groups.iter().filter(|(group, _)| group.is_empty() == core).map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let resources: Vec<Value> =
                snapshot.group_version(group, version).map(|resource| aggregated_resource(resource)).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        });
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
    });
    render(&json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": groups.collect::<Vec<_>>(),
    }))
}

fn aggregated_resource(resource: &Resource) -> Value {
    let names = &resource.resource_type;
    let kind = resource.kind();
    let response_kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let own = || response_kind(&kind.group, &kind.version, &kind.kind);
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|Subresource { name, kind: other, verbs }| {
            let shown = other.map_or_else(own, |[group, version, kind]| response_kind(group, version, kind));
            json!({"subresource": name, "responseKind": shown, "verbs": verbs})
        })
        .collect();
    let mut entry = json!({
        "resource": names.plural,
        "responseKind": own(),
        "scope": if names.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": names.singular,
        "verbs": verbs(resource),
    });
    if let Some(entry) = entry.as_object_mut() {
        for (field, values) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
            if !values.is_empty() {
                entry.insert(field.to_owned(), values.clone().into());
            }
        }
        if !subresources.is_empty() {
            entry.insert("subresources".to_owned(), subresources.into());
        }
    }
    entry
}
