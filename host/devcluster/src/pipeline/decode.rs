//! Decodes bytes to a value.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::Status;

/// Most duplicate fields reported for one body.
const MOST_REPORTED: usize = 100;

/// A decoded body.
#[derive(Debug)]
pub struct Decoded {
    /// The value; of a duplicate field, the last one counts.
    pub value: Value,
    /// The paths of duplicate fields.
    pub duplicates: Vec<String>,
}

/// Reads JSON.
///
/// # Errors
/// If the body is not JSON, or nested deeper than 128 levels.
pub fn json(body: &[u8]) -> Result<Decoded, Status> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = Seed { path: String::new(), duplicates: &duplicates }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
    Ok(Decoded { value, duplicates: duplicates.into_inner() })
}

/// Reads one YAML document.
///
/// # Errors
/// If the body is not YAML, or holds keys that are not text.
pub fn yaml(body: &[u8]) -> Result<Decoded, Status> {
    let value = serde_saphyr::from_slice::<Value>(body);
    let value = value.map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))?;
    Ok(Decoded { value, duplicates: Vec::new() })
}

struct Seed<'a> {
    path: String,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            match access.next_element_seed(Seed { path, duplicates: self.duplicates })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            let value = access.next_value_seed(Seed { path: path.clone(), duplicates: self.duplicates })?;
            if fields.insert(name, value).is_some() && self.duplicates.borrow().len() < MOST_REPORTED {
                self.duplicates.borrow_mut().push(path);
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found_and_the_last_one_counts() {
        let decoded = json(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": 1.5}"#).unwrap();
        assert_eq!(decoded.value, serde_json::json!({"a": 1.5, "b": [{"c": 2}]}));
        assert_eq!(decoded.duplicates, ["b[0].c", "a"]);
    }

    #[test]
    fn yaml_is_read() {
        let decoded = yaml(b"kind: ConfigMap\ndata: {a: \"1\"}\n").unwrap();
        assert_eq!(decoded.value, serde_json::json!({"kind": "ConfigMap", "data": {"a": "1"}}));
        assert_eq!(yaml(b"a: [").unwrap_err().reason, "BadRequest");
    }

    #[test]
    fn invalid_json_is_refused() {
        let deep = "[".repeat(200);
        for body in ["", "{", "{} {}", "{\"a\": nope}", deep.as_str()] {
            assert_eq!(json(body.as_bytes()).unwrap_err().reason, "BadRequest", "{body}");
        }
    }
}
