//! Building responses.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::Value;

use crate::{
    faults::watch::{Line, Reset},
    status::Status,
    store::object::render,
};

/// A response body: all at once, or a stream of watch events.
pub type Body = UnsyncBoxBody<Bytes, Reset>;

/// A JSON response.
pub fn json(code: StatusCode, body: Bytes) -> Response<Body> {
    with_type(code, "application/json", body)
}

/// A response with a body of some type.
pub fn with_type(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A JSON response of a value.
pub fn value(code: StatusCode, value: &Value) -> Response<Body> {
    json(code, render(value))
}

/// A failure.
pub fn status(status: &Status) -> Response<Body> {
    let mut response = value(status.code, &status.to_value());
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(&mut response, &status.warnings);
    response
}

/// A stream of events; those that are there at the same time go out together.
pub fn stream(lines: impl Stream<Item = Result<Line, Reset>> + Send + 'static) -> Response<Body> {
    /// The most events in one piece.
    const TOGETHER: usize = 256;
    let pieces = lines.ready_chunks(TOGETHER).flat_map(|lines| stream::iter(join(lines)));
    let frames = pieces.then(async |piece| {
        if piece.is_err() {
            // Buffered data is flushed when there is nothing to send for a moment.
            tokio::task::yield_now().await;
        }
        piece.map(Frame::data)
    });
    let body = StreamBody::new(frames);
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Puts events together, up to where the stream breaks.
fn join(lines: Vec<Result<Line, Reset>>) -> Vec<Result<Bytes, Reset>> {
    let whole: Vec<Bytes> = lines.iter().map_while(|line| line.as_ref().ok()).map(|line| line.bytes.clone()).collect();
    let broken = lines.into_iter().find_map(Result::err);
    let piece = match whole.as_slice() {
        [only] => only.clone(),
        several => several.concat().into(),
    };
    let piece = (!piece.is_empty()).then_some(Ok(piece));
    piece.into_iter().chain(broken.map(Err)).collect()
}

/// Adds `Warning` headers (RFC 7234, 5.5, code 299), as clients print them: each warning once, and shortened if there are very many.
pub fn warn(response: &mut Response<Body>, warnings: &[String]) {
    /// The most characters of all warnings, and of each if there are more (`k8s.io/apiserver/pkg/endpoints/filters`).
    const TOGETHER: usize = 4096;
    const EACH: usize = 256;
    let lengths = warnings.iter().map(|warning| warning.chars().count());
    let each = if lengths.sum::<usize>() > TOGETHER { EACH } else { TOGETHER };
    let mut written = 0;
    for (index, warning) in warnings.iter().enumerate() {
        if written >= TOGETHER {
            return;
        }
        if warnings.iter().take(index).any(|before| before == warning) {
            continue;
        }
        let text: String = warning.chars().filter(|character| !character.is_control()).take(each).collect();
        written += text.chars().count();
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header_value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(header::WARNING, header_value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(warnings: &[String]) -> Vec<String> {
        let mut response = json(StatusCode::OK, Bytes::new());
        warn(&mut response, warnings);
        let headers = response.headers().get_all(header::WARNING).iter();
        headers.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn warnings_are_escaped_and_not_repeated() {
        let warnings = ["a \"b\" \\ c\n", "d", "d"].map(str::to_owned);
        assert_eq!(headers(&warnings), [r#"299 - "a \"b\" \\ c""#, r#"299 - "d""#]);
    }

    #[test]
    fn many_warnings_are_shortened() {
        let warnings: Vec<String> = (0..1000).map(|index| format!("{index} {}", "x".repeat(1000))).collect();
        let headers = headers(&warnings);
        assert_eq!(headers.len(), 16);
        assert!(headers.iter().all(|header| header.len() < 270), "{headers:?}");
    }
}
