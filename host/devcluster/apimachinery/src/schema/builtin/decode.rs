//! Checks whether a value can be decoded into the Go struct of a built-in kind.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::schema::{
    model::{Scalar, Schema, Shape},
    quantity,
    registry::Builtins,
    resources::GroupVersionKind,
    validate::is_time,
};

/// Why an object cannot be decoded, with the message of Go's JSON decoder; `None` if it can.
///
/// Types are checked, numbers, quantities, times and base64; `null` is the zero value of every type.
pub fn decode_error(kind: &GroupVersionKind, object: &Value) -> Option<String> {
    let resource = Builtins::get().kind(kind)?;
    let place = Place { structure: &kind.kind, path: &mut String::new() };
    check(&resource.schema, object, place)
}

/// The location of a value: the innermost struct, and the path of fields without indices.
struct Place<'a> {
    structure: &'a str,
    path: &'a mut String,
}

fn check(schema: &Schema, value: &Value, place: Place<'_>) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            let structure = schema.type_name().unwrap_or(place.structure);
            let length = place.path.len();
            for (name, child) in object {
                match (properties.get(name), values) {
                    (Some(property), _) => {
                        let _ = write!(place.path, ".{name}");
                        let error = check(property, child, Place { structure, path: &mut *place.path });
                        place.path.truncate(length);
                        if error.is_some() {
                            return error;
                        }
                    }
                    (None, Some(values)) => {
                        let error = check(values, child, Place { structure: place.structure, path: &mut *place.path });
                        if error.is_some() {
                            return error;
                        }
                    }
                    (None, None) => {}
                }
            }
            None
        }
        (Shape::List { items, .. }, Value::Array(list)) => list
            .iter()
            .find_map(|item| check(items, item, Place { structure: place.structure, path: &mut *place.path })),
        (Shape::Any | Shape::Deduced, _) => None,
        (Shape::Scalar(scalar), value) => self::scalar(scalar, schema, value, &place),
        _ => Some(mismatch(schema, value, &place)),
    }
}

fn scalar(scalar: &Scalar, schema: &Schema, value: &Value, place: &Place<'_>) -> Option<String> {
    match (scalar, value) {
        (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Number { .. } | Scalar::Quantity, Value::Number(_))
        | (Scalar::IntOrString, Value::String(_)) => None,
        (Scalar::IntOrString, Value::Number(number)) if number.as_i64().is_some_and(is_int32) => None,
        (Scalar::IntOrString, value) => {
            Some(format!("json: cannot unmarshal {} into Go value of type int32", described(value)))
        }
        (Scalar::Integer { format, .. }, Value::Number(number)) => {
            let fits = |whole: i64| format.as_deref() != Some("int32") || is_int32(whole);
            (!number.as_i64().is_some_and(fits)).then(|| mismatch(schema, value, place))
        }
        (Scalar::Quantity, Value::String(text)) => quantity::parse(text.trim()).err().map(|error| error.to_string()),
        (Scalar::Quantity, _) => quantity::parse("").err().map(|error| error.to_string()),
        (Scalar::String { format, .. }, Value::String(text)) => match format.as_deref() {
            Some("byte") => base64_error(text),
            Some("date-time") if !is_time(text) => {
                let layout = "2006-01-02T15:04:05Z07:00";
                Some(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
            }
            _ => None,
        },
        _ => Some(mismatch(schema, value, place)),
    }
}

fn is_int32(value: i64) -> bool {
    i32::try_from(value).is_ok()
}

fn base64_error(text: &str) -> Option<String> {
    let error = STANDARD.decode(text.replace(['\n', '\r'], "")).err()?;
    let position = match error {
        base64::DecodeError::InvalidByte(offset, _) | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
        _ => text.len() / 4 * 4,
    };
    Some(format!("illegal base64 data at input byte {position}"))
}

fn mismatch(schema: &Schema, value: &Value, place: &Place<'_>) -> String {
    let (found, expected) = (described(value), go_type(schema));
    format!("json: cannot unmarshal {found} into Go struct field {}{} of type {expected}", place.structure, place.path)
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_f64() || number.as_i64().is_none_or(|number| !is_int32(number)) => {
            format!("number {number}")
        }
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// The Go type; named string types of Go are not distinguished.
fn go_type(schema: &Schema) -> String {
    match &schema.shape {
        Shape::Object { values: Some(values), properties, .. } if properties.is_empty() => {
            format!("map[string]{}", go_type(values))
        }
        Shape::Object { .. } => schema.type_name().map_or_else(|| "object".to_owned(), |name| format!("v1.{name}")),
        Shape::List { items, .. } => format!("[]{}", go_type(items)),
        Shape::Scalar(Scalar::Boolean) => "bool".to_owned(),
        Shape::Scalar(Scalar::Integer { format, .. }) => format.clone().unwrap_or_else(|| "int32".to_owned()),
        Shape::Scalar(Scalar::Number { .. }) => "float64".to_owned(),
        Shape::Scalar(Scalar::String { format: Some(format), .. }) if format == "byte" => "[]uint8".to_owned(),
        Shape::Scalar(_) | Shape::Any | Shape::Deduced => "string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn undecodable_values_are_reported() {
        let cases = [
            (
                "",
                "ConfigMap",
                json!({"data": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            ),
            ("", "ConfigMap", json!({"data": {"a": null}}), ""),
            ("", "ConfigMap", json!({"binaryData": {"a": "x"}}), "illegal base64 data at input byte 0"),
            (
                "rbac.authorization.k8s.io",
                "Role",
                json!({"rules": [{"verbs": {}}]}),
                "json: cannot unmarshal object into Go struct field PolicyRule.rules.verbs of type []string",
            ),
            (
                "rbac.authorization.k8s.io",
                "Role",
                json!({"rules": [7]}),
                "json: cannot unmarshal number into Go struct field Role.rules of type v1.PolicyRule",
            ),
            (
                "apps",
                "Deployment",
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "apps",
                "Deployment",
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
                "json: cannot unmarshal bool into Go value of type int32",
            ),
            (
                "",
                "PersistentVolume",
                json!({"spec": {"capacity": {"storage": "x"}}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        ];
        for (group, kind, object, expected) in cases {
            let error = decode_error(&GroupVersionKind::new(group, "v1", kind), &object);
            assert_eq!(error.unwrap_or_default(), expected);
        }
    }
}
