//! One column of a table.

use serde_json::{Value, json};
use time::OffsetDateTime;

/// The input of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// The object, of a built-in kind in the version in which it is stored.
    pub(super) object: &'a Value,
    /// The time for ages.
    pub(super) now: OffsetDateTime,
}

/// The JSON type that a column announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Boolean,
    Date,
}

/// A column of a built-in kind. A cell need not be of the announced type: kube-apiserver counts replicas under `string` too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    value_type: Type,
    is_name: bool,
    wide: bool,
    cell: fn(Row<'_>) -> Value,
}

impl Column {
    pub(super) const fn text(name: &'static str, cell: fn(Row<'_>) -> Value) -> Self {
        Self { name, value_type: Type::Text, is_name: false, wide: false, cell }
    }

    pub(super) const fn integer(name: &'static str, cell: fn(Row<'_>) -> Value) -> Self {
        Self { value_type: Type::Integer, ..Self::text(name, cell) }
    }

    pub(super) const fn boolean(name: &'static str, cell: fn(Row<'_>) -> Value) -> Self {
        Self { value_type: Type::Boolean, ..Self::text(name, cell) }
    }

    pub(super) const fn date(name: &'static str, cell: fn(Row<'_>) -> Value) -> Self {
        Self { value_type: Type::Date, ..Self::text(name, cell) }
    }

    /// This column with the format `name`.
    pub(super) const fn names(self) -> Self {
        Self { is_name: true, ..self }
    }

    /// This column with the type `date`.
    pub(super) const fn dates(self) -> Self {
        Self { value_type: Type::Date, ..self }
    }

    /// This column, for wide output only.
    pub(super) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    /// As `columnDefinitions` states it.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": match self.value_type {
                Type::Text => "string",
                Type::Integer => "integer",
                Type::Boolean => "boolean",
                Type::Date => "date",
            },
            "format": if self.is_name { "name" } else { "" },
            "description": "",
            "priority": i64::from(self.wide),
        })
    }

    pub(super) fn cell(&self, row: Row<'_>) -> Value {
        (self.cell)(row)
    }
}
