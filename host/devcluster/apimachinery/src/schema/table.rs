//! The embedded table of built-in types.

use std::{collections::HashMap, io::Read as _, sync::OnceLock};

use serde_json::{Map, Value};

use crate::schema::{
    model::{Definition, Schema},
    parse,
};

/// Made by `examples/generate_types.rs`; its header names the source.
static COMPRESSED: &[u8] = include_bytes!("generated/kubernetes-v1.36.json.gz");
static TABLE: OnceLock<Table> = OnceLock::new();

/// The decoded table.
pub(crate) struct Table {
    names: HashMap<String, Definition>,
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

impl Table {
    fn empty() -> Self {
        Self { names: HashMap::new(), definitions: Map::new() }
    }

    fn decode(compressed: &[u8]) -> Result<Self, String> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).map_err(|error| error.to_string())?;
        let mut table: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let Some(Value::Object(definitions)) = table.get_mut("definitions").map(Value::take) else {
            return Err("the table has no definitions".to_owned());
        };
        let names: HashMap<String, Definition> =
            definitions.keys().map(|name| (name.clone(), Definition::default())).collect();
        for (name, schema) in &definitions {
            let node = parse::definition(name, schema, &names).map_err(|error| error.to_string())?;
            if let Some(definition) = names.get(name) {
                definition.fill(node);
            }
        }
        Ok(Self { names, definitions })
    }

    /// The type with this name, e.g. `io.k8s.api.apps.v1.Deployment`.
    pub(crate) fn schema(&self, name: &str) -> Option<Schema> {
        self.names.get(name).map(Schema::definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_decodes_and_every_reference_resolves() {
        let table = Table::decode(COMPRESSED).unwrap();
        assert!(table.names.len() > 700, "{}", table.names.len());
        let deployment = table.schema("io.k8s.api.apps.v1.Deployment").unwrap();
        let containers = ["spec", "template", "spec", "containers"]
            .iter()
            .fold(deployment, |schema, field| schema.property(field).unwrap_or_else(|| panic!("no {field}")).clone());
        assert!(containers.items().unwrap().property("image").is_some());
    }
}
