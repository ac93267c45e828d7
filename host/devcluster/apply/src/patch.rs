//! Patches: JSON patch, JSON merge patch, strategic merge patch.

use chandler_devcluster_schema::Schema;
use serde_json::Value;

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is malformed (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object (422), e.g. a failed `test`.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch is larger than the server accepts (413).
    #[error("{0}")]
    TooLarge(String),
}

/// Applies an RFC 6902 patch.
///
/// # Errors
/// When the patch is malformed or too large, or does not fit the document.
pub fn json_patch(_document: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Err(PatchError::Malformed("JSON patch is not built yet".to_owned()))
}

/// Applies an RFC 7386 patch.
pub fn merge_patch(document: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged = document.as_object().cloned().unwrap_or_default();
    for (name, change) in patch {
        if change.is_null() {
            merged.remove(name);
        } else {
            let merged_field = merge_patch(merged.get(name).unwrap_or(&Value::Null), change);
            merged.insert(name.clone(), merged_field);
        }
    }
    Value::Object(merged)
}

/// Applies a strategic merge patch.
///
/// # Errors
/// When a directive is malformed, or an item lacks its merge key.
pub fn strategic_merge_patch(_schema: &Schema, _document: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Err(PatchError::Malformed("strategic merge patch is not built yet".to_owned()))
}
