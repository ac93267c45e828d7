//! How two states of an object differ, field by field, for people to read. Pure.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;
use serde::Serialize;
use serde_json::Value;

use crate::{desired::APPLIED, difference::essence};

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Where, as in `spec.template.spec.containers[name=manager].image`.
    pub path: String,
    /// What stands there; none where nothing does. Values of Secrets are never told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What will stand there; none where nothing will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// What stands in the place of values that may be secret.
const HIDDEN: &str = "(hidden)";

/// Members of metadata that the API server writes, or that only repeat what the rest says.
const NOISE: &[&str] = &["uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "selfLink"];

/// The members by which items of lists are told apart, the most telling first.
const KEYS: &[&str] = &["name", "type", "key", "ip", "uid"];

/// The fields in which two states of an object differ, in the order of their paths.
pub(crate) fn changes(key: &ObjectKey, before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare(String::new(), Some(&quiet(before)), Some(&quiet(after)), &mut changes);
    if key.group.is_empty() && key.kind == "Secret" {
        changes.iter_mut().for_each(hide);
    }
    changes
}

/// What of an object counts.
fn quiet(object: &Value) -> Value {
    let mut object = essence(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in NOISE {
            metadata.remove(*name);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    object
}

fn hide(change: &mut FieldChange) {
    if change.path.starts_with("metadata") {
        return;
    }
    for value in [&mut change.before, &mut change.after].into_iter().flatten() {
        *value = Value::from(HIDDEN);
    }
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                compare(member(&path, name), before.get(name), after.get(name), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            if let Some(key) = KEYS.iter().find(|key| tells_apart(key, before) && tells_apart(key, after)) {
                by_key(&path, key, before, after, changes);
            } else if before.len() == after.len() {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    compare(format!("{path}[{index}]"), Some(before), Some(after), changes);
                }
            } else {
                let (before, after) = (Value::from(before.clone()), Value::from(after.clone()));
                changes.push(FieldChange { path, before: Some(before), after: Some(after) });
            }
        }
        (before, after) => changes.push(FieldChange { path, before: before.cloned(), after: after.cloned() }),
    }
}

/// Compares items that have the same name. What only changes places is told as a change of the order.
fn by_key(path: &str, key: &str, before: &[Value], after: &[Value], changes: &mut Vec<FieldChange>) {
    let name = |item: &Value| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let names = |items: &[Value]| items.iter().map(name).collect::<Vec<String>>();
    let (old, new) = (names(before), names(after));
    let all: BTreeSet<&String> = old.iter().chain(&new).collect();
    for wanted in &all {
        let item = |items: &[Value]| items.iter().find(|item| name(item) == **wanted).cloned();
        compare(format!("{path}[{key}={wanted}]"), item(before).as_ref(), item(after).as_ref(), changes);
    }
    let kept = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| others.contains(name)).cloned().collect()
    };
    if kept(&old, &new) != kept(&new, &old) {
        changes.push(FieldChange {
            path: format!("{path} (order)"),
            before: Some(Value::from(old)),
            after: Some(Value::from(new)),
        });
    }
}

/// Whether each of these items has a name of its own.
fn tells_apart(key: &str, items: &[Value]) -> bool {
    let names: BTreeSet<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
    names.len() == items.len()
}

/// The path of a member. A name that would be read as more than one is quoted.
fn member(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '$');
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", Value::from(name)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(kind: &str) -> ObjectKey {
        ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: Some("n".into()),
            name: "x".into(),
        }
    }

    fn lines(kind: &str, before: &Value, after: &Value) -> String {
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        let line =
            |change: &FieldChange| format!("{}: {} => {}\n", change.path, text(&change.before), text(&change.after));
        changes(&key(kind), before, after).iter().map(line).collect()
    }

    #[test]
    fn fields_are_named_as_people_write_them() {
        let before = json!({
            "metadata": {"uid": "a", "resourceVersion": "1", "labels": {"app.kubernetes.io/name": "x"},
                         "annotations": {"chandler.dev/applied": "1"}},
            "spec": {"replicas": 1, "ports": [1, 2], "args": ["a"],
                     "containers": [{"name": "a", "image": "i:1"}, {"name": "b"}]},
            "status": {"ready": true},
        });
        let after = json!({
            "metadata": {"uid": "a", "resourceVersion": "2", "labels": {"app.kubernetes.io/name": "y"},
                         "annotations": {"chandler.dev/applied": "2"}},
            "spec": {"replicas": 2, "ports": [1, 3], "args": ["a", "b"],
                     "containers": [{"name": "c"}, {"name": "a", "image": "i:2"}]},
        });
        insta::assert_snapshot!(lines("ConfigMap", &before, &after), @r#"
        metadata.labels["app.kubernetes.io/name"]: "x" => "y"
        spec.args: ["a"] => ["a","b"]
        spec.containers[name=a].image: "i:1" => "i:2"
        spec.containers[name=b]: {"name":"b"} => -
        spec.containers[name=c]: - => {"name":"c"}
        spec.ports[1]: 2 => 3
        spec.replicas: 1 => 2
        "#);
        assert_eq!(lines("ConfigMap", &before, &before), "");
        let order = json!({"a": [{"name": "x"}, {"name": "y"}]});
        let turned = json!({"a": [{"name": "y"}, {"name": "x"}]});
        assert_eq!(lines("ConfigMap", &order, &turned), "a (order): [\"x\",\"y\"] => [\"y\",\"x\"]\n");
    }

    #[test]
    fn values_of_secrets_are_not_told() {
        let before = json!({"data": {"a": "b2xk"}, "type": "Opaque"});
        let after = json!({"data": {"a": "bmV3", "b": "bmV3"}, "type": "Opaque"});
        let told = lines("Secret", &before, &after);
        assert_eq!(told, "data.a: \"(hidden)\" => \"(hidden)\"\ndata.b: - => \"(hidden)\"\n");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-b]", inner.clone()), 0..3).prop_map(|items| {
                    items.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
                }),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn something_is_told_just_where_something_differs(before in any_json(), after in any_json()) {
            let (before, after) = (json!({"spec": before}), json!({"spec": after}));
            let told = changes(&key("ConfigMap"), &before, &after);
            prop_assert_eq!(told.is_empty(), before == after);
            prop_assert!(told.iter().all(|change| change.before != change.after));
        }
    }
}
