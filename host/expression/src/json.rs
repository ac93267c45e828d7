//! JSON as values of expressions.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value,
    objects::{Key, Map},
};

/// A JSON value without a type: objects become maps, whole numbers become integers.
pub fn to_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::Int(value),
            (None, Some(value)) => Value::UInt(value),
            (None, None) => Value::Float(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(list) => Value::List(Arc::new(list.iter().map(to_value).collect())),
        serde_json::Value::Object(object) => {
            let fields = object.iter().map(|(name, field)| (Key::from(name.as_str()), to_value(field)));
            Value::Map(Map { map: Arc::new(fields.collect::<HashMap<_, _>>()) })
        }
    }
}
