//! Validation of a value against its type.

use serde_json::Value;

use crate::{error::FieldError, schema::Schema};

/// Validates `new` against `schema`; `old` is what is stored, on an update.
pub fn validate(_schema: &Schema, _new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
