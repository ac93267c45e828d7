//! What several columns show alike.

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use super::column::{Column, Row};
use crate::{clock, metadata};

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

/// The first column of nearly every table.
pub(super) const NAME: Column = Column::text("Name", |row| metadata::name(row.object).into()).names();
/// The time since creation.
pub(super) const AGE: Column = Column::text("Age", |row| row.since("/metadata/creationTimestamp").into());
/// The time of creation, where a kind has no columns of its own.
pub(super) const CREATED_AT: Column = Column::date("Created At", |row| row.text("/metadata/creationTimestamp").into());

impl<'a> Row<'a> {
    pub(super) fn text(self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    /// A text, or another where there is none.
    pub(super) fn text_or(self, pointer: &str, default: &'a str) -> &'a str {
        let found = self.text(pointer);
        if found.is_empty() { default } else { found }
    }

    pub(super) fn integer(self, pointer: &str) -> i64 {
        integer(self.object, pointer)
    }

    pub(super) fn flag(self, pointer: &str) -> Option<bool> {
        self.object.pointer(pointer).and_then(Value::as_bool)
    }

    pub(super) fn list(self, pointer: &str) -> impl DoubleEndedIterator<Item = &'a Value> + ExactSizeIterator + Clone {
        list(self.object, pointer)
    }

    /// How many entries a list or map has.
    pub(super) fn count(self, pointer: &str) -> usize {
        match self.object.pointer(pointer) {
            Some(Value::Object(fields)) => fields.len(),
            Some(Value::Array(items)) => items.len(),
            _ => 0,
        }
    }

    /// The texts of a list, with commas between them.
    pub(super) fn joined(self, pointer: &str) -> String {
        self.list(pointer).filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    }

    /// How long ago a time was.
    pub(super) fn since(self, pointer: &str) -> String {
        since(self.object.pointer(pointer), self.now)
    }

    /// `containers` and `images` of a Pod's specification.
    pub(super) fn containers(self, pointer: &str, field: &str) -> Value {
        self.list(pointer).map(|container| text(container, field)).collect::<Vec<_>>().join(",").into()
    }
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn integer(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list<'a>(
    value: &'a Value,
    pointer: &str,
) -> impl DoubleEndedIterator<Item = &'a Value> + ExactSizeIterator + Clone {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

/// A number, text or truth value as text: what Go prints of an `intstr.IntOrString` or a number.
pub(super) fn plain(value: Option<&Value>, default: &str) -> String {
    match value {
        None | Some(Value::Null) => default.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// How long ago a time was; `<unknown>` without one.
pub(super) fn since(time: Option<&Value>, now: OffsetDateTime) -> String {
    let time = time.and_then(Value::as_str).and_then(clock::parse);
    time.map_or_else(|| UNKNOWN.to_owned(), |time| clock::age(time, now))
}

/// A number of seconds as ages are written.
pub(super) fn duration(seconds: i64, now: OffsetDateTime) -> String {
    let then = now.checked_sub(Duration::seconds(seconds));
    then.map_or_else(|| UNKNOWN.to_owned(), |then| clock::age(then, now))
}

/// Labels as `key=value`, ordered by key.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let pairs: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// A `LabelSelector` as text, ordered by key; empty when it selects everything or nothing.
pub(super) fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let equals = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut terms: Vec<(String, String)> =
        equals.map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default()))).collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = list(expression, "/values").filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort_by(|(left, _), (right, _)| left.cmp(right));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// [`selector_text`], or `<none>`.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let text = selector_text(selector);
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// The condition of a type.
pub(super) fn condition<'a>(object: &'a Value, wanted: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").find(|condition| text(condition, "/type") == wanted)
}

/// Whether a condition is true.
pub(super) fn holds(object: &Value, wanted: &str) -> bool {
    condition(object, wanted).is_some_and(|condition| text(condition, "/status") == "True")
}

/// The first few of many, and how many more there are.
pub(super) fn first_of(mut all: Vec<String>, most: usize, separator: &str, empty: &str) -> String {
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    match (all.is_empty(), more) {
        (true, _) => empty.to_owned(),
        (false, 0) => all.join(separator),
        (false, more) => format!("{} + {more} more...", all.join(separator)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_ordered_by_key() {
        let given = json!({
            "matchLabels": {"tier": "web", "app": "a"},
            "matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["y", "x"]},
                {"key": "env", "operator": "In", "values": ["prod"]},
                {"key": "beta", "operator": "DoesNotExist"},
                {"key": "gpu", "operator": "Exists"},
            ],
        });
        assert_eq!(selector(Some(&given)), "app=a,!beta,env in (prod),gpu,tier=web,zone notin (x,y)");
        assert_eq!(selector(Some(&json!({}))), "<none>");
        assert_eq!(selector(None), "<none>");
        assert_eq!(selector_text(None), "");
    }

    #[test]
    fn long_lists_are_cut() {
        let all = |count: usize| (0..count).map(|at| at.to_string()).collect();
        assert_eq!(first_of(all(0), 3, ",", "*"), "*");
        assert_eq!(first_of(all(3), 3, ",", "*"), "0,1,2");
        assert_eq!(first_of(all(5), 3, ",", "*"), "0,1,2 + 2 more...");
    }
}
