//! Failures as Kubernetes reports them: a `Status` object.

use chandler_devcluster_apimachinery::schema::{FieldError, GroupVersionKind, invalid_message};
use http::StatusCode;
use serde_json::{Value, json};

/// Group and plural of a resource, as messages and details name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupResource {
    /// API group; empty for the core group.
    pub group: String,
    /// Name in URLs.
    pub plural: String,
}

impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() { f.write_str(&self.plural) } else { write!(f, "{}.{}", self.plural, self.group) }
    }
}

/// A failed request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason, e.g. `NotFound`; may be empty.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// `details`, or null.
    pub details: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl Status {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null, warnings: Vec::new() }
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        let mut details = json!({"kind": resource.plural});
        if let Some(details) = details.as_object_mut() {
            if !name.is_empty() {
                details.insert("name".to_owned(), name.into());
            }
            if !resource.group.is_empty() {
                details.insert("group".to_owned(), resource.group.as_str().into());
            }
        }
        self.details = details;
        self
    }

    fn causes(mut self, causes: Vec<Value>) -> Self {
        if self.details.is_null() {
            self.details = json!({});
        }
        if let Some(details) = self.details.as_object_mut() {
            details.insert("causes".to_owned(), causes.into());
        }
        self
    }

    /// The object does not exist.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    /// There is no such path or resource.
    pub fn no_such_resource() -> Self {
        let status = Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        Self { details: json!({}), ..status }
    }

    /// The object exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    /// The object has changed, or a precondition does not hold.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// The object has changed since it was read.
    pub fn stale(resource: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// Server-side apply met fields of other managers: message, and per field the owner's text and the field's path.
    pub fn apply_conflict(message: String, causes: Vec<(String, String)>) -> Self {
        let causes = causes
            .into_iter()
            .map(|(message, field)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}));
        Self::new(StatusCode::CONFLICT, "Conflict", message).causes(causes.collect())
    }

    /// The object breaks rules.
    pub fn invalid(kind: &GroupVersionKind, name: &str, errors: &[FieldError]) -> Self {
        let causes = errors.iter().map(
            |error| json!({"reason": error.error_type.reason(), "message": error.message(), "field": error.field}),
        );
        let about = GroupResource { group: kind.group.clone(), plural: kind.kind.clone() };
        let message = invalid_message(&kind.group, &kind.kind, name, errors);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(&about, name).causes(causes.collect())
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The request has no valid credential.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The request is not allowed.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("{resource} {name:?} is forbidden: {why}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    /// An admission policy denies the request; the reason is one that policies may give.
    pub fn denied(resource: &GroupResource, name: &str, why: &str, reason: &str) -> Self {
        let (code, reason) = match reason {
            "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
            "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        };
        let denied = Self::forbidden(resource, name, why).causes(vec![json!({"message": why})]);
        Self { code, reason, ..denied }
    }

    /// A web page sent the request.
    pub fn foreign(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// An object cannot be created in a namespace that is being deleted.
    pub fn namespace_terminating(resource: &GroupResource, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(resource, name, &why).causes(vec![json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        })])
    }

    /// The resource does not support the verb.
    pub fn method_not_allowed(message: impl Into<String>) -> Self {
        Self { details: json!({}), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message) }
    }

    /// The body has an unsupported media type.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// No representation that the client accepts can be made.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The body is too long.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// The revision is no longer known: watchers and pagers must list again.
    pub fn expired(requested: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {requested} ({oldest})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The revision of a continue token is no longer known.
    pub fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The revision has not happened yet.
    pub fn revision_too_large(requested: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
        let mut status = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).causes(vec![json!({
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        })]);
        if let Some(details) = status.details.as_object_mut() {
            details.insert("retryAfterSeconds".to_owned(), 1.into());
        }
        status
    }

    /// Too many requests: come back later.
    pub fn too_many_requests(seconds: u64) -> Self {
        let mut status = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "please try again later");
        status.details = json!({"retryAfterSeconds": seconds});
        status
    }

    /// There is no such fault.
    pub fn unknown_fault(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("fault {id:?} not found"))
    }

    /// The server cannot answer at present.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// The server does not support this; the message says what, and names `DIFFERENCES.md`.
    pub fn not_implemented(what: &str) -> Self {
        let message =
            format!("{what} is not implemented by the development cluster, see host/devcluster/DIFFERENCES.md");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    /// The server failed.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// The seconds after which to retry, if the failure has them.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if let (true, Some(status)) = (self.reason.is_empty(), status.as_object_mut()) {
            status.remove("reason");
        }
        if let (false, Some(status)) = (self.details.is_null(), status.as_object_mut()) {
            status.insert("details".to_owned(), self.details.clone());
        }
        status
    }
}
