//! Tables: what `kubectl get` prints.

mod builtin;
mod columns;
mod jsonpath;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

pub use self::columns::Column;
use crate::{convert, registry::Resource, request::negotiate::IncludeObject};

/// The `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub struct ListMetadata {
    /// The revision that the list shows.
    pub resource_version: String,
    /// Where the next page begins.
    pub continue_token: Option<String>,
    /// How many objects follow, where known.
    pub remaining: Option<usize>,
}

impl ListMetadata {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), self.resource_version.as_str().into());
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        Value::Object(metadata)
    }
}

/// The `apiVersion` of a table.
pub fn api_version(beta: bool) -> &'static str {
    if beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
}

/// Renders objects as a table; only the first event of a watch states the columns.
pub fn render<'a>(
    resource: &Resource,
    objects: impl Iterator<Item = &'a Value>,
    metadata: &ListMetadata,
    include: IncludeObject,
    beta: bool,
    with_columns: bool,
    now: OffsetDateTime,
) -> Value {
    let columns = columns::of(resource);
    let rows = objects.map(|object| {
        let cells: Vec<Value> = columns.iter().map(|column| column.cell(object, now)).collect();
        let mut row = json!({"cells": cells});
        let shown = match include {
            IncludeObject::None => None,
            IncludeObject::Metadata => Some(convert::partial_metadata(object)),
            IncludeObject::Object => Some(object.clone()),
        };
        if let (Some(shown), Some(row)) = (shown, row.as_object_mut()) {
            row.insert("object".to_owned(), shown);
        }
        row
    });
    let rows: Vec<Value> = rows.collect();
    let definitions = with_columns.then(|| columns.iter().map(Column::definition).collect::<Vec<_>>());
    json!({
        "kind": "Table",
        "apiVersion": api_version(beta),
        "metadata": metadata.to_value(),
        "columnDefinitions": definitions,
        "rows": rows,
    })
}
