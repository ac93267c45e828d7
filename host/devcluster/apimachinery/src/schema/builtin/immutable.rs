//! Fields that may not change once set.

use serde_json::Value;

use crate::schema::{error::FieldError, path::FieldPath};

/// Reports each of `fields` that differs from the stored object. `{}` in the detail is replaced by the field.
pub(super) fn fields(
    fields: &[&str],
    new: &Value,
    old: Option<&Value>,
    path: &FieldPath<'_>,
    detail: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(old) = old else { return };
    for field in fields {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&path.field(field), detail.replace("{}", field)));
        }
    }
}

/// Reports one field that differs from the stored object, as kube-apiserver's `ValidateImmutableField`.
pub(super) fn field(name: &str, new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if new.get(name) != old.get(name) {
        let value = new.get(name).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.field(name), value, "field is immutable"));
    }
}
