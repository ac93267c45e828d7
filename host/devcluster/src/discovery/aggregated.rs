//! Aggregated discovery (`apidiscovery.k8s.io`): everything in two documents, which clients cache while their `ETag` is current.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use super::{subresource, verbs};
use crate::{
    registry::{Resource, Snapshot},
    request::negotiate::MediaType,
    respond::{self, Body},
    store::object::render,
};

/// The version of aggregated discovery that a client prefers over the plain form.
pub(super) fn wanted(accept: &str) -> Option<&'static str> {
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

/// The core group, or all others.
pub(super) fn answer(snapshot: &Snapshot, version: &'static str, core: bool) -> Response<Body> {
    let name = format!("discovery/{version}/{core}");
    let body = snapshot.document(&name, || document(snapshot, version, core));
    let tag = snapshot.document(&format!("{name}/tag"), || format!("\"{:X}\"", Sha512::digest(&body)).into());
    let mut response = respond::json(StatusCode::OK, body);
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(tag) = HeaderValue::from_maybe_shared(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn document(snapshot: &Snapshot, version: &str, core: bool) -> Bytes {
    let groups = snapshot.groups();
    let groups = groups.iter().filter(|(group, _)| group.is_empty() == core).map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let mut served: Vec<_> = snapshot.group_version(group, version).collect();
            served.sort_by_key(|resource| resource.plural());
            let resources: Vec<Value> = served.into_iter().map(|served| resource(served)).collect();
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

fn resource(resource: &Resource) -> Value {
    let names = &resource.resource_type;
    let own = resource.kind();
    let subresources = subresource::of(resource).into_iter().map(|subresource| {
        let (group, version) = subresource.group_version.unwrap_or((&own.group, &own.version));
        let kind = subresource.kind.unwrap_or(&own.kind);
        json!({
            "subresource": subresource.name,
            "responseKind": {"group": group, "version": version, "kind": kind},
            "verbs": subresource.verbs,
        })
    });
    let subresources: Vec<Value> = subresources.collect();
    let mut entry = json!({
        "resource": names.plural,
        "responseKind": {"group": own.group, "version": own.version, "kind": own.kind},
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
