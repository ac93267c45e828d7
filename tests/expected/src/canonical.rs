//! A canonical form of objects for comparison: without meaningless values, and sorted by identity.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The maximum length of a shown value.
const SHOWN: usize = 200;

/// Objects sorted by identity, each once, without nulls and `status`.
///
/// OLM v1 emits several objects with one identity: roles of a repeated permission, or a ServiceAccount that is both generated and in
/// the bundle. If they are applied one after another, the last one remains.
pub fn canonical(objects: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut objects: Vec<Value> = objects.into_iter().map(without_meaningless_values).collect();
    // The sort is stable, so the last object with an identity stays the last one.
    objects.sort_by_cached_key(identity);
    objects.dedup_by(|next, kept| {
        let same = identity(next) == identity(kept);
        if same {
            std::mem::swap(next, kept);
        }
        same
    });
    objects
}

/// A value without its empty maps, and without the maps that are empty then.
pub fn without_empty_maps(mut value: Value) -> Value {
    drop_empty_maps(&mut value);
    value
}

fn drop_empty_maps(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty_maps);
            map.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty_maps),
        _ => {}
    }
}

fn without_meaningless_values(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    drop_nulls(&mut object);
    object
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `apiVersion kind namespace/name`.
pub fn identity(object: &Value) -> String {
    let text = |pointer| text(object, pointer);
    format!("{} {} {}/{}", text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The first difference of two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// A JSON pointer.
    pub pointer: String,
    /// The actual and the expected value, shortened.
    pub text: String,
}

/// Finds the first difference of two values. Numbers are compared by value: `1` equals `1.0`.
pub fn difference(want: &Value, got: &Value) -> Option<Difference> {
    at("", want, got)
}

fn at(pointer: &str, want: &Value, got: &Value) -> Option<Difference> {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let keys: BTreeSet<_> = want.keys().chain(got.keys()).collect();
            keys.into_iter().find_map(|key| {
                let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (want.get(key), got.get(key)) {
                    (Some(want), Some(got)) => at(&pointer, want, got),
                    (want, got) => Some(found(pointer, want, got)),
                }
            })
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            let mut pairs = want.iter().zip(got).enumerate();
            pairs.find_map(|(index, (want, got))| at(&format!("{pointer}/{index}"), want, got))
        }
        (want, got) if want == got => None,
        (Value::Number(want), Value::Number(got)) if want.as_f64() == got.as_f64() => None,
        (want, got) => Some(found(pointer.to_owned(), Some(want), Some(got))),
    }
}

fn found(pointer: String, want: Option<&Value>, got: Option<&Value>) -> Difference {
    Difference { pointer, text: format!("want {}, got {}", short(want), short(got)) }
}

fn short(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn meaningless_values_are_ignored() {
        let account = |extra: Value| {
            let mut account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "x": null}});
            account["metadata"]["labels"] = extra;
            account
        };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "status": {"phase": "x"}});
        let objects = canonical([account(json!({"a": "first"})), pod.clone(), account(json!({"a": "b"})), pod]);
        let names: Vec<_> = objects.iter().map(identity).collect();
        assert_eq!(names, ["v1 Pod /b", "v1 ServiceAccount /a"]);
        assert_eq!(objects[1].pointer("/metadata/labels/a"), Some(&json!("b")));
        assert_eq!(objects[1].pointer("/metadata/x"), None);
        assert_eq!(objects[0].get("status"), None);
        assert_eq!(without_empty_maps(json!({"a": {"b": {}}, "c": [{}]})), json!({"c": [{}]}));
    }

    #[test]
    fn the_first_difference_is_found() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1.0}), None),
            (json!({"a/b": [1, 2]}), json!({"a/b": [1, 3]}), Some(("/a~1b/1", "want 2, got 3"))),
            (json!({"a": {}}), json!({}), Some(("/a", "want {}, got nothing"))),
            (json!([1]), json!([1, 2]), Some(("", "want [1], got [1,2]"))),
        ];
        for (want, got, expected) in cases {
            let found = difference(&want, &got);
            let found = found.as_ref().map(|difference| (difference.pointer.as_str(), difference.text.as_str()));
            assert_eq!(found, expected);
        }
    }
}
