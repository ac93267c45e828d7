//! Columns of custom resources (`k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor`).

use chandler_devcluster_apimachinery::schema::PrinterColumn;
use serde_json::{Value, json};

use super::{
    cell::{AGE, NAME, since},
    column::{self, Row},
    jsonpath::Path,
};
use crate::{clock, registry::Custom};

/// The columns where a CRD states none.
pub(super) const UNSTATED: &[column::Column] = &[NAME, AGE.dates()];

/// A column with what finds its value.
#[derive(Debug)]
pub(super) struct Column<'a> {
    stated: &'a PrinterColumn,
    path: Path,
}

/// The columns behind the name. A path that cannot be read ends them, as it does there.
pub(super) fn columns(custom: &Custom) -> Vec<Column<'_>> {
    let stated = custom.version.printer_columns.iter();
    stated.map_while(|stated| Some(Column { stated, path: Path::parse(&stated.json_path)? })).collect()
}

impl Column<'_> {
    /// As `columnDefinitions` states it.
    pub(super) fn definition(&self) -> Value {
        let described = || format!("Custom resource definition column (in JSONPath format): {}", self.stated.json_path);
        let description = &self.stated.description;
        json!({
            "name": self.stated.name,
            "type": self.stated.column_type,
            "format": self.stated.format,
            "description": if description.is_empty() { described() } else { description.clone() },
            "priority": self.stated.priority,
        })
    }

    /// The first value found, or null: also where it is of another type than the column.
    pub(super) fn cell(&self, row: Row<'_>) -> Value {
        let found = self.path.find(row.object);
        let Some(value) = found.first().copied().filter(|value| !value.is_null()) else { return Value::Null };
        match self.stated.column_type.as_str() {
            "string" => value.as_str().map_or_else(|| value.to_string(), str::to_owned).into(),
            "integer" => whole(value).map_or(Value::Null, Value::from),
            "number" if value.is_number() => value.clone(),
            "boolean" if value.is_boolean() => value.clone(),
            "date" => date(value, row),
            _ => Value::Null,
        }
    }
}

/// A number without its fraction.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| format!("{:.0}", value.as_f64()?.trunc()).parse().ok())
}

fn date(value: &Value, row: Row<'_>) -> Value {
    match value.as_str() {
        None => Value::Null,
        Some("") => "<unknown>".into(),
        Some(text) if clock::parse(text).is_some() => since(Some(value), row.now).into(),
        Some(_) => "<invalid>".into(),
    }
}
