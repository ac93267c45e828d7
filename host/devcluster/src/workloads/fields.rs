//! Reading the fields of objects.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::kind::Kind;
use crate::{clock, metadata};

/// The number at a pointer.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer)?.as_i64()
}

/// The number at a pointer; zero when absent.
pub(super) fn count(object: &Value, pointer: &str) -> i64 {
    number(object, pointer).unwrap_or(0)
}

/// `spec.replicas`, one when absent.
pub(super) fn replicas(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1).max(0)
}

/// The text at a pointer; empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the boolean at a pointer is set.
pub(super) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer) == Some(&Value::Bool(true))
}

/// The list at a pointer; empty when absent.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The map at a pointer; empty when absent.
pub(super) fn map(object: &Value, pointer: &str) -> Map<String, Value> {
    object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The time at a pointer.
pub(super) fn time(object: &Value, pointer: &str) -> Option<OffsetDateTime> {
    clock::parse(text(object, pointer))
}

/// A label.
pub(super) fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get("labels")?.get(key)?.as_str()).unwrap_or_default()
}

/// The labels.
pub(super) fn labels(object: &Value) -> &Value {
    object.pointer("/metadata/labels").unwrap_or(&Value::Null)
}

/// `metadata.generation`.
pub(super) fn generation(object: &Value) -> i64 {
    count(object, "/metadata/generation")
}

/// The owner reference of the controller.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    list(object, "/metadata/ownerReferences").iter().find(|reference| flag(reference, "/controller"))
}

/// The uid of the controller; empty when there is none.
pub(super) fn controller_uid(object: &Value) -> &str {
    controller(object).map(|reference| text(reference, "/uid")).unwrap_or_default()
}

/// The owner reference that makes an object the controller of another.
pub(super) fn controller_reference(kind: Kind, owner: &Value) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name(),
        "name": metadata::name(owner), "uid": metadata::uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The condition of a type.
pub(super) fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == condition_type)
}

/// Whether the condition of a type is `True`.
pub(super) fn is_true(object: &Value, condition_type: &str) -> bool {
    condition(object, condition_type).is_some_and(|condition| text(condition, "/status") == "True")
}

/// An integer, or a percentage of a total (`intstr.GetScaledValueFromIntOrPercent`).
pub(super) fn scaled(value: Option<&Value>, total: i64, round_up: bool) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent: i64 = text.strip_suffix('%').and_then(|text| text.parse().ok()).unwrap_or(0);
            let product = percent.saturating_mul(total);
            if round_up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) }
        }
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    }
}

/// Bytes as two digits each.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The merge patch from one object to another, one level deep; `None` when they are equal.
pub(super) fn difference(present: &Value, wanted: &Value) -> Option<Value> {
    let nothing = Map::new();
    let (present, wanted) = (present.as_object().unwrap_or(&nothing), wanted.as_object().unwrap_or(&nothing));
    let mut change: Map<String, Value> = Map::new();
    for (field, value) in wanted {
        match present.get(field) {
            Some(before) if before == value => {}
            // Removed fields of a map must be named.
            Some(before @ Value::Object(_)) if value.is_object() => {
                if let Some(inner) = difference(before, value) {
                    change.insert(field.clone(), inner);
                }
            }
            _ => {
                change.insert(field.clone(), value.clone());
            }
        }
    }
    let gone = present.keys().filter(|field| !wanted.contains_key(*field));
    change.extend(gone.map(|field| (field.clone(), Value::Null)));
    (!change.is_empty()).then_some(Value::Object(change))
}

/// A status in the making; zero counts are omitted, as Go's `omitempty` does.
#[derive(Debug, Default)]
pub(super) struct Status(Map<String, Value>);

impl Status {
    /// A status of the current generation.
    pub(super) fn observed(object: &Value) -> Self {
        Self::default().count("observedGeneration", generation(object))
    }

    pub(super) fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0.insert(field.to_owned(), value.into());
        self
    }

    pub(super) fn set_some(self, field: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(field, value),
            None => self,
        }
    }

    pub(super) fn count(self, field: &str, count: i64) -> Self {
        if count == 0 { self } else { self.set(field, count) }
    }

    pub(super) fn build(self) -> Value {
        Value::Object(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_changed_where_it_differs() {
        let present = json!({"a": 1, "b": 2, "c": {"x": 1, "y": 1}});
        assert_eq!(difference(&present, &present), None);
        assert_eq!(
            difference(&present, &json!({"a": 1, "c": {"x": 2}})),
            Some(json!({"b": null, "c": {"x": 2, "y": null}}))
        );
        assert_eq!(difference(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
    }

    #[test]
    fn percentages_round_up_or_down_as_requested() {
        let cases = [(json!("25%"), 10, 3, 2), (json!(4), 10, 4, 4), (json!("100%"), 3, 3, 3), (json!("x"), 3, 0, 0)];
        for (value, total, up, down) in cases {
            assert_eq!(scaled(Some(&value), total, true), up, "{value}");
            assert_eq!(scaled(Some(&value), total, false), down, "{value}");
        }
        assert_eq!(scaled(None, 5, true), 0);
    }
}
