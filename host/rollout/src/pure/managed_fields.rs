//! Rewrites the record of a field manager from updates to applies. Pure.
//!
//! Objects are created by POST, which the API server records as an *update*. A later apply would keep the fields of that record
//! when the release drops them. So, before the first apply that drops some, the record is rewritten into one of an apply, as
//! `k8s.io/client-go/util/csaupgrade` does. The record includes defaults, which no release contains, so that objects of kinds with defaults
//! are rewritten before their first apply.

use chandler_core::Budget;
use serde_json::{Map, Value, json};

use crate::pure::owner::FIELD_MANAGER;

/// The number of steps for finding out whether a record has to be rewritten. Rewriting one that need not be costs one request.
const STEPS: u64 = 100_000;

/// Field managers of RukPak's two binaries, which managed the same objects before.
const RUKPAK: &[&str] = &["core", "helm"];

/// The rewritten `metadata.managedFields` of an object of the owner, or `None` if nothing has to be rewritten.
pub(crate) fn upgrade(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let (updates, mut rest): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| is_our_update(entry));
    let newest = *updates.last()?;
    let applied = rest.iter().position(|entry| is_our_apply(entry)).map(|position| rest.remove(position));
    let mut fields = Value::Object(Map::new());
    for entry in applied.into_iter().chain(updates) {
        if let Some(more) = entry.get("fieldsV1") {
            unite(&mut fields, more);
        }
    }
    let mut upgraded = applied.unwrap_or(newest).clone();
    if let Some(entry) = upgraded.as_object_mut() {
        entry.insert("manager".into(), json!(FIELD_MANAGER));
        entry.insert("operation".into(), json!("Apply"));
        entry.insert("fieldsV1".into(), fields);
    }
    Some(std::iter::once(&upgraded).chain(rest).cloned().collect())
}

/// Whether an apply of `desired` would keep fields that the owner's records of updates have, and that `desired` lacks. Only then a record
/// has to be [rewritten](upgrade).
pub(crate) fn keeps_more(object: &Value, desired: &Value) -> bool {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let (version, budget) = (text(desired, "apiVersion"), Budget::new(STEPS));
    entries.filter(|entry| is_our_update(entry)).any(|entry| {
        let is_plain = text(entry, "manager") == FIELD_MANAGER && text(entry, "apiVersion") == version;
        !is_plain || !entry.get("fieldsV1").is_some_and(|fields| has_all(desired, fields, &budget))
    })
}

/// Whether a value has every field of a set in the form FieldsV1. A path that is not understood counts as missing, and so does one that the
/// budget does not suffice for.
fn has_all(value: &Value, fields: &Value, budget: &Budget) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    let steps = value.as_array().map_or(1, Vec::len).saturating_mul(fields.len());
    if budget.take(steps as u64).is_err() {
        return false;
    }
    fields.iter().filter(|(element, _)| *element != ".").all(|(element, below)| {
        let found = match (element.split_once(':'), value) {
            (Some(("f", name)), Value::Object(members)) => members.get(name),
            (Some(("k", keys)), Value::Array(items)) => {
                let keys: Option<Map<String, Value>> = serde_json::from_str(keys).ok();
                let is_it = |item: &&Value| {
                    keys.as_ref().is_some_and(|keys| keys.iter().all(|(name, key)| item.get(name) == Some(key)))
                };
                items.iter().find(is_it)
            }
            (Some(("v", item)), Value::Array(items)) => {
                let item: Option<Value> = serde_json::from_str(item).ok();
                items.iter().find(|found| Some(*found) == item.as_ref())
            }
            _ => None,
        };
        found.is_some_and(|found| !found.is_null() && has_all(found, below, budget))
    })
}

/// The records of Chandler, except for subresources.
pub(crate) fn own(object: &Value) -> impl Iterator<Item = &Value> {
    let records = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    records.filter(|record| text(record, "manager") == FIELD_MANAGER && text(record, "subresource").is_empty())
}

fn is_our_update(entry: &Value) -> bool {
    let manager = text(entry, "manager");
    text(entry, "operation") == "Update"
        && text(entry, "subresource").is_empty()
        && (manager == FIELD_MANAGER || RUKPAK.contains(&manager))
}

