//! `/openapi/v3`: an index and a document per group and version. There is no `/openapi/v2`.

use std::sync::Arc;

use bytes::Bytes;
use chandler_devcluster_apimachinery::schema::{ResourceType, openapi};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};
use time::{Duration, OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

use crate::{
    registry::{Resource, Snapshot},
    respond::{self, Body},
    status::Status,
    store::object::render,
};

const JSON: &str = "application/json";
/// RFC 9110, 5.6.7.
const HTTP_DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");

/// `/openapi/v3`: where the documents are, with a hash that changes when they do.
pub fn index(snapshot: &Snapshot) -> Response<Body> {
    let body = snapshot.document("openapi", || {
        let mut paths = Map::new();
        for (group, versions) in snapshot.groups() {
            for version in versions {
                let path = path(group, version);
                let url = url(&path, &hash(snapshot, group, version));
                paths.insert(path, json!({"serverRelativeURL": url}));
            }
        }
        render(&json!({"paths": paths}))
    });
    respond::json(StatusCode::OK, body)
}

/// `/openapi/v3/<path>`, with the hash that the client read from the index, if it states one.
///
/// With the right hash the response may be kept forever; with another one it leads to the right one.
///
/// # Errors
/// When there is no such group and version.
pub fn document(
    snapshot: &Snapshot,
    wanted: &str,
    stated: Option<&str>,
    now: OffsetDateTime,
) -> Result<Response<Body>, Status> {
    const YEAR: Duration = Duration::days(365);
    let (group, version) = named(wanted)
        .filter(|(group, version)| snapshot.has_version(group, version))
        .ok_or_else(Status::no_such_resource)?;
    let hash = hash(snapshot, group, version);
    let mut response = match stated {
        Some(stated) if stated != hash => respond::with_type(StatusCode::MOVED_PERMANENTLY, JSON, Bytes::new()),
        _ => respond::json(StatusCode::OK, rendered(snapshot, group, version)),
    };
    let headers = response.headers_mut();
    let mut set = |name: header::HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    set(header::ETAG, format!("\"{hash}\""));
    set(header::VARY, "Accept".to_owned());
    match stated {
        Some(stated) if stated != hash => set(header::LOCATION, url(wanted, &hash)),
        Some(_) => {
            set(header::CACHE_CONTROL, "public, immutable".to_owned());
            set(header::EXPIRES, now.saturating_add(YEAR).format(HTTP_DATE).unwrap_or_default());
        }
        None => {}
    }
    Ok(response)
}

/// A hash of the document.
fn hash(snapshot: &Snapshot, group: &str, version: &str) -> String {
    let hash = snapshot.document_of(group, version, "openapi hash", || {
        format!("{:X}", Sha512::digest(rendered(snapshot, group, version))).into()
    });
    String::from_utf8_lossy(&hash).into_owned()
}

fn url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The group and version of a [`path`].
fn named(path: &str) -> Option<(&str, &str)> {
    match path.strip_prefix("apis/") {
        Some(rest) => rest.split_once('/').filter(|(group, _)| !group.is_empty()),
        None => path.strip_prefix("api/").map(|version| ("", version)),
    }
}

fn rendered(snapshot: &Snapshot, group: &str, version: &str) -> Bytes {
    snapshot.document_of(group, version, "openapi", || {
        let resources: Vec<Arc<Resource>> = snapshot.group_version(group, version).cloned().collect();
        let types: Vec<&ResourceType> = resources.iter().map(|resource| &resource.resource_type).collect();
        let document: Value = openapi::document("Kubernetes", &types);
        render(&document)
    })
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn documents_may_be_kept_while_their_hash_is_right() {
        let snapshot = Registry::default().snapshot();
        let now = datetime!(2026-11-21 14:00:00 UTC);
        let get = |stated: Option<&str>| document(&snapshot, "apis/batch/v1", stated, now).unwrap();
        let text = |response: &Response<Body>, name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        let plain = get(None);
        let hash = text(&plain, "etag").trim_matches('"').to_owned();
        assert_eq!((plain.status(), text(&plain, "expires")), (StatusCode::OK, String::new()));
        let kept = get(Some(&hash));
        assert_eq!(text(&kept, "cache-control"), "public, immutable");
        assert_eq!(text(&kept, "expires"), "Sun, 21 Nov 2027 14:00:00 GMT");
        let moved = get(Some("other"));
        assert_eq!(moved.status(), StatusCode::MOVED_PERMANENTLY);
        assert_eq!(text(&moved, "location"), format!("/openapi/v3/apis/batch/v1?hash={hash}"));
        assert_eq!(document(&snapshot, "apis/none/v1", None, now).unwrap_err().reason, "NotFound");
    }
}
