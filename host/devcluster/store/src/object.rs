//! One stored version of an object.

use std::sync::OnceLock;

use bytes::Bytes;
use serde::ser::{SerializeMap as _, Serializer as _};
use serde_json::{Map, Value};

/// A version of an object. Immutable; its JSON is rendered once, by the first reader.
#[derive(Debug)]
pub struct Object {
    value: Value,
    revision: u64,
    json: OnceLock<Bytes>,
    item_json: OnceLock<Bytes>,
}

impl Object {
    /// An object that is not stored: the outcome of a dry run.
    pub fn unstored(value: Value) -> Self {
        Self { value, revision: 0, json: OnceLock::new(), item_json: OnceLock::new() }
    }

    /// A version; `metadata.resourceVersion` is set to the revision.
    pub(crate) fn new(mut value: Value, revision: u64) -> Self {
        if let Some(object) = value.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
            }
        }
        Self { value, revision, json: OnceLock::new(), item_json: OnceLock::new() }
    }

    /// The object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The revision at which it was written.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object as JSON.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| render(&self.value)).clone()
    }

    /// The object as JSON without `apiVersion` and `kind`, as it stands in the lists of built-in types.
    pub fn item_json(&self) -> Bytes {
        self.item_json.get_or_init(|| without_type(&self.value)).clone()
    }
}

/// Writes a value as JSON. Writing a [`Value`] to memory cannot fail, since its keys are strings.
pub fn render(value: &Value) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// Writes an object as JSON without `apiVersion` and `kind`.
pub fn without_type(value: &Value) -> Bytes {
    let Some(object) = value.as_object() else { return render(value) };
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let written = serializer.serialize_map(None).and_then(|mut map| {
        for (key, value) in object {
            if key != "apiVersion" && key != "kind" {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    });
    written.map(|()| Bytes::from(bytes)).unwrap_or_default()
}

/// Roughly how many bytes a value takes in memory, for the bound of the history.
pub(crate) fn weight(value: &Value) -> usize {
    const CELL: usize = size_of::<Value>();
    match value {
        Value::String(text) => CELL + text.len(),
        Value::Array(items) => CELL + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => {
            CELL + fields.iter().map(|(key, value)| CELL + key.len() + weight(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => CELL,
    }
}
