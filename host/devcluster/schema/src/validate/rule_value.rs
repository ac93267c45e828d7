//! Values as CEL rules see them.

use std::{collections::HashMap, sync::OnceLock};

use base64::Engine as _;
use cel::{Context, Program, Value as CelValue, objects::Key};
use serde_json::Value;

use crate::schema::{Scalar, Schema, Shape};

/// Words that CEL reserves; a property of that name is `__<name>__` in rules.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
];

/// The CEL value of a value of this type.
///
/// Times, durations and bytes get their CEL types, numbers stay fractional, and property names are escaped as Kubernetes does.
pub(super) fn convert(schema: &Schema, value: &Value) -> CelValue {
    match (&schema.shape, value) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            let fields = object.iter().filter_map(|(name, child)| {
                let (key, schema) = match (properties.get(name), values) {
                    (Some(property), _) => (escape(name), property.clone()),
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
        (Shape::Scalar(Scalar::String { format: Some(format), .. }), Value::String(text)) => formatted(format, text),
        (_, value) => untyped(value),
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

fn untyped(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => CelValue::Int(value),
            (None, Some(value)) => CelValue::UInt(value),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => CelValue::from(text.as_str()),
        Value::Array(list) => CelValue::List(list.iter().map(untyped).collect::<Vec<_>>().into()),
        Value::Object(object) => {
            let fields = object.iter().map(|(name, child)| (Key::from(name.clone()), untyped(child)));
            CelValue::from(fields.collect::<HashMap<Key, CelValue>>())
        }
    }
}

fn formatted(format: &str, text: &str) -> CelValue {
    static TIMESTAMP: OnceLock<Option<Program>> = OnceLock::new();
    static DURATION: OnceLock<Option<Program>> = OnceLock::new();
    let with = |slot: &'static OnceLock<Option<Program>>, expression: &str, text: &str| {
        let program = slot.get_or_init(|| Program::compile(expression).ok()).as_ref()?.execute(&{
            let mut context = Context::default();
            context.add_variable_from_value("text", text.to_owned());
            context
        });
        program.ok()
    };
    let typed = match format {
        "date-time" | "datetime" => with(&TIMESTAMP, "timestamp(text)", text),
        "date" => with(&TIMESTAMP, "timestamp(text)", &format!("{text}T00:00:00Z")),
        "duration" => with(&DURATION, "duration(text)", text),
        "byte" => {
            base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| CelValue::Bytes(bytes.into()))
        }
        _ => None,
    };
    typed.unwrap_or_else(|| CelValue::from(text))
}

/// The name of a property in rules: `a-b` is `a__dash__b`, `namespace` is `__namespace__`.
fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/', '_']) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

/// How many values a value holds, itself included.
pub(super) fn count(value: &Value) -> u64 {
    match value {
        Value::Array(list) => 1 + list.iter().map(count).sum::<u64>(),
        Value::Object(object) => 1 + object.values().map(count).sum::<u64>(),
        Value::String(text) => 1 + (text.len() as u64) / 64,
        _ => 1,
    }
}
