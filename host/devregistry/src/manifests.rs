//! Manifests and tags.

use bytes::Bytes;
use chandler_core::Digest;
use http::{HeaderMap, Method, Response, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::{
    faults::Fault,
    response::{self, Body},
    route::is_tag,
    storage::{MANIFEST_BYTES, Storage, StoredManifest},
};

/// The media type of an index.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Reads a manifest by tag or digest.
pub(crate) fn read(
    storage: &Storage,
    method: &Method,
    name: &str,
    reference: &str,
    fault: Option<Fault>,
) -> Response<Body> {
    let found = storage.resolve(name, reference).and_then(|digest| Some((storage.manifest(name, &digest)?, digest)));
    match found {
        Some((manifest, digest)) => {
            let head = *method == Method::HEAD;
            response::object(head, &manifest.bytes, &manifest.media_type, digest.as_str(), fault)
        }
        None => response::error(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", "manifest unknown"),
    }
}

/// Stores a manifest and, unless it was pushed by digest, tags it.
pub(crate) fn write(
    storage: &mut Storage,
    name: &str,
    reference: &str,
    headers: &HeaderMap,
    body: Bytes,
    referrers: bool,
) -> Response<Body> {
    let refuse = |code: &str, message: &str| response::error(StatusCode::BAD_REQUEST, code, message);
    if body.len() > MANIFEST_BYTES {
        return response::error(StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID", "the manifest is larger than 4 MiB");
    }
    let Ok(manifest) = serde_json::from_slice::<Value>(&body) else {
        return refuse("MANIFEST_INVALID", "the manifest is not JSON");
    };
    let digest = Digest::of(&body);
    let tag = match reference.parse::<Digest>() {
        Ok(expected) if expected != digest => {
            return refuse("DIGEST_INVALID", "the digest of the manifest does not match the reference");
        }
        Ok(_) => None,
        Err(_) if is_tag(reference) => Some(reference),
        Err(_) => return refuse("TAG_INVALID", "the reference is neither a tag nor a SHA-256 digest"),
    };
    if let Some(missing) = first_missing(storage, name, &manifest) {
        return refuse("MANIFEST_BLOB_UNKNOWN", &format!("{missing} must be pushed first"));
    }
    let declared = manifest.get("mediaType").and_then(Value::as_str);
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = sent.or(declared).unwrap_or("application/vnd.oci.image.manifest.v1+json").to_owned();
    match storage.put_manifest(name, StoredManifest { media_type, bytes: body }) {
        Ok(digest) => {
            let mut response = response::empty(StatusCode::CREATED);
            response::header(&mut response, "location", &format!("/v2/{name}/manifests/{digest}"));
            response::header(&mut response, response::DIGEST, digest.as_str());
            let subject = manifest.get("subject").filter(|_| referrers);
            if let Some(subject) = subject.and_then(|subject| subject.get("digest")?.as_str()) {
                // The client need not list it in a tag.
                response::header(&mut response, "oci-subject", subject);
            }
            match tag.map_or(Ok(()), |tag| storage.tag(name, tag, digest)) {
                Ok(()) => response,
                Err(error) => response::storage_error(&error),
            }
        }
        Err(error) => response::storage_error(&error),
    }
}

/// The first blob or manifest that a manifest refers to and the repository lacks.
fn first_missing(storage: &Storage, name: &str, manifest: &Value) -> Option<String> {
    let digest = |descriptor: &Value| descriptor.get("digest").and_then(Value::as_str).map(str::to_owned);
    let list = |field: &str| manifest.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let blobs = manifest.get("config").into_iter().cloned().chain(list("layers"));
    let has_blob = |text: &str| text.parse().is_ok_and(|digest| storage.blob(name, &digest).is_some());
    let has_manifest = |text: &str| text.parse().is_ok_and(|digest| storage.manifest(name, &digest).is_some());
    let missing_blob = blobs.filter_map(|blob| digest(&blob)).find(|digest| !has_blob(digest));
    missing_blob.or_else(|| list("manifests").iter().filter_map(digest).find(|digest| !has_manifest(digest)))
}

/// The manifests whose subject is the one with this digest, as an index. The list is not filtered by type, which is optional.
pub(crate) fn referrers(storage: &Storage, name: &str, digest: &Digest) -> Response<Body> {
    let descriptor = |(found, stored): (&Digest, &StoredManifest)| {
        let manifest: Value = serde_json::from_slice(&stored.bytes).ok()?;
        let subject = manifest.get("subject")?.get("digest")?.as_str()?;
        let config = || manifest.get("config")?.get("mediaType").cloned();
        let artifact_type = manifest.get("artifactType").cloned().or_else(config);
        (subject == digest.as_str()).then(|| {
            json!({
                "mediaType": stored.media_type,
                "digest": found,
                "size": stored.bytes.len(),
                "artifactType": artifact_type,
                "annotations": manifest.get("annotations").cloned().unwrap_or_else(|| json!({})),
            })
        })
    };
    let manifests: Vec<Value> = storage.manifests(name).into_iter().filter_map(descriptor).collect();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut response = response::json(StatusCode::OK, &index);
    response::header(&mut response, "content-type", INDEX);
    response
}

/// The tags of a repository.
pub(crate) fn tags(storage: &Storage, name: &str) -> Response<Body> {
    match storage.tags(name) {
        Some(tags) => response::json(StatusCode::OK, &json!({"name": name, "tags": tags})),
        None => response::error(StatusCode::NOT_FOUND, "NAME_UNKNOWN", "repository name not known to registry"),
    }
}
