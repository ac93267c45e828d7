//! The representation of a response: not modified, as YAML, compressed.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde_json::Value;

use crate::respond::{self, Body};
use crate::{
    faults::watch::Reset,
    request::negotiate::{self, Format},
    status::Status,
};

/// Answers shorter than this are not compressed (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`).
const COMPRESSED_FROM: u64 = 128 * 1024;

/// Gives a response the form that the request asks for. Streams of events stay as they are.
///
/// # Errors
/// When a fault breaks the body off.
pub async fn represent(request: &Request<Bytes>, response: Response<Body>) -> Result<Response<Body>, Reset> {
    let asked = request.headers();
    if is_known(asked, response.headers()) {
        return Ok(not_modified(response));
    }
    let whole = response.body().size_hint().exact();
    let objects = request.uri().path().starts_with("/api");
    let response = match (negotiate::format(text(asked, header::ACCEPT)), whole) {
        (Format::Yaml, Some(_)) if objects && is_json(&response) => yaml(response).await?,
        (Format::Yaml, None) if objects => {
            respond::status(&Status::not_acceptable("406: Not Acceptable\n\nevents are streamed as application/json"))
        }
        _ => response,
    };
    let large = response.body().size_hint().exact().is_some_and(|size| size > COMPRESSED_FROM);
    if large && response.status() == StatusCode::OK && accepts_gzip(asked) {
        return gzip(response).await;
    }
    Ok(response)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn is_json(response: &Response<Body>) -> bool {
    text(response.headers(), header::CONTENT_TYPE) == "application/json"
}

/// Whether the client has what would be answered.
fn is_known(asked: &HeaderMap, answered: &HeaderMap) -> bool {
    let tag = text(answered, header::ETAG);
    let known = text(asked, header::IF_NONE_MATCH).split(',').map(str::trim);
    !tag.is_empty()
        && known.map(|known| known.strip_prefix("W/").unwrap_or(known)).any(|known| known == tag || known == "*")
}

fn not_modified(mut response: Response<Body>) -> Response<Body> {
    let mut empty = respond::with_type(StatusCode::NOT_MODIFIED, "application/json", Bytes::new());
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    *empty.headers_mut() = std::mem::take(headers);
    empty
}

/// The body in other words, with the same status and headers.
async fn rewritten(
    response: Response<Body>,
    rewrite: impl FnOnce(Bytes) -> Option<Bytes>,
) -> Result<(Response<Body>, bool), Reset> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    let (body, changed) = match rewrite(body.clone()) {
        Some(rewritten) => (rewritten, true),
        None => (body, false),
    };
    let mut response = respond::with_type(parts.status, "application/json", body);
    *response.headers_mut() = parts.headers;
    Ok((response, changed))
}

async fn yaml(response: Response<Body>) -> Result<Response<Body>, Reset> {
    let (mut response, changed) = rewritten(response, |json| {
        let value: Value = serde_json::from_slice(&json).ok()?;
        serde_saphyr::to_string(&value).ok().map(Bytes::from)
    })
    .await?;
    if changed {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    }
    Ok(response)
}

fn accepts_gzip(asked: &HeaderMap) -> bool {
    text(asked, header::ACCEPT_ENCODING).split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

async fn gzip(response: Response<Body>) -> Result<Response<Body>, Reset> {
    let (mut response, changed) = rewritten(response, |body| {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
        encoder.write_all(&body).ok()?;
        encoder.finish().ok().map(Bytes::from)
    })
    .await?;
    if changed {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::json;

    use super::*;

    async fn answer(path: &str, headers: &[(&str, &str)], response: Response<Body>) -> (Response<()>, Vec<u8>) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).unwrap();
        let Ok(response) = represent(&request, response).await else { panic!("the body breaks off") };
        let (parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else { panic!("the body breaks off") };
        (Response::from_parts(parts, ()), body.to_bytes().to_vec())
    }

    fn object() -> Response<Body> {
        respond::value(StatusCode::OK, &json!({"kind": "ConfigMap", "data": {"on": "yes", "n": "1"}}))
    }

    #[tokio::test]
    async fn objects_are_returned_as_yaml_on_request() {
        let (response, body) =
            answer("/api/v1/namespaces/a/configmaps/b", &[("accept", "application/yaml")], object()).await;
        assert_eq!(response.headers()["content-type"], "application/yaml");
        insta::assert_snapshot!(String::from_utf8(body).unwrap(), @r#"
        data:
          "n": "1"
          "on": "yes"
        kind: ConfigMap
        "#);
        for (path, accept) in [("/version", "application/yaml"), ("/api/v1/x", "application/json,application/yaml")] {
            let (response, _) = answer(path, &[("accept", accept)], object()).await;
            assert_eq!(response.headers()["content-type"], "application/json", "{path}");
        }
    }

    #[tokio::test]
    async fn large_responses_are_compressed_if_the_client_accepts_it() {
        let large = || respond::value(StatusCode::OK, &json!("x".repeat(200_000)));
        let (response, body) = answer("/api/v1/pods", &[("accept-encoding", "gzip;q=1.0, deflate")], large()).await;
        assert_eq!(response.headers()["content-encoding"], "gzip");
        let mut plain = String::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut plain).unwrap();
        assert_eq!(plain.len(), 200_002);
        for (encoding, response) in [("br", large()), ("gzip;q=0", large()), ("gzip", object())] {
            let (response, _) = answer("/api/v1/pods", &[("accept-encoding", encoding)], response).await;
            assert!(!response.headers().contains_key("content-encoding"), "{encoding}");
        }
    }

    #[tokio::test]
    async fn unmodified_content_is_not_sent_again() {
        let tagged = || {
            let mut response = object();
            response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"a\""));
            response
        };
        for (known, status) in [("\"a\"", 304), ("\"b\", W/\"a\"", 304), ("\"b\"", 200)] {
            let (response, body) = answer("/apis", &[("if-none-match", known)], tagged()).await;
            assert_eq!(response.status(), status, "{known}");
            assert_eq!((response.headers()["etag"].to_str().unwrap(), body.is_empty()), ("\"a\"", status == 304));
        }
    }
}
