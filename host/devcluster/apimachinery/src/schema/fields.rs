//! Fields of objects, read where they may be absent or of another type.

use serde_json::Value;

use crate::schema::{error::FieldError, path::FieldPath};

/// A text field; empty when absent.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list field. Empty if the field is absent.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The details of a syntax rule as errors about one value.
pub(crate) fn invalid_each(path: &FieldPath<'_>, value: &str, details: Vec<String>, errors: &mut Vec<FieldError>) {
    errors.extend(details.into_iter().map(|detail| FieldError::invalid(path, value, detail)));
}
