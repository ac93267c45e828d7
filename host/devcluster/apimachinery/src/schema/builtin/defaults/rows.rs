//! Defaults as rows: a path and a value.

use serde_json::{Map, Value};

/// A value to fill in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Default {
    /// A whole number.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(&'static str),
    /// The empty object, in which later rows fill in fields.
    Object,
}

impl Default {
    fn value(self) -> Value {
        match self {
            Self::Int(number) => number.into(),
            Self::Bool(flag) => flag.into(),
            Self::Text(text) => text.into(),
            Self::Object => Value::Object(Map::new()),
        }
    }
}

/// Sets absent values. A step ending in `[]` goes into every item of a list; a path whose parent is absent is skipped.
pub(super) fn fill(object: &mut Value, rows: &[(&str, Default)]) {
    for (path, default) in rows {
        fill_at(object, path, *default);
    }
}

fn fill_at(value: &mut Value, path: &str, default: Default) {
    let Some((step, rest)) = path.split_once('.') else {
        if let Some(object) = value.as_object_mut() {
            let field = object.entry(path).or_insert(Value::Null);
            if field.is_null() {
                *field = default.value();
            }
        }
        return;
    };
    match step.strip_suffix("[]") {
        Some(list) => {
            for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                fill_at(item, rest, default);
            }
        }
        None => {
            if let Some(child) = value.get_mut(step) {
                fill_at(child, rest, default);
            }
        }
    }
}
