//! JSON that is nested too deeply to be parsed. Pure.
//!
//! An API server stores objects that are nested more deeply than `serde_json` parses (127 levels): in `spec.config`, in
//! `metadata.managedFields`, in custom resources. One such object would make every list that contains it unreadable. Values that
//! are nested too deeply are therefore replaced with a marker text before the JSON is parsed.

use serde_json::Value;

/// How deeply arrays and objects may be nested: less than `serde_json` parses. Levels count from the outside of a response, so
/// that a list or a watch event counts as well.
pub const DEEPEST: usize = 120;

/// The marker text that replaces a value that is nested too deeply.
pub const TOO_DEEP: &str = "chandler.dev: nested too deeply to be read";

/// Replaces values that are nested too deeply, in a stream of JSON values that arrives in pieces.
#[derive(Debug, Default)]
pub struct Shallow {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Shallow {
    /// The next piece with such values replaced, or `None` if the piece is unchanged.
    pub fn next(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let mut output: Option<Vec<u8>> = None;
        // The start of the bytes to copy.
        let mut from = (self.depth <= DEEPEST).then_some(0);
        for (at, byte) in piece.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if let (Some(begin), true) = (from, self.depth > DEEPEST) {
                        let output = output.get_or_insert_default();
                        output.extend(piece.get(begin..at).unwrap_or_default());
                        output.extend(format!("\"{TOO_DEEP}\"").bytes());
                        from = None;
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if from.is_none() && self.depth <= DEEPEST {
                        from = Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        match (output, from) {
            (None, Some(0)) => None,
            (output, from) => {
                let mut output = output.unwrap_or_default();
                output.extend(from.and_then(|from| piece.get(from..)).unwrap_or_default());
                Some(output)
            }
        }
    }
}

/// Whether this value contains a replaced value.
pub fn is_too_deep(value: &Value) -> bool {
    match value {
        Value::String(text) => text == TOO_DEEP,
        Value::Array(items) => items.iter().any(is_too_deep),
        Value::Object(members) => members.values().any(is_too_deep),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The output for pieces of this size.
    fn shallow(text: &str, size: usize) -> String {
        let mut shallow = Shallow::default();
        let pieces = text.as_bytes().chunks(size);
        let output: Vec<u8> = pieces.flat_map(|piece| shallow.next(piece).unwrap_or_else(|| piece.to_vec())).collect();
        String::from_utf8(output).unwrap()
    }

    fn nested(levels: usize, inner: &str) -> String {
        format!("{}{inner}{}", r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2))
    }

    #[test]
    fn only_values_that_are_too_deep_are_replaced() {
        let deep = nested(DEEPEST, r#"{"lost":[{"}":"\"{"}]},{"kept":1}"#);
        // The object in the innermost list is one level too deep.
        for size in [1, 2, 3, 7, 10_000] {
            let read: Value = serde_json::from_str(&shallow(&deep, size)).unwrap();
            assert!(is_too_deep(&read), "{size}");
            assert!(!read.to_string().contains("lost"));
        }
        let long = format!("{{\"before\":1,\"x\":{},\"after\":{{\"b\":[2]}}}}\n{{\"next\":3}}", nested(400, "1"));
        for size in [1, 5, 10_000] {
            let text = shallow(&long, size);
            let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
            let first = values.next().unwrap().unwrap();
            assert_eq!((&first["before"], &first["after"]), (&json!(1), &json!({"b": [2]})));
            assert_eq!(values.next().unwrap().unwrap(), json!({"next": 3}));
        }
    }

    #[test]
    fn readable_json_is_unchanged() {
        let text = nested(DEEPEST, r#""{[\\\"{""#);
        assert_eq!(Shallow::default().next(text.as_bytes()), None);
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        assert!(
            serde_json::from_str::<Value>(&nested(128, "1")).is_err(),
            "serde_json parses it, so that this module is not needed"
        );
    }

    proptest! {
        #[test]
        fn json_stays_json(levels in 0_usize..300, text in any::<String>(), size in 1_usize..64) {
            let inner = json!([text.clone(), {text.clone(): text}]).to_string();
            let output = shallow(&nested(levels, &inner), size);
            let read: Result<Value, _> = serde_json::from_str(&output);
            prop_assert!(read.is_ok(), "{output}");
            prop_assert_eq!(is_too_deep(&read.unwrap()), levels / 2 * 2 + 2 > DEEPEST);
        }

        #[test]
        fn any_bytes_are_accepted(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let mut shallow = Shallow::default();
            for piece in pieces {
                let output = shallow.next(&piece).unwrap_or_else(|| piece.clone());
                prop_assert!(output.len() <= piece.len() + piece.len() * (TOO_DEEP.len() + 2));
            }
        }
    }
}
