//! The text of a key, parsed into values.

use chandler_yaml::{Limits, from_node, parse};
use serde_json::{Map, Value};

use crate::error::Problem;

/// The most values and keys of one text.
const NODES: usize = 100_000;
/// The deepest values: `spec.config`, which is merged over them, is not nested more deeply either.
const DEPTH: usize = 64;

/// Parses YAML or JSON with at most one document, which is a map. `is_secret` keeps the text out of the error.
pub fn values(bytes: &[u8], is_secret: bool) -> Result<Map<String, Value>, Problem> {
    let invalid =
        |line, column, detail: String| Problem::InvalidYaml { line, column, detail: (!is_secret).then_some(detail) };
    text(bytes)?;
    let limits = Limits { bytes: bytes.len(), nodes: NODES, depth: DEPTH };
    let documents = parse(bytes, &limits).map_err(|error| invalid(error.line, error.column, error.message))?;
    let [document] = documents.as_slice() else {
        return match documents.get(1) {
            None => Ok(Map::new()),
            Some(second) => Err(invalid(second.root.line, second.root.column, "a second document starts here".into())),
        };
    };
    let root = &document.root;
    let value: Value = from_node(root).map_err(|error| invalid(root.line, root.column, error.to_string()))?;
    match value {
        Value::Object(values) => Ok(values),
        _ => Err(Problem::NotAMap { found: root.type_name() }),
    }
}

/// The bytes as text.
pub fn text(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|_| Problem::NotText)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_maps_are_values() {
        for (text, expected) in [
            ("", json!({})),
            ("# nothing\n", json!({})),
            ("a: {b: yes}\n", json!({"a": {"b": true}})),
            (r#"{"a": [1]}"#, json!({"a": [1]})),
        ] {
            assert_eq!(values(text.as_bytes(), true).map(Value::Object), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_a_secret_is_not_quoted() {
        let refused = |text: &[u8], is_secret| values(text, is_secret).unwrap_err().to_string();
        for (text, is_secret, expected) in [
            (&b"hunter2"[..], true, "is of type string, but values are a map"),
            (b"a: *hunter2\n", true, "is not valid YAML (line 1, column "),
            (b"hunter2: [1\n", true, "is not valid YAML (line "),
            (b"a: 1\n---\nb: 2\n", false, "a second document starts here"),
            (b"\xff", false, "is not UTF-8 text"),
        ] {
            let message = refused(text, is_secret);
            assert!(message.contains(expected) && !message.contains("hunter2"), "{message}");
        }
        let deep = format!("a: {}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
        assert!(matches!(values(deep.as_bytes(), false), Err(Problem::InvalidYaml { .. })));
    }
}
