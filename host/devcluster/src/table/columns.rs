//! Columns of a resource's table.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{builtin, jsonpath};
use crate::{clock, metadata, registry::Resource};

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub column_type: String,
    /// OpenAPI format; `name` marks the name.
    pub format: String,
    /// Description.
    pub description: String,
    /// Above 0: wide output only.
    pub priority: i64,
    pub(super) source: Source,
}

/// Where a cell comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The name.
    Name,
    /// The time since the value at this path.
    Age(String),
    /// The value at this path.
    Path(String),
    /// Worked out.
    Function(fn(&Value) -> Value),
}

impl Column {
    pub(super) fn new(name: &str, column_type: &str, priority: i64, source: Source) -> Self {
        let format = if matches!(source, Source::Name) { "name" } else { "" };
        Self {
            name: name.to_owned(),
            column_type: column_type.to_owned(),
            format: format.to_owned(),
            description: String::new(),
            priority,
            source,
        }
    }

    /// The column as `columnDefinitions` states it.
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.column_type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    /// The cell of an object.
    pub fn cell(&self, object: &Value, now: OffsetDateTime) -> Value {
        match &self.source {
            Source::Name => metadata::name(object).into(),
            Source::Age(path) => age(jsonpath::find(path, object).first().copied(), now),
            Source::Function(function) => function(object),
            Source::Path(path) => self.typed(&jsonpath::find(path, object)),
        }
    }

    fn typed(&self, found: &[&Value]) -> Value {
        let [first, ..] = found else { return Value::Null };
        match self.column_type.as_str() {
            "integer" if first.is_i64() || first.is_u64() => (*first).clone(),
            "integer" => first
                .as_f64()
                .map_or(Value::Null, |number| format!("{number:.0}").parse::<i64>().into_iter().sum::<i64>().into()),
            "number" if first.is_number() => (*first).clone(),
            "boolean" if first.is_boolean() => (*first).clone(),
            "string" if first.is_null() => Value::Null,
            "string" | "date" => found.iter().map(|value| jsonpath::plain(value)).collect::<Vec<_>>().join(",").into(),
            _ => Value::Null,
        }
    }
}

/// How long ago a time was; `<unknown>` without one.
pub(super) fn age(time: Option<&Value>, now: OffsetDateTime) -> Value {
    let time = time.and_then(Value::as_str).and_then(clock::parse);
    time.map_or_else(|| "<unknown>".to_owned(), |time| clock::age(time, now)).into()
}

/// The columns of a resource.
pub(super) fn of(resource: &Resource) -> Vec<Column> {
    let created = || Source::Age(".metadata.creationTimestamp".to_owned());
    let mut columns = vec![Column::new("Name", "string", 0, Source::Name)];
    let Some(custom) = &resource.custom else {
        columns.extend(builtin::columns(resource.kind()));
        if !columns.iter().any(|column| column.name == "Created At") {
            columns.push(Column::new("Age", "string", 0, created()));
        }
        // What wide output adds stands behind the age.
        columns.sort_by_key(|column| column.priority > 0);
        return columns;
    };
    if custom.version.printer_columns.is_empty() {
        columns.push(Column::new("Age", "date", 0, created()));
    }
    columns.extend(custom.version.printer_columns.iter().map(|column| {
        let path = column.json_path.clone();
        let source = if column.column_type == "date" { Source::Age(path) } else { Source::Path(path) };
        Column {
            format: column.format.clone(),
            description: column.description.clone(),
            ..Column::new(&column.name, &column.column_type, column.priority, source)
        }
    }));
    columns
}
