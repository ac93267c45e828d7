//! Sets the defaults of a type.

use serde_json::Value;

use crate::schema::model::{Schema, Shape};

/// Fills in the `default` of every absent field, outermost first, also inside the defaults themselves.
///
/// A `null` at a place that is not nullable and has a default counts as absent; kube-apiserver prunes it before it defaults.
pub fn default(schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            for (name, property) in properties {
                if let Some(default) = &property.default {
                    match object.get(name) {
                        None => {
                            object.insert(name.clone(), Value::clone(default));
                        }
                        Some(Value::Null) if !property.nullable => {
                            object.insert(name.clone(), Value::clone(default));
                        }
                        Some(_) => {}
                    }
                }
            }
            for (name, child) in object.iter_mut() {
                if let Some(schema) = properties.get(name).or(values.as_ref()) {
                    default(schema, child);
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                default(items, item);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::crd::root;

    #[test]
    fn defaults_fill_absent_fields_outside_in() {
        let schema = root::read(&json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "default": {}, "properties": {
                    "size": {"type": "integer", "default": 3},
                    "mode": {"type": "string", "nullable": true, "default": "a"},
                    "items": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer", "default": 0}}}},
                }},
            },
        }))
        .unwrap();
        let cases = [
            (json!({}), json!({"spec": {"size": 3, "mode": "a"}})),
            (json!({"spec": {"size": null, "mode": null}}), json!({"spec": {"size": 3, "mode": null}})),
            (
                json!({"spec": {"size": 0, "mode": "b", "items": [{}, {"p": "UDP"}], "map": {"k": {}}}}),
                json!({"spec": {"size": 0, "mode": "b", "items": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": {"x": 0}}}}),
            ),
        ];
        for (mut value, expected) in cases {
            default(&schema, &mut value);
            assert_eq!(value, expected);
        }
    }
}
