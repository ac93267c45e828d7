//! JSON as values of expressions, and what the schema of a custom resource makes of names and texts.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value,
    objects::{Key, Map},
};

use crate::{Meter, evaluate::library};

/// Words of the language; a property of that name is `__<name>__` in rules.
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
    "var",
    "void",
    "while",
];

/// The name of a property in rules: `a-b` is `a__dash__b`, `namespace` is `__namespace__`.
pub fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/', '_']) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

/// A text whose format in a schema makes it another type: a time, a duration, or bytes. `None` if it is not in that format.
pub fn formatted(format: &str, text: &str) -> Option<Value> {
    let call = |prefix, name, text: &str| {
        // It costs as much as one text, which the caller has in memory.
        library::call(name, prefix, None, &[Value::from(text)], &Meter::new(u64::MAX)).ok()
    };
    match format {
        "date-time" | "datetime" => call(None, "timestamp", text),
        "date" => call(None, "timestamp", &format!("{text}T00:00:00Z")),
        "duration" => call(None, "duration", text),
        "byte" => call(Some("base64"), "decode", text),
        _ => None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_type_of_their_format() {
        for (format, text, expected) in [
            ("date-time", "2026-01-01T00:00:00Z", "google.protobuf.Timestamp"),
            ("date", "2026-01-01", "google.protobuf.Timestamp"),
            ("duration", "1h30m", "google.protobuf.Duration"),
            ("byte", "YWI=", "bytes"),
        ] {
            let value = formatted(format, text);
            assert_eq!(value.as_ref().map(crate::evaluate::functions::type_name), Some(expected), "{format}");
            assert_eq!(formatted(format, "?"), None, "{format}");
        }
        assert_eq!(formatted("byte", "YWI="), Some(Value::Bytes(Arc::new(b"ab".to_vec()))));
        assert_eq!(formatted("uuid", "a"), None);
    }

    #[test]
    fn names_of_properties_are_escaped() {
        for (name, expected) in [
            ("a_b", "a_b"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("a__b", "a__underscores__b"),
            ("if", "__if__"),
        ] {
            assert_eq!(escaped(name), expected);
        }
    }
}
