//! Server-side apply.

use chandler_devcluster_schema::Schema;
use serde_json::Value;

/// One server-side apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The type of the object in the version of the request.
    pub schema: &'a Schema,
    /// What is stored, in the version of the request and with its `metadata.managedFields`; `None` when there is nothing yet.
    pub live: Option<&'a Value>,
    /// What the manager declares: everything that it wants to own and nothing else.
    pub applied: &'a Value,
    /// The field manager, at most 128 bytes.
    pub manager: &'a str,
    /// The version of the request, e.g. `apps/v1`.
    pub api_version: &'a str,
    /// Whether fields that others own are taken over instead of refused.
    pub force: bool,
    /// The subresource applied to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 with whole seconds.
    pub now: &'a str,
}

/// What an apply yields.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The merged object with its new `metadata.managedFields`.
    pub object: Value,
    /// Whether the object differs from what is stored. Where it does not, the times in `managedFields` are unchanged too.
    pub changed: bool,
}

/// A field that the applied object sets to another value than its owner did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: String,
    /// Whether it owns the field by `Apply` or `Update`.
    pub operation: String,
    /// The version in which it owns the field.
    pub api_version: String,
    /// The subresource through which it owns the field; empty for the object itself.
    pub subresource: String,
    /// When it last wrote, where known and the operation is `Update`.
    pub time: Option<String>,
    /// The field, e.g. `.spec.containers[name="a"].image`.
    pub field: String,
}

/// Why an apply fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Others own fields with other values (409).
    #[error("Apply failed with {} conflicts", .0.len())]
    Conflicts(Vec<Conflict>),
    /// The object cannot be applied (400): two items of a list with one key, `managedFields` set, no manager.
    #[error("{0}")]
    Invalid(String),
}

/// Merges what a manager declares into what is stored.
///
/// # Errors
/// When others own a field with another value and `force` is not set, or when the declared object cannot be applied.
pub fn apply(_request: ApplyRequest<'_>) -> Result<ApplyOutcome, ApplyError> {
    Err(ApplyError::Invalid("server-side apply is not built yet".to_owned()))
}
