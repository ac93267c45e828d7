//! Plain YAML scalars that look like numbers, compared with the number parsers of Rust and serde_json.

use chandler_yaml::{Kind, Limits, parse};
use serde_json::{Number, Value};

use crate::{documents::assert_json, json::same};

pub(crate) fn holds(input: &[u8]) {
    for line in String::from_utf8_lossy(input).lines().take(100) {
        scalar(line.trim());
    }
}

/// The item of a YAML sequence with only this plain scalar.
fn read(text: &str) -> Option<Kind> {
    // Text with YAML syntax is not a scalar, or another one.
    if text.is_empty() || text.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '+' | '-')) {
        return None;
    }
    let documents = parse(format!("- {text}\n- x\n").as_bytes(), &Limits::default()).ok()?;
    let root = &documents.first()?.root;
    assert_json(root);
    let items = root.as_sequence().expect("a sequence");
    (items.len() == 2).then(|| items[0].kind.clone())
}

fn scalar(text: &str) {
    let Some(kind) = read(text) else { return };
    let value = match &kind {
        Kind::Int(value) => Value::from(*value),
        Kind::UInt(value) => {
            assert!(i64::try_from(*value).is_err(), "{value} has no sign although it fits with one");
            Value::from(*value)
        }
        Kind::Float(value) => {
            assert!(value.is_finite(), "{text} is {value}");
            Value::from(*value)
        }
        _ => Value::Null,
    };
    // A JSON number is the same number in YAML.
    if let Ok(number) = serde_json::from_str::<Number>(text) {
        assert!(same(&value, &Value::Number(number.clone())), "{text} is {value}, and {number} in JSON");
    }
    // A decimal integer keeps its value.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
        && let Ok(integer) = text.parse::<i128>()
        && i64::try_from(integer).is_ok()
    {
        assert_eq!(value.to_string(), text);
    }
    // The number round-trips.
    if !value.is_null() {
        let again = read(&value.to_string()).map(|kind| match kind {
            Kind::Int(value) => Value::from(value),
            Kind::UInt(value) => Value::from(value),
            Kind::Float(value) => Value::from(value),
            other => panic!("{text} is {value}, which is read as {other:?}"),
        });
        assert_eq!(again.as_ref(), Some(&value), "{text} is {value}, which is read as something else");
    }
}
