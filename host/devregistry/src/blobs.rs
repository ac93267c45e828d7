//! Blobs and uploads.

use bytes::Bytes;
use chandler_core::Digest;
use http::{HeaderMap, Method, Response, StatusCode, header::CONTENT_RANGE};
use uuid::Uuid;

use crate::{
    faults::Fault,
    response::{self, Body},
    route::query_field,
    storage::Storage,
};

/// Reads a blob.
pub(crate) fn read(
    storage: &Storage,
    method: &Method,
    name: &str,
    digest: &Digest,
    fault: Option<Fault>,
) -> Response<Body> {
    match storage.blob(name, digest) {
        Some(bytes) => {
            let head = *method == Method::HEAD;
            response::object(head, &bytes, "application/octet-stream", digest.as_str(), fault)
        }
        None => response::error(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "blob unknown to registry"),
    }
}

/// Starts an upload, or completes it if the request contains the whole blob.
pub(crate) fn begin(storage: &mut Storage, name: &str, query: &str, body: &Bytes) -> Response<Body> {
    if let Some(digest) = query_field(query, "mount").and_then(|digest| digest.parse().ok()) {
        let from = query_field(query, "from").unwrap_or_default();
        if storage.mount(name, &from, &digest) {
            return created(name, &digest);
        }
    }
    let id = storage.begin_upload(name);
    if query_field(query, "digest").is_some() {
        return finish(storage, name, id, query, body);
    }
    progress(name, id, 0, StatusCode::ACCEPTED)
}

/// Appends a chunk.
pub(crate) fn append(storage: &mut Storage, name: &str, id: Uuid, headers: &HeaderMap, body: &Bytes) -> Response<Body> {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let offset = range.and_then(|range| range.trim_start_matches("bytes ").split('-').next()?.parse().ok());
    match storage.append(name, id, offset, body) {
        Ok(length) => progress(name, id, length, StatusCode::ACCEPTED),
        Err(error) => response::storage_error(&error),
    }
}

/// Appends the last chunk, which may be empty, and stores the upload as a blob.
pub(crate) fn finish(storage: &mut Storage, name: &str, id: Uuid, query: &str, body: &Bytes) -> Response<Body> {
    let Some(digest) = query_field(query, "digest").and_then(|digest| digest.parse::<Digest>().ok()) else {
        return response::error(
            StatusCode::BAD_REQUEST,
            "DIGEST_INVALID",
            "the digest is missing or not a SHA-256 one",
        );
    };
    let finished = storage.append(name, id, None, body).and_then(|_| storage.finish_upload(name, id, &digest));
    match finished {
        Ok(()) => created(name, &digest),
        Err(error) => response::storage_error(&error),
    }
}

/// The progress of an upload.
pub(crate) fn status(storage: &mut Storage, name: &str, id: Uuid) -> Response<Body> {
    match storage.upload_length(name, id) {
        Ok(length) => progress(name, id, length, StatusCode::NO_CONTENT),
        Err(error) => response::storage_error(&error),
    }
}

/// Cancels an upload.
pub(crate) fn cancel(storage: &mut Storage, name: &str, id: Uuid) -> Response<Body> {
    match storage.cancel_upload(name, id) {
        Ok(_) => response::empty(StatusCode::NO_CONTENT),
        Err(error) => response::storage_error(&error),
    }
}

fn created(name: &str, digest: &Digest) -> Response<Body> {
    let mut response = response::empty(StatusCode::CREATED);
    response::header(&mut response, "location", &format!("/v2/{name}/blobs/{digest}"));
    response::header(&mut response, response::DIGEST, digest.as_str());
    response
}

fn progress(name: &str, id: Uuid, length: usize, status: StatusCode) -> Response<Body> {
    let mut response = response::empty(status);
    response::header(&mut response, "location", &format!("/v2/{name}/blobs/uploads/{id}"));
    response::header(&mut response, "docker-upload-uuid", &id.to_string());
    response::header(&mut response, "range", &format!("0-{}", length.saturating_sub(1)));
    response
}
