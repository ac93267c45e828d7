//! Values as CEL rules see them.

use std::collections::HashMap;

use cel::{Value as CelValue, objects::Key};
use chandler_expression::json::{escaped, formatted, to_value};
use serde_json::Value;

use crate::schema::model::{Scalar, Schema, Shape};

/// The CEL value of a value of this type.
///
/// Times, durations and bytes get their CEL types, numbers stay fractional, and property names are escaped as Kubernetes does.
pub(super) fn convert(schema: &Schema, value: &Value) -> CelValue {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            let fields = object.iter().filter_map(|(name, child)| {
                let (key, schema) = match (properties.get(name), values) {
                    (Some(property), _) => (escaped(name), property.clone()),
                    (None, Some(values)) => (name.clone(), values.clone()),
                    (None, None) => (name.clone(), Schema::any()),
                };
                (!child.is_null() || schema.nullable).then(|| (Key::from(key), convert(&schema, child)))
            });
            CelValue::from(fields.collect::<HashMap<Key, CelValue>>())
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            CelValue::List(list.iter().map(|item| convert(items, item)).collect::<Vec<_>>().into())
        }
        (Shape::Scalar(Scalar::Number { .. }), Value::Number(number)) => {
            CelValue::Float(number.as_f64().unwrap_or_default())
        }
        (Shape::Scalar(Scalar::String { format: Some(format), .. }), Value::String(text)) => {
            formatted(format, text).unwrap_or_else(|| CelValue::from(text.as_str()))
        }
        (_, value) => to_value(value),
    }
}

/// The part of an object that a rule at its root sees: of `metadata` only the names.
pub(super) fn root(schema: &Schema, value: &Value) -> CelValue {
    let mut value = value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| name == "name" || name == "generateName");
    }
    convert(schema, &value)
}
