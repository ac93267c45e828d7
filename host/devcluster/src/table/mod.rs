//! Tables: what `kubectl get` prints.
//!
//! | module | holds |
//! |---|---|
//! | `builtin` | the columns of built-in kinds |
//! | `custom` | the columns that CRDs state |
//! | `column`, `cell` | what a column is; what several columns show alike |
//! | `jsonpath` | the paths of CRDs' columns |

mod builtin;
mod cell;
mod column;
mod custom;
mod jsonpath;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use self::column::Row;
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
    let columns = Columns::of(resource);
    let rows = objects.map(|object| {
        let mut row = Map::from_iter([("cells".to_owned(), columns.cells(resource, object, now).into())]);
        if let (true, Some(conditions)) = (resource.is_core("pods"), builtin::row_conditions(object)) {
            row.insert("conditions".to_owned(), conditions);
        }
        let shown = match include {
            IncludeObject::None => None,
            IncludeObject::Metadata => Some(convert::partial_metadata(object)),
            IncludeObject::Object => Some(object.clone()),
        };
        // A row without an object says so.
        row.insert("object".to_owned(), shown.unwrap_or_default());
        Value::Object(row)
    });
    let rows: Vec<Value> = rows.collect();
    let definitions = with_columns.then(|| columns.definitions());
    json!({
        "kind": "Table",
        "apiVersion": api_version(beta),
        "metadata": metadata.to_value(),
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// The columns of a resource.
enum Columns<'a> {
    Builtin(&'static [column::Column]),
    /// Behind the name.
    Custom(Vec<custom::Column<'a>>),
}

impl<'a> Columns<'a> {
    fn of(resource: &'a Resource) -> Self {
        match resource.custom.as_deref() {
            None => Self::Builtin(builtin::columns(resource.kind())),
            Some(custom) if custom.version.printer_columns.is_empty() => Self::Builtin(custom::UNSTATED),
            Some(custom) => Self::Custom(custom::columns(custom)),
        }
    }

    fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Builtin(columns) => columns.iter().map(column::Column::definition).collect(),
            Self::Custom(columns) => {
                let name = std::iter::once(cell::NAME.definition());
                name.chain(columns.iter().map(custom::Column::definition)).collect()
            }
        }
    }

    fn cells(&self, resource: &Resource, object: &Value, now: OffsetDateTime) -> Vec<Value> {
        match self {
            Self::Builtin(columns) => {
                let stored = as_stored(resource, object);
                columns.iter().map(|column| column.cell(Row { object: &stored, now })).collect()
            }
            Self::Custom(columns) => {
                let row = Row { object, now };
                let name = std::iter::once(cell::NAME.cell(row));
                name.chain(columns.iter().map(|column| column.cell(row))).collect()
            }
        }
    }
}

/// Two kinds are served in several forms; their cells are worked out from the one in which they are stored.
fn as_stored<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.custom.is_some() || resource.is_storage_version() {
        Cow::Borrowed(object)
    } else {
        Cow::Owned(convert::to_stored(resource, object.clone()))
    }
}
