//! JSON whose objects have no duplicate keys.
//!
//! Parsers differ in which of two equal keys they keep, and `serde_json` silently keeps the last. A text that means one thing to
//! us and another thing to others can hide what it does, so untrusted JSON is read with this module.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

use crate::pointer_segment;

/// The longest text of a key or a pointer in an error, in bytes.
const SHOWN: usize = 256;

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON.
    #[error("is not JSON: {0}")]
    NotJson(String),
    /// An object has a key twice, even with the same value.
    #[error("has the key {key:?} twice, at {pointer:?}")]
    DuplicateKey {
        /// The key. At most 256 bytes of it.
        key: String,
        /// The JSON pointer of the key. The last 256 bytes of it.
        pointer: String,
    },
}

/// Parses JSON. Arrays and objects may be nested 127 levels deep, as everywhere in `serde_json`.
///
/// # Errors
/// It is not JSON, or has a duplicate key.
pub fn from_slice(json: &[u8]) -> Result<Value, JsonError> {
    let duplicate = Duplicate::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = duplicate.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| duplicate.found().unwrap_or_else(|| JsonError::NotJson(error.to_string())))
}

/// The path to the duplicate key, from the inside out.
#[derive(Default)]
struct Duplicate(RefCell<Vec<Part>>);

enum Part {
    Key(String),
    Index(usize),
}

impl Duplicate {
    /// Notes the duplicate key, which ends parsing.
    fn note(&self, key: &str) {
        self.0.borrow_mut().push(Part::Key(key.to_owned()));
    }

    /// Notes an enclosing value, while an error leaves it.
    fn within(&self, part: impl FnOnce() -> Part) {
        let mut path = self.0.borrow_mut();
        if !path.is_empty() {
            path.push(part());
        }
    }

    fn found(&self) -> Option<JsonError> {
        let path = self.0.borrow();
        let Some(Part::Key(key)) = path.first() else { return None };
        let parts = path.iter().rev().map(|part| match part {
            Part::Key(key) => format!("/{}", pointer_segment(key)),
            Part::Index(index) => format!("/{index}"),
        });
        let pointer: String = parts.collect();
        let key = key.get(..key.floor_char_boundary(SHOWN)).unwrap_or_default().to_owned();
        let from = pointer.ceil_char_boundary(pointer.len().saturating_sub(SHOWN));
        Some(JsonError::DuplicateKey { key, pointer: pointer.get(from..).unwrap_or_default().to_owned() })
    }
}

impl<'de> DeserializeSeed<'de> for &Duplicate {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Builds the same values as `serde_json::Value`.
impl<'de> Visitor<'de> for &Duplicate {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        loop {
            match items.next_element_seed(self) {
                Ok(Some(item)) => array.push(item),
                Ok(None) => return Ok(Value::Array(array)),
                Err(error) => {
                    self.within(|| Part::Index(array.len()));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = match members.next_value_seed(self) {
                Ok(value) => value,
                Err(error) => {
                    self.within(|| Part::Key(key));
                    return Err(error);
                }
            };
            match object.entry(key) {
                Entry::Vacant(entry) => entry.insert(value),
                Entry::Occupied(entry) => {
                    self.note(entry.key());
                    return Err(A::Error::custom("duplicate key"));
                }
            };
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, prop_assert_eq, proptest};

    use super::*;

    fn refused(json: &str) -> String {
        from_slice(json.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn duplicate_keys_are_named_with_their_place() {
        for (json, message) in [
            (r#"{"a": 1, "a": 1}"#, r#"has the key "a" twice, at "/a""#),
            (r#"{"a": 1, "\u0061": 2}"#, r#"has the key "a" twice, at "/a""#),
            (r#"{"a": [0, {"b/c": {"d": 1, "e": 2, "d": {}}}]}"#, r#"has the key "d" twice, at "/a/1/b~1c/d""#),
            (r#"[[{"": 1, "": 2}]]"#, r#"has the key "" twice, at "/0/0/""#),
            ("{\"a\u{202e}\": 1, \"a\u{202e}\": 2}", r#"has the key "a\u{202e}" twice, at "/a\u{202e}""#),
            // The first problem of the text is reported.
            (r#"{"a": 1, "a": 2, ["#, r#"has the key "a" twice, at "/a""#),
            (r#"{"a": {"b": 1, "b": }}"#, "is not JSON: expected value at line 1 column 21"),
            (r#"{"a": 1} x"#, "is not JSON: trailing characters at line 1 column 10"),
            ("", "is not JSON: EOF while parsing a value at line 1 column 0"),
        ] {
            assert_eq!(refused(json), message, "{json}");
        }
        assert_eq!(from_slice(br#"{"a": {"x": 1}, "b": {"x": 1}, "A": 0}"#).unwrap()["b"]["x"], 1);
    }

    #[test]
    fn long_keys_and_paths_are_shortened() {
        let long = "ü".repeat(1000);
        let error = refused(&format!(r#"{{"{long}": {{"end": 1, "end": 2}}}}"#));
        assert!(error.len() < 400 && error.ends_with(r#"ü/end""#), "{error}");
        let error = refused(&format!(r#"{{"{long}": 1, "{long}": 2}}"#));
        assert!(error.len() < 2 * SHOWN + 64, "{error}");
    }

    #[test]
    fn deep_nesting_is_refused_as_everywhere() {
        let deep = [b"[".repeat(1000), b"]".repeat(1000)].concat();
        let plain = serde_json::from_slice::<Value>(&deep).unwrap_err().to_string();
        assert_eq!(from_slice(&deep), Err(JsonError::NotJson(plain)));
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|value| value.to_string()),
            any::<i64>().prop_map(|value| value.to_string()),
            any::<u64>().prop_map(|value| value.to_string()),
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
            any::<String>().prop_map(|value| Value::String(value).to_string()),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let member = ("[a-d]", inner.clone()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(" , "))),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_without_duplicates_are_read_as_by_serde_json(json in json()) {
            let plain = serde_json::from_str::<Value>(&json).map_err(|error| JsonError::NotJson(error.to_string()));
            match from_slice(json.as_bytes()) {
                Err(JsonError::DuplicateKey { pointer, .. }) => prop_assert!(pointer.contains('/')),
                read => prop_assert_eq!(&read, &plain),
            }
            // What the other parser kept has no duplicates.
            if let Ok(plain) = plain {
                prop_assert_eq!(from_slice(plain.to_string().as_bytes()), Ok(plain));
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = from_slice(&bytes);
        }
    }
}
