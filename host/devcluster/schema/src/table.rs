//! The embedded table of built-in types.

use std::{collections::HashMap, io::Read as _, sync::OnceLock};

use serde_json::{Map, Value};

use crate::{parse, schema::Node};

/// Made by `examples/generate.rs`; its header names the source.
static COMPRESSED: &[u8] = include_bytes!("generated/kubernetes-v1.36.json.gz");
static TABLE: OnceLock<Table> = OnceLock::new();

/// The decoded table.
pub(crate) struct Table {
    names: HashMap<String, usize>,
    nodes: Vec<Node>,
    /// Every definition in OpenAPI form; references read `#/components/schemas/<name>`.
    pub(crate) definitions: Map<String, Value>,
}

/// The table, decoded on first use.
///
/// The bytes are part of the program and a test decodes them, so that a table that does not decode is never shipped; should it
/// happen nonetheless, the table is empty and no built-in type is found.
pub(crate) fn table() -> &'static Table {
    TABLE.get_or_init(|| Table::decode(COMPRESSED).unwrap_or_else(|_| Table::empty()))
}

/// The node of the definition with this index; the empty node for an index that is not in the table.
pub(crate) fn definition(index: usize) -> &'static Node {
    static NOTHING: OnceLock<Node> = OnceLock::new();
    table().nodes.get(index).unwrap_or_else(|| NOTHING.get_or_init(Node::default))
}

impl Table {
    fn empty() -> Self {
        Self { names: HashMap::new(), nodes: Vec::new(), definitions: Map::new() }
    }

    fn decode(compressed: &[u8]) -> Result<Self, String> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).map_err(|error| error.to_string())?;
        let mut table: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let Some(Value::Object(definitions)) = table.get_mut("definitions").map(Value::take) else {
            return Err("the table has no definitions".to_owned());
        };
        let names: HashMap<String, usize> =
            definitions.keys().enumerate().map(|(index, name)| (name.clone(), index)).collect();
        let nodes = definitions
            .iter()
            .map(|(name, schema)| parse::definition(name, schema, &names))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Ok(Self { names, nodes, definitions })
    }

    /// The index of the definition with this name, e.g. `io.k8s.api.apps.v1.Deployment`.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_decodes_and_every_reference_resolves() {
        let table = Table::decode(COMPRESSED).unwrap();
        assert!(table.nodes.len() > 700, "{}", table.nodes.len());
        assert!(table.index("io.k8s.api.apps.v1.Deployment").is_some());
    }
}
