//! The schema of a whole custom resource.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::schema::{
    model::{MapType, Node, Scalar, Schema, Shape},
    parse::{self, SchemaError},
    registry::Builtins,
};

/// Reads the schema of one version of a CRD.
pub(crate) fn read(json: &Value) -> Result<Schema, SchemaError> {
    let mut node = parse::whole(json)?;
    add_object_fields(&mut node);
    Ok(Schema::new(node))
}

/// Every object has `apiVersion`, `kind` and `metadata`, and the type of `metadata` is fixed.
///
/// The schema of a CRD below `metadata` restricts values but does not change the type: it becomes one more validation.
fn add_object_fields(node: &mut Node) {
    let Shape::Object { properties, .. } = &mut node.shape else { return };
    for name in ["apiVersion", "kind"] {
        properties.entry(name.to_owned()).or_insert_with(|| {
            let shape = Shape::Scalar(Scalar::String { format: None, pattern: None, length: (None, None) });
            Schema::new(Node { shape, ..Node::default() })
        });
    }
    if let Some(restriction) = properties.insert("metadata".to_owned(), Builtins::get().object_meta()) {
        let shape = Shape::Object {
            properties: BTreeMap::from([("metadata".to_owned(), restriction)]),
            required: Vec::new(),
            values: None,
            map_type: MapType::Granular,
            preserve_unknown: true,
            embedded_resource: false,
            size: (None, None),
        };
        node.combinations.get_or_insert_default().all_of.push(Schema::new(Node { shape, ..Node::default() }));
    }
}
