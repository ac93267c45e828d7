//! Checks whether an object matches its type, with the messages of structured-merge-diff.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

use crate::{
    apply::structure,
    schema::{Scalar, Schema, Shape},
};

/// Whether two items of a list may have one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// In the stored object.
    Allowed,
    /// In the applied object.
    Refused,
}

/// Whether a value is of a type.
///
/// # Errors
/// Everything that keeps it from being so, each with its path.
pub(crate) fn conform(schema: &Schema, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut errors = Vec::new();
    check(schema, value, duplicates, &mut String::new(), &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        many => Err(many.iter().fold("errors:".to_owned(), |text, error| format!("{text}\n  {error}"))),
    }
}

fn check(schema: &Schema, value: &Value, duplicates: Duplicates, path: &mut String, errors: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let expected = match (&schema.shape, value) {
        (Shape::Any | Shape::Deduced, _) => return,
        (Shape::Object { .. }, Value::Object(object)) => {
            for (name, child) in object {
                let length = path.len();
                let _ = write!(path, ".{name}");
                let field = structure::field(schema, name);
                if field.known {
                    check(&field.schema, child, duplicates, path, errors);
                } else {
                    errors.push(format!("{path}: field not declared in schema"));
                }
                path.truncate(length);
            }
            return;
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            check_items(schema, items, list, duplicates, path, errors);
            return;
        }
        (Shape::Object { .. }, value) => format!("expected map, got &{{{}}}", plain(value)),
        (Shape::List { .. }, value) => format!("expected list, got &{{{}}}", plain(value)),
        (Shape::Scalar(scalar), value) => match scalar_error(scalar, value) {
            Some(error) => error,
            None => return,
        },
    };
    errors.push(at(path, &expected));
}

/// Checks items up to the first one without a unique key.
fn check_items(
    schema: &Schema,
    items: &Schema,
    list: &[Value],
    duplicates: Duplicates,
    path: &mut String,
    errors: &mut Vec<String>,
) {
    let elements = match structure::structure(schema, None) {
        structure::Structure::List(elements) => Some(elements),
        _ => None,
    };
    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let length = path.len();
        match elements.map(|elements| elements.element(item)) {
            None => {
                let _ = write!(path, "[{index}]");
            }
            Some(Err(error)) => {
                errors.push(at(path, &format!("element {index}: {error}")));
                return;
            }
            Some(Ok(element)) => {
                if duplicates == Duplicates::Refused && seen.contains(&element) {
                    errors.push(at(path, &format!("duplicate entries for key {element}")));
                }
                let _ = write!(path, "{element}");
                seen.insert(element);
            }
        }
        check(items, item, duplicates, path, errors);
        path.truncate(length);
    }
}

/// An error with its path, if it has one.
fn at(path: &str, error: &str) -> String {
    if path.is_empty() { error.to_owned() } else { format!("{path}: {error}") }
}

fn scalar_error(scalar: &Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (Scalar::String { .. }, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Integer { .. } | Scalar::Number { .. }, Value::Number(_))
        | (Scalar::IntOrString | Scalar::Quantity, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::String { .. }, value) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", typed(value)))
        }
        (Scalar::Boolean, value) => Some(format!("expected boolean, got &{{{}}}", plain(value))),
        (Scalar::Integer { .. } | Scalar::Number { .. }, value) => {
            Some(format!("expected numeric (int or float), got {}", go_type(value)))
        }
        (_, value) => Some(format!("expected any scalar, got &{{{}}}", plain(value))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%v`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(object) => {
            let fields: Vec<String> = object.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// Go's `%#v`.
fn typed(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(list) => {
            format!("{}{{{}}}", go_type(value), list.iter().map(typed).collect::<Vec<_>>().join(", "))
        }
        Value::Object(object) => {
            let fields: Vec<String> = object.iter().map(|(name, value)| format!("{name:?}:{}", typed(value))).collect();
            format!("{}{{{}}}", go_type(value), fields.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::{Builtins, GroupVersionKind};
    use serde_json::json;

    use super::*;

    #[test]
    fn type_mismatches_are_reported() {
        let schema = &Builtins::get().kind(&GroupVersionKind::new("", "v1", "Service")).unwrap().schema;
        let cases = [
            (json!({"spec": {"ports": [{"port": 1}]}}), ""),
            (json!({"spec": []}), ".spec: expected map, got &{[]}"),
            (json!({"spec": {"type": 5}}), ".spec.type: expected string, got &value.valueUnstructured{Value:5}"),
            (json!({"spec": {"bogus": 5}}), ".spec.bogus: field not declared in schema"),
            (
                json!({"spec": {"ports": [{"port": "x"}], "publishNotReadyAddresses": "False"}}),
                "errors:\n  .spec.ports[port=\"x\",protocol=\"TCP\"].port: expected numeric (int or float), got string\n  \
                 .spec.publishNotReadyAddresses: expected boolean, got &{False}",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(conform(schema, &value, Duplicates::Refused).err().unwrap_or_default(), expected);
        }
    }

    #[test]
    fn items_without_a_unique_key_are_reported() {
        let schema = &Builtins::get().kind(&GroupVersionKind::new("", "v1", "ServiceAccount")).unwrap().schema;
        let twice = json!({"secrets": [{"name": "a"}, {"name": "a"}]});
        assert_eq!(conform(schema, &twice, Duplicates::Allowed), Ok(()));
        let error = conform(schema, &twice, Duplicates::Refused).unwrap_err();
        assert_eq!(error, ".secrets: duplicate entries for key [name=\"a\"]");
        // Items after such an item are not checked.
        let without_key = json!({"secrets": [{"name": "a"}, {"uid": "b"}, {"name": 1}]});
        assert_eq!(
            conform(schema, &without_key, Duplicates::Allowed).unwrap_err(),
            ".secrets: element 1: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't \
             have default values for any key fields)"
        );
    }
}
