//! Values of Go's types from YAML, with the errors of encoding/json, by way of which Helm reads it.

use chandler_yaml::{Kind, Node};

use crate::number;

/// The kind of a value, as encoding/json names it.
fn json_kind(node: &Node) -> &'static str {
    match node.kind {
        Kind::Null => "null",
        Kind::Bool(_) => "bool",
        Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => "number",
        Kind::String(_) => "string",
        Kind::Sequence(_) => "array",
        Kind::Mapping(_) => "object",
    }
}

/// A value does not have this Go type.
pub(crate) fn mistyped(node: &Node, wanted: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into {wanted}", json_kind(node))
}

/// The value of a field does not have this Go type.
pub(crate) fn mistyped_field(node: &Node, place: &str, wanted: &str) -> String {
    mistyped(node, &format!("Go struct field {place} of type {wanted}"))
}

/// A scalar as text, `None` for null: what YAML takes for a number or a boolean becomes text as Go prints it.
///
/// # Errors
/// It is a list or a map.
pub(crate) fn text(node: &Node, place: &str) -> Result<Option<String>, String> {
    Ok(Some(match &node.kind {
        Kind::Null => return Ok(None),
        Kind::String(text) => text.to_string(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::UInt(value) => value.to_string(),
        Kind::Float(value) => number::general(*value),
        Kind::Sequence(_) | Kind::Mapping(_) => return Err(mistyped_field(node, place, "string")),
    }))
}
