//! The field managers that own a field of an object, by `metadata.managedFields`. Pure.
//!
//! The records are sets of paths in the form FieldsV1 (`sigs.k8s.io/structured-merge-diff/v6/fieldpath/serialize-pe.go`):
//! `f:name` is a member, `k:{...}` an item by its keys, `v:...` an item by its value, `i:n` an item by its index. A path that
//! ends owns everything below it.

pub(crate) mod records;

use std::fmt;

use serde_json::{Map, Value};

use crate::pure::owner::FIELD_MANAGER;

/// A field manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// Its name in `managedFields`.
    pub name: String,
    /// Whether it uses server-side apply, so that it continues to own its fields.
    pub applies: bool,
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.applies { "applied by" } else { "set by" };
        write!(f, "{verb} {}", self.name)
    }
}

/// One element of a path into an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathElement<'a> {
    /// The member with this name.
    Member(&'a str),
    /// This item of a list.
    Item(usize, &'a Value),
}

/// How a record covers a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// The path itself, and so everything below it.
    Exactly,
    /// A value above it that is only written as a whole.
    Above,
    /// A value below it.
    Below,
}

/// The field manager other than Chandler that last wrote the value at this path.
pub(crate) fn manager(object: &Value, path: &[PathElement<'_>]) -> Option<Manager> {
    let others = records(object).filter(|record| text(record, "manager") != FIELD_MANAGER);
    let existing_owners =
        others.filter(|record| record.get("fieldsV1").and_then(|fields| held(fields, path)).is_some());
    // The times have one format and one time zone, so that they sort as texts.
    existing_owners.max_by_key(|record| text(record, "time")).map(|record| Manager {
        name: text(record, "manager").to_owned(),
        applies: text(record, "operation") == "Apply",
    })
}

/// Whether another field manager owns exactly the value at this path.
#[cfg(test)]
pub(crate) fn is_owned_by_others(object: &Value, path: &[PathElement<'_>]) -> bool {
    records(object)
        .filter(|record| text(record, "manager") != FIELD_MANAGER)
        .any(|record| record.get("fieldsV1").and_then(|fields| held(fields, path)) == Some(Held::Exactly))
}

/// Whether the value at this path was written as a whole, or as a part of a value that was.
#[cfg(test)]
pub(crate) fn is_whole(object: &Value, path: &[PathElement<'_>]) -> bool {
    records(object)
        .filter_map(|record| held(record.get("fieldsV1")?, path))
        .any(|held| matches!(held, Held::Exactly | Held::Above))
}

/// The records of everything but the status.
fn records(object: &Value) -> impl Iterator<Item = &Value> {
    let records = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    records.filter(|record| text(record, "subresource") != "status")
}

fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// How a set of fields covers this path, or `None` if it does not.
fn held(fields: &Value, path: &[PathElement<'_>]) -> Option<Held> {
    let mut node = fields.as_object()?;
    for (depth, step) in path.iter().enumerate() {
        if node.is_empty() {
            return (depth > 0).then_some(Held::Above);
        }
        node = below(node, step)?;
    }
    Some(if node.is_empty() { Held::Exactly } else { Held::Below })
}

fn below<'a>(node: &'a Map<String, Value>, step: &PathElement<'_>) -> Option<&'a Map<String, Value>> {
    match step {
        PathElement::Member(name) => node.get(&format!("f:{name}"))?.as_object(),
        PathElement::Item(index, item) => {
            node.iter().find_map(|(element, below)| is_of(element, *index, item).then_some(below))?.as_object()
        }
    }
}

/// Whether a path element matches this item.
fn is_of(element: &str, index: usize, item: &Value) -> bool {
    let Some((form, rest)) = element.split_once(':') else { return false };
    match form {
        "i" => rest.parse() == Ok(index),
        "v" => serde_json::from_str::<Value>(rest).is_ok_and(|value| value == *item),
        "k" => serde_json::from_str::<Map<String, Value>>(rest)
            .is_ok_and(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(manager: &str, operation: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn object() -> Value {
        let mut status = record("kubelet", "Update", "2026-01-09T00:00:00Z", &json!({"f:spec": {"f:replicas": {}}}));
        status["subresource"] = json!("status");
        let mut scale = record("autoscaler", "Update", "2026-01-02T00:00:00Z", &json!({"f:spec": {"f:replicas": {}}}));
        scale["subresource"] = json!("scale");
        json!({
            "metadata": {"managedFields": [
                record("chandler", "Apply", "2026-01-03T00:00:00Z", &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
                record("first", "Update", "2026-01-01T00:00:00Z", &json!({"f:spec": {"f:replicas": {}}})),
                scale,
                record("argocd", "Apply", "2026-01-01T00:00:00Z", &json!({"f:spec": {
                    "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
                    "f:args": {"i:1": {}}, "f:finalizers": {"v:\"a\"": {}}, "f:selector": {},
                }})),
                status,
                {"manager": "odd", "fieldsV1": "odd"},
            ]},
        })
    }

    #[test]
    fn the_last_manager_of_a_field_is_named() {
        let port = json!({"port": 80, "protocol": "TCP", "name": "web"});
        let other = json!({"port": 81, "protocol": "TCP"});
        let (spec, a) = (PathElement::Member("spec"), json!("a"));
        for (path, want, exactly) in [
            (vec![spec, PathElement::Member("replicas")], Some("set by autoscaler"), true),
            (vec![spec, PathElement::Member("paused")], None, false),
            (vec![spec, PathElement::Member("unknown")], None, false),
            (
                vec![spec, PathElement::Member("ports"), PathElement::Item(3, &port), PathElement::Member("name")],
                Some("applied by argocd"),
                true,
            ),
            (vec![spec, PathElement::Member("ports"), PathElement::Item(3, &port)], Some("applied by argocd"), false),
            (vec![spec, PathElement::Member("ports"), PathElement::Item(3, &other)], None, false),
            (vec![spec, PathElement::Member("args"), PathElement::Item(1, &a)], Some("applied by argocd"), true),
            (vec![spec, PathElement::Member("args"), PathElement::Item(0, &a)], None, false),
            (vec![spec, PathElement::Member("finalizers"), PathElement::Item(7, &a)], Some("applied by argocd"), true),
            // A value that is only written as a whole.
            (vec![spec, PathElement::Member("selector"), PathElement::Member("app")], Some("applied by argocd"), false),
        ] {
            let object = object();
            let found = manager(&object, &path).map(|manager| manager.to_string());
            assert_eq!(found.as_deref(), want, "{path:?}");
            assert_eq!(is_owned_by_others(&object, &path), exactly, "{path:?}");
        }
        assert_eq!(manager(&json!({"metadata": {"managedFields": {}}}), &[spec]), None);
    }
}
