//! Answers without content.

use axum::response::{IntoResponse, Response};
use chandler_content::ContentError;
use http::{
    HeaderValue, StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};

/// Why a request has no other answer. The text is for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The token is missing or not valid.
    Unauthenticated(&'static str),
    /// The user may not do this.
    Forbidden(String),
    /// There is no such content.
    Absent(String),
    /// The request is malformed.
    Malformed(String),
    /// The content is not the one that is wanted.
    Conflict(String),
    /// The content is refused.
    Unusable(String),
    /// There are more bytes than this.
    TooLarge(u64),
    /// The caller is too slow.
    Slow(&'static str),
    /// No range of the content is asked for. It has this many bytes.
    Range(u64),
    /// The API server does not answer, or too many requests are under way.
    Unavailable(&'static str),
    /// The cache is full.
    Full(String),
    /// The disk failed. The log has the cause.
    Failed,
}

impl Refusal {
    /// The disk failed, or a task that uses it. `what` is for the log.
    pub(crate) fn failed(what: &str, error: &dyn std::error::Error) -> Self {
        tracing::warn!(%error, "{what}");
        Self::Failed
    }

    /// Content cannot be written, though it may be right: the cache is full, or the disk failed.
    pub(crate) fn unwritten(what: &str, error: impl Into<ContentError>) -> Self {
        match error.into() {
            ContentError::CacheFull(full) => Self::Full(full.to_string()),
            error => Self::failed(what, &error),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Unauthenticated(why) => (StatusCode::UNAUTHORIZED, why.to_owned()),
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, why),
            Self::Absent(what) => (StatusCode::NOT_FOUND, what),
            Self::Malformed(why) => (StatusCode::BAD_REQUEST, why),
            Self::Conflict(why) => (StatusCode::CONFLICT, why),
            Self::Unusable(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
            Self::TooLarge(most) => (StatusCode::PAYLOAD_TOO_LARGE, format!("an archive has at most {most} bytes")),
            Self::Slow(why) => (StatusCode::REQUEST_TIMEOUT, why.to_owned()),
            Self::Range(bytes) => return unsatisfiable(bytes),
            Self::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
            Self::Full(why) => (StatusCode::INSUFFICIENT_STORAGE, why),
            Self::Failed => {
                (StatusCode::INTERNAL_SERVER_ERROR, "the disk of the controller failed; see its log".to_owned())
            }
        };
        let mut response = (status, format!("{text}\n")).into_response();
        let extra = match status {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer realm=\"chandler\"")),
            StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "5")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// RFC 9110, 14.4: the answer names the length.
fn unsatisfiable(bytes: u64) -> Response {
    use headers::{ContentRange, HeaderMapExt as _};
    let mut response = StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    response.headers_mut().typed_insert(ContentRange::unsatisfied_bytes(bytes));
    response
}
