//! The YAML parser: any bytes are documents or an error with a position, within the limits.

use std::collections::BTreeMap;

use chandler_yaml::{Kind, Limits, Node, flatten_lists, from_node, parse};
use serde::Deserialize;

use crate::{findings::assert_position, memory};

/// Small limits, so that inputs reach them.
const LIMITS: Limits = Limits { bytes: 1 << 20, depth: 60, nodes: 50_000 };
/// A node with its key takes less than 200 bytes; anchors store copies; aliased text is repeated up to its limit.
const MEMORY: usize = (50_000 * 400) + (8 << 20);
/// For each byte of the text: events, positions, warnings.
const MEMORY_PER_BYTE: usize = 400;

/// A few types for typed deserialization.
#[derive(Deserialize)]
struct Typed {
    #[serde(default, rename = "metadata")]
    _metadata: BTreeMap<String, serde_json::Value>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(default, rename = "spec")]
    _spec: Vec<Choice>,
}

#[derive(Deserialize)]
enum Choice {
    Always,
    Number(#[expect(dead_code, reason = "read, not used")] i32),
    Port {
        #[serde(rename = "port")]
        _port: u16,
    },
}

pub(crate) fn holds(input: &[u8]) {
    let read = memory::bounded(input, MEMORY, MEMORY_PER_BYTE, || parse(input, &LIMITS));
    assert_eq!(read, parse(input, &LIMITS), "another result for the same input");
    let documents = match read {
        Ok(documents) => documents,
        Err(error) => {
            assert!(!error.message.trim().is_empty(), "an error without a message");
            return assert_position(input, error.line, error.column);
        }
    };
    let mut nodes = 0;
    for document in &documents {
        assert!(!document.root.is_null(), "an empty document");
        assert!(document.warnings.len() <= 100, "{} warnings", document.warnings.len());
        for warning in &document.warnings {
            assert!(!warning.message.is_empty(), "a warning without a message");
            assert_position(input, warning.line, warning.column);
        }
        walk(&document.root, 0, input, &mut nodes);
        assert_json(&document.root);
        if let Err(error) = from_node::<Typed>(&document.root) {
            assert!(!error.message.is_empty() && document.root.at(&error.pointer).is_some(), "{error:?}");
            assert_position(input, error.line, error.column);
        }
    }
    assert!(nodes <= LIMITS.nodes, "{nodes} values");
    for node in flatten_lists(documents) {
        assert!(!node.is_null(), "an empty item");
    }
}

fn walk(node: &Node, depth: usize, input: &[u8], nodes: &mut usize) {
    *nodes += 1;
    // Each position costs a walk through the text.
    if *nodes < 20 {
        assert_position(input, node.line, node.column);
    }
    match &node.kind {
        Kind::Float(value) => assert!(value.is_finite(), "{value} is not a number of JSON"),
        Kind::Sequence(items) => {
            assert!(depth < LIMITS.depth, "values are nested more than {depth} deep");
            for item in items {
                walk(item, depth + 1, input, nodes);
            }
        }
        Kind::Mapping(mapping) => {
            assert!(depth < LIMITS.depth, "values are nested more than {depth} deep");
            let mut keys: Vec<&str> = mapping.iter().map(|entry| &*entry.key).collect();
            keys.sort_unstable();
            assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "a duplicate key");
            mapping.iter().for_each(|entry| walk(&entry.value, depth + 1, input, nodes));
        }
        _ => {}
    }
}

/// Asserts that the JSON output is valid, the same in each way of writing, and round-trips.
pub(crate) fn assert_json(node: &Node) {
    let value = node.to_json();
    let mut text = Vec::new();
    node.write_json(&mut text);
    assert_eq!(String::from_utf8(text.clone()).unwrap(), value.to_string(), "two texts for one value");
    assert_eq!(serde_json::to_string(node).unwrap(), value.to_string(), "two texts for one value");
    let again: serde_json::Value = serde_json::from_slice(&text).expect("what is written is JSON");
    assert_eq!(again, value);
    // The parser treats a lone scalar as YAML, not JSON, and in YAML `"x` may mean something else.
    if matches!(node.kind, Kind::Sequence(_) | Kind::Mapping(_)) {
        let documents = parse(&text, &Limits::default()).expect("what was read can be read again");
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0].root.to_json(), value, "read again, it is something else");
    }
}
