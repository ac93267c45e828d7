//! `/openapi/v3`: an index and a document per group and version. There is no `/openapi/v2`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use chandler_devcluster_schema::{ResourceType, openapi};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    http::respond::{self, Body},
    registry::{Resource, Snapshot},
    status::Status,
    store::object::render,
};

/// `/openapi/v3`: where the documents are, with a hash that changes when they do.
pub fn index(snapshot: &Snapshot) -> Response<Body> {
    let body = snapshot.document("openapi", || {
        let mut paths = Map::new();
        for (group, versions) in snapshot.groups() {
            for version in versions {
                let path = path(group, version);
                let hash = snapshot.document_of(group, version, "openapi hash", || {
                    URL_SAFE_NO_PAD.encode(Sha256::digest(rendered(snapshot, group, version))).into()
                });
                let url = format!("/openapi/v3/{path}?hash={}", String::from_utf8_lossy(&hash));
                paths.insert(path, json!({"serverRelativeURL": url}));
            }
        }
        render(&json!({"paths": paths}))
    });
    respond::json(StatusCode::OK, body)
}

/// `/openapi/v3/<path>`
///
/// # Errors
/// When there is no such group and version.
pub fn document(snapshot: &Snapshot, wanted: &str) -> Result<Response<Body>, Status> {
    let groups = snapshot.groups();
    let all = groups.iter().flat_map(|(group, versions)| versions.iter().map(move |version| (*group, *version)));
    let (group, version) =
        all.into_iter().find(|(group, version)| path(group, version) == wanted).ok_or_else(Status::no_such_resource)?;
    Ok(respond::json(StatusCode::OK, rendered(snapshot, group, version)))
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn rendered(snapshot: &Snapshot, group: &str, version: &str) -> Bytes {
    snapshot.document_of(group, version, "openapi", || {
        let resources: Vec<Arc<Resource>> = snapshot.group_version(group, version).cloned().collect();
        let types: Vec<&ResourceType> = resources.iter().map(|resource| &resource.resource_type).collect();
        let document: Value = openapi::document("Kubernetes", &types);
        render(&document)
    })
}
