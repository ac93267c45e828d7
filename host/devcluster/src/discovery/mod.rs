//! Discovery of groups, versions and resources, in the legacy and in the aggregated form.

mod aggregated;
mod subresource;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    registry::{Resource, Snapshot},
    respond::{self, Body},
    status::Status,
};

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/api`
pub fn legacy_versions(snapshot: &Snapshot, accept: &str) -> Response<Body> {
    if let Some(version) = aggregated::wanted(accept) {
        return aggregated::answer(snapshot, version, true);
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
    if let Some(version) = aggregated::wanted(accept) {
        return aggregated::answer(snapshot, version, false);
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
///
/// # Errors
/// When there is no such group.
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
///
/// # Errors
/// When there is no such group and version.
pub fn group_version(snapshot: &Snapshot, group: &str, version: &str) -> Result<Response<Body>, Status> {
    let mut served: Vec<_> = snapshot.group_version(group, version).collect();
    if served.is_empty() {
        return Err(Status::no_such_resource());
    }
    served.sort_by_key(|resource| resource.plural());
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(respond::value(
        StatusCode::OK,
        &json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": served.into_iter().flat_map(|resource| resources(resource)).collect::<Vec<_>>(),
        }),
    ))
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.resource_type.virtual_resource {
        &["create"]
    } else if resource.is_core("componentstatuses") {
        &["get", "list"]
    } else if resource.is_core("namespaces") {
        &["create", "delete", "get", "list", "patch", "update", "watch"]
    } else {
        VERBS
    }
}

/// A resource and its subresources.
fn resources(resource: &Resource) -> Vec<Value> {
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
    if verbs(resource).contains(&"create") && !names.virtual_resource {
        main.insert("storageVersionHash".to_owned(), storage_version_hash(resource).into());
    }
    let mut all = vec![Value::Object(main)];
    for subresource in subresource::of(resource) {
        let mut entry = json!({
            "name": format!("{}/{}", names.plural, subresource.name),
            "singularName": "",
            "namespaced": names.namespaced,
            "kind": subresource.kind.unwrap_or(kind),
            "verbs": subresource.verbs,
        });
        if let (Some((group, version)), Some(entry)) = (subresource.group_version, entry.as_object_mut()) {
            entry.insert("group".to_owned(), group.into());
            entry.insert("version".to_owned(), version.into());
        }
        all.push(entry);
    }
    all
}

/// The hash is equal for every version of a resource with the same storage (`k8s.io/apiserver/pkg/endpoints/discovery`).
fn storage_version_hash(resource: &Resource) -> String {
    let kind = &resource.kind().kind;
    // CRDs are still encoded as they were in their beta, so that is what the hash is of.
    let stored = if resource.is_crd() { "apiextensions.k8s.io/v1beta1" } else { &resource.storage_api_version };
    let separator = if stored.contains('/') { "" } else { "/" };
    let digest = Sha256::digest(format!("{separator}{stored}/{kind}"));
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests;
