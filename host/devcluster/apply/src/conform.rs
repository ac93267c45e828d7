//! Whether a declared object is of its type, in the words of structured-merge-diff.

use std::fmt::Write as _;

use chandler_devcluster_schema::{Scalar, Schema, Shape};
use serde_json::Value;

use crate::structure;

/// What keeps a value from being of a type, each with its path; empty when nothing does.
pub(crate) fn errors(schema: &Schema, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check(schema, value, &mut String::new(), &mut errors);
    errors
}

/// Several errors as one text.
pub(crate) fn join(errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        [only] => Some(only.clone()),
        many => Some(many.iter().fold("errors:".to_owned(), |text, error| format!("{text}\n  {error}"))),
    }
}

fn check(schema: &Schema, value: &Value, path: &mut String, errors: &mut Vec<String>) {
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
                    check(&field.schema, child, path, errors);
                } else {
                    errors.push(format!("{path}: field not declared in schema"));
                }
                path.truncate(length);
            }
            return;
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            let elements = match structure::structure(schema, Some(value)) {
                structure::Structure::List(structure) => Some(structure),
                _ => None,
            };
            for (index, item) in list.iter().enumerate() {
                let length = path.len();
                let step =
                    elements.as_ref().and_then(|list| list.element(item).ok()).map(|element| element.to_string());
                path.push_str(&step.unwrap_or_else(|| format!("[{index}]")));
                check(items, item, path, errors);
                path.truncate(length);
            }
            return;
        }
        (Shape::Object { .. }, value) => format!("expected map, got &{{{}}}", plain(value)),
        (Shape::List { .. }, value) => format!("expected list, got &{{{}}}", plain(value)),
        (Shape::Scalar(scalar), value) => match scalar_error(scalar, value) {
            Some(error) => error,
            None => return,
        },
    };
    errors.push(format!("{path}: {expected}"));
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
    use chandler_devcluster_schema::{Builtins, GroupVersionKind};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_of_its_type() {
        let schema = &Builtins::get().kind(&GroupVersionKind::new("", "v1", "Service")).unwrap().schema;
        let cases = [
            (json!({"spec": {"ports": [{"port": 1}]}}), vec![]),
            (json!({"spec": []}), vec![".spec: expected map, got &{[]}"]),
            (json!({"spec": {"type": 5}}), vec![".spec.type: expected string, got &value.valueUnstructured{Value:5}"]),
            (json!({"spec": {"bogus": 5}}), vec![".spec.bogus: field not declared in schema"]),
            (
                json!({"spec": {"ports": [{"port": "x"}], "publishNotReadyAddresses": "False"}}),
                vec![
                    ".spec.ports[port=\"x\",protocol=\"TCP\"].port: expected numeric (int or float), got string",
                    ".spec.publishNotReadyAddresses: expected boolean, got &{False}",
                ],
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(errors(schema, &value), expected);
        }
    }
}
