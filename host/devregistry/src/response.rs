//! Responses.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use serde_json::json;

use crate::{faults::Fault, storage::StorageError};

/// The body of a response.
pub(crate) type Body = BoxBody<Bytes, io::Error>;

/// A response with a body.
pub(crate) fn full(status: StatusCode, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let mut response = full(status, value.to_string().into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error as defined by the specification.
pub(crate) fn error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    json(status, &json!({"errors": [{"code": code, "message": message}]}))
}

/// The response for a storage error.
pub(crate) fn storage_error(failure: &StorageError) -> Response<Body> {
    let (status, code) = match failure {
        StorageError::Full(_) | StorageError::Disk { .. } => (StatusCode::INSUFFICIENT_STORAGE, "DENIED"),
        StorageError::Digest { .. } => (StatusCode::BAD_REQUEST, "DIGEST_INVALID"),
        StorageError::NoUpload => (StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN"),
        StorageError::OutOfOrder(_) => (StatusCode::RANGE_NOT_SATISFIABLE, "BLOB_UPLOAD_INVALID"),
    };
    error(status, code, &failure.to_string())
}

/// Sets a header; an invalid value is ignored.
pub(crate) fn header(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The header with the digest of the content.
pub(crate) const DIGEST: &str = "docker-content-digest";

/// A stored object: its bytes for GET, its length for HEAD, altered by the fault.
pub(crate) fn object(
    head: bool,
    bytes: &Bytes,
    media_type: &str,
    digest: &str,
    fault: Option<Fault>,
) -> Response<Body> {
    let mut response = match fault {
        _ if head => empty(StatusCode::OK),
        Some(fault) => faulty(bytes, fault),
        None => full(StatusCode::OK, bytes.clone()),
    };
    if head {
        header(&mut response, CONTENT_LENGTH.as_str(), &bytes.len().to_string());
    }
    header(&mut response, "content-type", media_type);
    if fault != Some(Fault::NoDigestHeader) {
        header(&mut response, DIGEST, digest);
    }
    response
}

fn faulty(bytes: &Bytes, fault: Fault) -> Response<Body> {
    let half = bytes.slice(..bytes.len() / 2);
    match fault {
        Fault::WrongBytes => {
            let mut faulty = bytes.to_vec();
            if let Some(last) = faulty.last_mut() {
                *last ^= 1;
            }
            full(StatusCode::OK, faulty.into())
        }
        Fault::Truncated => full(StatusCode::OK, half),
        Fault::Longer => {
            let mut longer = bytes.to_vec();
            longer.push(0);
            full(StatusCode::OK, longer.into())
        }
        Fault::Broken => {
            let broken = stream::iter([Err(io::Error::other("injected fault"))]);
            let frames = stream::iter([Ok(Frame::data(half))]).chain(broken);
            Response::new(BodyExt::boxed(StreamBody::new(frames)))
        }
        Fault::Status(_) | Fault::Silent | Fault::NoDigestHeader | Fault::RedirectToPlain(_) => {
            full(StatusCode::OK, bytes.clone())
        }
    }
}

/// The response of a fault that replaces any other.
pub(crate) fn fault_status(status: u16) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "DENIED",
        StatusCode::TOO_MANY_REQUESTS => "TOOMANYREQUESTS",
        _ => "UNKNOWN",
    };
    let mut response = error(status, code, "injected fault");
    if status == StatusCode::TOO_MANY_REQUESTS {
        header(&mut response, RETRY_AFTER.as_str(), "7");
    }
    response
}
