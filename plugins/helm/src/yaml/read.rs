//! Reading YAML as Helm does: `sigs.k8s.io/yaml`, which converts to JSON, whose numbers are all `float64`.

use chandler_template::{Map, Value};
use chandler_yaml::{Document, Kind, Limits, Node};

/// Why a text is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error converting YAML to JSON: yaml: line {line}: {message}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

fn limits() -> Limits {
    Limits { bytes: 32 << 20, depth: 200, nodes: 2_000_000 }
}

/// The value of the first document; nil if there is none.
pub fn read(text: &str) -> Result<Value, ReadError> {
    Ok(documents(text)?.first().map_or(Value::Nil, |document| value(&document.root)))
}

/// All documents that are not empty.
pub fn documents(text: &str) -> Result<Vec<Document>, ReadError> {
    let documents = chandler_yaml::parse(text.as_bytes(), &limits())
        .map_err(|error| ReadError { line: error.line, message: error.message })?;
    // Here Helm's reader lets the merged key win, which the rule for merge keys does not allow.
    let merges = |document: &Document| {
        document
            .warnings
            .iter()
            .find(|warning| warning.message.starts_with("<<"))
            .map(|warning| (warning.line, warning.message.clone()))
    };
    match documents.iter().find_map(merges) {
        Some((line, message)) => Err(ReadError { line, message }),
        None => Ok(documents),
    }
}

/// A node as a value.
pub(crate) fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Nil,
        Kind::Bool(value) => Value::Bool(*value),
        #[expect(clippy::cast_precision_loss, reason = "encoding/json makes float64 of every number")]
        Kind::Int(value) => Value::Float(*value as f64),
        #[expect(clippy::cast_precision_loss, reason = "encoding/json makes float64 of every number")]
        Kind::UInt(value) => Value::Float(*value as f64),
        Kind::Float(value) => Value::Float(*value),
        Kind::String(text) => Value::from(&**text),
        Kind::Sequence(items) => Value::list(items.iter().map(value).collect()),
        Kind::Mapping(mapping) => {
            Value::Map(mapping.iter().map(|entry| (&*entry.key, value(&entry.value))).collect::<Map>())
        }
    }
}
