//! Label selectors.

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{invalid_each, list, text},
    metadata::label_errors,
    names,
    path::FieldPath,
};

/// Validates a label selector (`k8s.io/apimachinery/pkg/apis/meta/v1/validation.ValidateLabelSelector`).
pub(crate) fn selector(selector: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    errors.extend(label_errors(selector.get("matchLabels"), &path.field("matchLabels")));
    let expressions = path.field("matchExpressions");
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = expressions.index(index);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&path.field("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&path.field("values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(&path.field("operator"), other, "not a valid selector operator")),
        }
        let key = text(expression, "key");
        invalid_each(&path.field("key"), key, names::qualified_name(key), errors);
        let values_path = path.field("values");
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            invalid_each(&values_path.index(index), value, names::label_value(value), errors);
        }
    }
}

/// Validates the selector in a field, if there is one.
pub(crate) fn optional(parent: &Value, field: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if let Some(found) = parent.get(field).filter(|found| found.is_object()) {
        selector(found, &path.field(field), errors);
    }
}

/// Whether a selector selects everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    list(selector, "matchExpressions").is_empty()
        && selector.get("matchLabels").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}
