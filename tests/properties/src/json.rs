//! The JSON parser compared with serde_json: input that both accept means the same.

use chandler_yaml::{Limits, parse};
use serde_json::Value;

use crate::documents::assert_json;

pub(crate) fn holds(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        return assert_stream(input);
    };
    // The parser treats lone scalars as YAML.
    if !(value.is_object() || value.is_array()) || depth(&value) > Limits::default().depth {
        return;
    }
    let documents = parse(input, &Limits::default()).expect("what serde_json reads is JSON");
    assert_eq!(documents.len(), 1, "one value is one document");
    let read = documents[0].root.to_json();
    assert!(same(&read, &value), "{read} is read of {value}");
    assert_json(&documents[0].root);
}

/// Several values one after another are that many documents.
fn assert_stream(input: &[u8]) {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(input).into_iter().collect();
    let Ok(values) = values else {
        // The input may still be YAML.
        return crate::documents::holds(input);
    };
    let collections = values.iter().all(|value| value.is_object() || value.is_array());
    if values.is_empty() || !collections || values.iter().any(|value| depth(value) > Limits::default().depth) {
        return;
    }
    let documents = parse(input, &Limits::default()).expect("values one after the other are a stream");
    assert_eq!(documents.len(), values.len());
    for (document, value) in documents.iter().zip(&values) {
        let read = document.root.to_json();
        assert!(same(&read, value), "{read} is read of {value}");
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Whether two values are equal, where `1.0` equals `1`, as in Go.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            if (one.is_i64() || one.is_u64()) && (other.is_i64() || other.is_u64()) {
                return one == other;
            }
            // Zero has no sign as an integer.
            one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, one), (also, other))| key == also && same(one, other))
        }
        (one, other) => one == other,
    }
}