fn is_our_apply(entry: &Value) -> bool {
    text(entry, "operation") == "Apply"
        && text(entry, "subresource").is_empty()
        && text(entry, "manager") == FIELD_MANAGER
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The union of two sets of fields in the form FieldsV1: a tree whose inner and outer nodes are objects.
fn unite(fields: &mut Value, more: &Value) {
    let (Value::Object(fields), Value::Object(more)) = (fields, more) else { return };
    for (path, below) in more {
        unite(fields.entry(path.clone()).or_insert_with(|| json!({})), below);
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made where they are handed over")]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn upgraded(entries: Value) -> Option<Value> {
        upgrade(&json!({"metadata": {"managedFields": entries}}))
    }

    #[test]
    fn an_update_of_chandler_becomes_an_apply() {
        let other = entry("kubectl", "Update", json!({"f:data": {"f:c": {}}}));
        let mut status = entry("chandler", "Update", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        assert_eq!(
            upgraded(json!([entry("chandler", "Update", json!({"f:data": {"f:a": {}}})), other, status])),
            Some(json!([entry("chandler", "Apply", json!({"f:data": {"f:a": {}}})), other, status]))
        );
    }

    #[test]
    fn several_records_are_united() {
        assert_eq!(
            upgraded(json!([
                entry("core", "Update", json!({"f:data": {".": {}, "f:a": {}}})),
                entry("chandler", "Apply", json!({"f:data": {"f:b": {}}})),
                entry("chandler", "Update", json!({"f:metadata": {"f:labels": {"f:x": {}}}})),
            ])),
            Some(json!([entry(
                "chandler",
                "Apply",
                json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}})
            )]))
        );
    }

    #[test]
    fn records_of_others_do_not_change() {
        assert_eq!(upgraded(json!([entry("chandler", "Apply", json!({}))])), None);
        assert_eq!(upgraded(json!([entry("kubectl", "Update", json!({}))])), None);
        assert_eq!(upgraded(json!("odd")), None);
        assert_eq!(upgrade(&json!({})), None);
    }

    #[test]
    fn a_record_is_rewritten_only_if_the_release_drops_a_field_of_it() {
        let desired = json!({
            "apiVersion": "v1", "data": {"a": "1"}, "list": [{"name": "x", "port": 1}], "tags": ["t"], "none": null, "rules": [{}],
        });
        let keeps = |entry: Value| keeps_more(&json!({"metadata": {"managedFields": [entry]}}), &desired);
        let ours = |fields: Value| entry("chandler", "Update", fields);
        for fields in [
            json!({}),
            json!({"f:data": {".": {}, "f:a": {}}, "f:rules": {}}),
            json!({"f:list": {r#"k:{"name":"x"}"#: {".": {}, "f:port": {}}}, "f:tags": {r#"v:"t""#: {}}}),
        ] {
            assert!(!keeps(ours(fields.clone())), "{fields}");
        }
        for fields in [
            json!({"f:data": {"f:a": {}, "f:dropped": {}}}),
            json!({"f:dropped": {}}),
            json!({"f:none": {}}),
            json!({"f:list": {r#"k:{"name":"y"}"#: {}}}),
            json!({"f:list": {r#"k:{"name":"x","protocol":"TCP"}"#: {}}}),
            json!({"f:list": {r#"k:{"name":"x"}"#: {"f:protocol": {}}}}),
            json!({"f:tags": {r#"v:"u""#: {}}}),
            json!({"f:tags": {"i:0": {}}}),
            json!({"f:tags": {"v:": {}}, "odd": {}}),
            json!({"f:data": {"f:a": {"f:below": {}}}}),
            json!("odd"),
        ] {
            assert!(keeps(ours(fields.clone())), "{fields}");
        }
        let fields = json!({"f:data": {"f:a": {}}});
        assert!(keeps(entry("helm", "Update", fields.clone())), "of another manager, which an apply does not change");
        assert!(
            !keeps(entry("kubectl", "Update", json!({"f:other": {}})))
                && !keeps(entry("chandler", "Apply", json!({"f:x": {}})))
        );
        let mut other = ours(fields);
        other["apiVersion"] = json!("v2");
        assert!(keeps(other), "paths of another version may mean something else");
    }

    #[test]
    fn only_records_of_the_object_itself_are_our_own() {
        let ours = entry("chandler", "Apply", json!({}));
        let mut status = ours.clone();
        status["subresource"] = json!("status");
        let object = json!({"metadata": {"managedFields": [entry("kubectl", "Apply", json!({})), status, ours]}});
        assert_eq!(own(&object).collect::<Vec<_>>(), [&ours]);
        assert_eq!(own(&json!({})).count(), 0);
    }
}
