//! Validation of single values.

use serde_json::Value;

use super::format;
use crate::schema::{
    error::FieldError,
    model::{Pattern, Range, Scalar},
    path::FieldPath,
    quantity,
};

/// The name of a value's type in messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The error about a value that is not of the expected type.
pub(super) fn wrong_type(expected: &str, value: &Value, path: &FieldPath<'_>) -> FieldError {
    let found = type_name(value);
    FieldError::wrong_type(path, found, format!("{path} in body must be of type {expected}: {found:?}"))
}

/// Checks type and bounds of a single value; returns whether the type is right.
pub(super) fn check(scalar: &Scalar, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) -> bool {
    let expected = match (scalar, value) {
        (Scalar::String { format, pattern, length }, Value::String(text)) => {
            if let Some(format) = format.as_deref().filter(|format| !format::matches(format, text)) {
                let detail = format!("{path} in body must be of type {format}: {text:?}");
                errors.push(FieldError::wrong_type(path, text.as_str(), detail));
            }
            // Of length and pattern, the first that does not hold is reported.
            let characters = text.chars().count() as u64;
            let mut invalid = |detail: String| errors.push(FieldError::invalid(path, text.as_str(), detail));
            let matches = |pattern: &Pattern| pattern.compiled().is_some_and(|pattern| pattern.is_match(text));
            if let Some(greatest) = length.1.filter(|greatest| characters > *greatest) {
                errors.push(FieldError::too_long(path, greatest));
            } else if let Some(least) = length.0.filter(|least| characters < *least) {
                invalid(format!("{path} in body should be at least {least} chars long"));
            } else if let Some(pattern) = pattern.as_ref().filter(|pattern| !matches(pattern)) {
                invalid(format!("{path} in body should match '{}'", pattern.as_str()));
            }
            return true;
        }
        (Scalar::Integer { format, range }, Value::Number(number)) if is_whole(number) => {
            check_range(range, value, path, errors);
            let fits = |value: i64| format.as_deref() != Some("int32") || i32::try_from(value).is_ok();
            if !number.as_i64().is_none_or(fits) {
                errors.push(FieldError::invalid(
                    path,
                    value.clone(),
                    format!("{path} in body must be of type int32: {number}"),
                ));
            }
            return true;
        }
        (Scalar::Number { range }, Value::Number(_)) => {
            check_range(range, value, path, errors);
            return true;
        }
        (Scalar::IntOrString, Value::Number(number)) if is_whole(number) => return true,
        (Scalar::Boolean, Value::Bool(_))
        | (Scalar::IntOrString, Value::String(_))
        | (Scalar::Quantity, Value::Number(_)) => return true,
        (Scalar::Quantity, Value::String(text)) => {
            if let Err(error) = quantity::parse(text) {
                errors.push(FieldError::invalid(path, text.as_str(), error.to_string()));
            }
            return true;
        }
        (Scalar::Integer { .. }, _) => "integer",
        (Scalar::Number { .. }, _) => "number",
        (Scalar::Boolean, _) => "boolean",
        (Scalar::IntOrString, _) => "integer,string",
        (Scalar::String { .. } | Scalar::Quantity, _) => "string",
    };
    errors.push(wrong_type(expected, value, path));
    false
}

/// `1.0` counts as whole, as in JSON schema.
fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0 && value.is_finite())
}

fn check_range(range: &Range, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(number) = value.as_f64() else { return };
    let mut invalid = |rule: String| {
        errors.push(FieldError::invalid(path, value.clone(), format!("{path} in body should be {rule}")));
    };
    if let Some(minimum) = range.minimum {
        if range.exclusive_minimum && number <= minimum {
            invalid(format!("greater than {minimum}"));
        } else if number < minimum {
            invalid(format!("greater than or equal to {minimum}"));
        }
    }
    if let Some(maximum) = range.maximum {
        if range.exclusive_maximum && number >= maximum {
            invalid(format!("less than {maximum}"));
        } else if number > maximum {
            invalid(format!("less than or equal to {maximum}"));
        }
    }
    if let Some(multiple) = range.multiple_of.filter(|multiple| *multiple > 0.0) {
        let quotient = number / multiple;
        if (quotient - quotient.round()).abs() > 1e-9 {
            invalid(format!("a multiple of {multiple}"));
        }
    }
}
