//! The replacement of a stored object where an apply is impossible: the values that the API server complains about are replaced by the
//! desired ones. Pure.

use serde_json::{Map, Value};

use crate::pure::{
    error::ApplyError,
    fields::key_of,
    untyped::{self, Untyped},
};

/// The ways in which lists are replaced, the one that changes less first.
pub(crate) const LISTS: [Lists; 2] = [Lists::ByName, Lists::Whole];

/// How lists are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Item by item if items have names, so that items of other field managers stay.
    ByName,
    /// As a whole.
    Whole,
}

/// The live object merged with the desired object. Fields that the API server names take their desired value, and items without
/// keys are removed. The metadata stays: an apply is never refused because of other managers' metadata.
pub(crate) fn replacement(live: &Value, desired: &Value, refusal: &ApplyError, lists: Lists) -> Value {
    let mut desired = desired.clone();
    if let Some(desired) = desired.as_object_mut() {
        for name in ["metadata", "status"] {
            desired.remove(name);
        }
    }
    let mut wanted = live.clone();
    let (lacking_keys, whole): (Vec<&Untyped>, Vec<&Untyped>) =
        refusal.untyped.iter().partition(|untyped| !untyped.keys.is_empty());
    for untyped in lacking_keys {
        untyped::remove_items_without_keys(&mut wanted, untyped);
    }
    wanted = merged_with(&wanted, &desired, lists);
    let named = refusal.fields.iter().map(|field| path(field));
    for path in named.chain(whole.into_iter().map(|untyped| untyped.path.clone())) {
        set(&mut wanted, &desired, &path, lists);
    }
    wanted
}

fn merged_with(live: &Value, desired: &Value, lists: Lists) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut result = live.clone();
            for (name, desired) in desired {
                let merged = live.get(name).map_or_else(|| desired.clone(), |live| merged_with(live, desired, lists));
                result.insert(name.clone(), merged);
            }
            Value::Object(result)
        }
        (Value::Array(live), Value::Array(desired)) => {
            items(live, desired, lists, |live, desired| merged_with(live, desired, lists))
        }
        (_, desired) => desired.clone(),
    }
}

/// The items of a list; items of the same name are merged.
fn items(live: &[Value], desired: &[Value], lists: Lists, unite: impl Fn(&Value, &Value) -> Value) -> Value {
    let Some(key) = key_of(live, desired).filter(|_| lists == Lists::ByName) else { return desired.into() };
    let same = |one: &Value, items: &[Value]| items.iter().find(|item| item.get(key) == one.get(key)).cloned();
    let united =
        live.iter().map(|item| same(item, desired).map_or_else(|| item.clone(), |wanted| unite(item, &wanted)));
    let added = desired.iter().filter(|item| same(item, live).is_none()).cloned();
    united.chain(added).collect()
}

/// Sets the value at a path to the desired one, or removes it. For a list, all items are set: the API server counts the items of the list
/// that an apply would have produced.
fn set(wanted: &mut Value, desired: &Value, path: &[String], lists: Lists) {
    match (wanted, desired) {
        (Value::Object(wanted), Value::Object(desired)) => {
            let Some((name, rest)) = path.split_first() else {
                wanted.clone_from(desired);
                return;
            };
            match (wanted.get_mut(name), desired.get(name)) {
                // Members that identify the object, or are not part of the applied object.
                (Some(_), None) if is_root(desired) => {}
                (Some(_), None) => {
                    wanted.remove(name);
                }
                (Some(wanted), Some(desired)) => set(wanted, desired, rest, lists),
                (None, _) => {}
            }
        }
        (Value::Array(wanted), Value::Array(desired)) => {
            *wanted = match items(wanted, desired, lists, |_, desired| desired.clone()) {
                Value::Array(items) => items,
                _ => return,
            };
        }
        (wanted, desired) => *wanted = desired.clone(),
    }
}

fn is_root(desired: &Map<String, Value>) -> bool {
    desired.contains_key("apiVersion") && desired.contains_key("kind")
}

/// The path elements of a field as the API server prints it, `spec.ports[1].name` or `spec.selector[app]`.
fn path(field: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut in_brackets = false;
    for c in field.chars() {
        match c {
            '.' if !in_brackets => steps.push(String::new()),
            '[' if !in_brackets => {
                in_brackets = true;
                steps.push(String::new());
            }
            ']' if in_brackets => in_brackets = false,
            c => steps.last_mut().into_iter().for_each(|step| step.push(c)),
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

/// The merge patch (RFC 7386) that turns one value into the other, without metadata.
pub(crate) fn merge_patch(live: &Value, wanted: &Value) -> Value {
    let (Value::Object(live), Value::Object(wanted)) = (live, wanted) else { return wanted.clone() };
    let mut patch = Map::new();
    for name in live.keys().filter(|name| !wanted.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, wanted) in wanted {
        match live.get(name) {
            Some(live) if live == wanted => {}
            Some(live) if live.is_object() && wanted.is_object() => {
                patch.insert(name.clone(), merge_patch(live, wanted));
            }
            _ => {
                patch.insert(name.clone(), wanted.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::pure::error::ApiError;

    #[test]
    fn fields_that_the_server_names_are_replaced() {
        let root = |spec: &Value| json!({"apiVersion": "v1", "kind": "X", "spec": spec});
        for (live, desired, field, by_name, whole) in [
            (
                json!({"ports": [{"port": 8080}], "clusterIP": "10.0.0.1"}),
                json!({"ports": [{"port": 80}]}),
                "spec.ports[1].name",
                json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.1"}),
                None,
            ),
            (
                json!({"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
                json!({"strategy": {"type": "Recreate"}}),
                "spec.strategy.rollingUpdate",
                json!({"replicas": 3, "strategy": {"type": "Recreate"}}),
                None,
            ),
            (
                json!({"volumes": [{"name": "a", "secret": {"x": 1}}, {"name": "theirs"}]}),
                json!({"volumes": [{"name": "a", "configMap": {"y": 1}}]}),
                "spec.volumes[0].secret",
                json!({"volumes": [{"name": "a", "configMap": {"y": 1}}, {"name": "theirs"}]}),
                Some(json!({"volumes": [{"name": "a", "configMap": {"y": 1}}]})),
            ),
            (
                json!({"labels": {"a.b/c": "bad", "d": "e"}}),
                json!({"labels": {"f": "g"}}),
                "spec.labels[a.b/c]",
                json!({"labels": {"d": "e", "f": "g"}}),
                None,
            ),
            (json!({"a": 1, "b": 2}), json!({"a": 3}), "spec", json!({"a": 3}), None),
            // Causes that name no field, or one that must not be removed.
            (json!({"b": 2}), json!({"a": 3}), "<nil>", json!({"a": 3, "b": 2}), None),
            (json!({"b": 2}), json!({"a": 3}), "metadata.name", json!({"a": 3, "b": 2}), None),
        ] {
            for (lists, want) in [(Lists::ByName, &by_name), (Lists::Whole, whole.as_ref().unwrap_or(&by_name))] {
                let mut live = root(&live);
                live["metadata"] = json!({"name": "x", "finalizers": ["theirs"]});
                let error = ApiError::Invalid(String::new());
                let refusal = ApplyError { fields: vec![field.to_owned()], ..ApplyError::from(error) };
                let wanted = replacement(&live, &root(&desired), &refusal, lists);
                assert_eq!(wanted["spec"], *want, "{field} {lists:?}");
                assert_eq!(wanted["metadata"], live["metadata"]);
            }
        }
    }

    #[test]
    fn values_of_the_wrong_type_are_removed_or_replaced() {
        let untyped = |name: &str, keys: &[&str]| Untyped {
            path: vec!["spec".to_owned(), name.to_owned()],
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
        };
        let root = |spec: &Value| json!({"apiVersion": "v1", "kind": "X", "spec": spec});
        let live = root(&json!({"a": [{"name": "theirs"}, {}], "b": "x", "c": [{}], "d": 1}));
        let refusal = ApplyError {
            error: ApiError::Invalid(String::new()),
            fields: Vec::new(),
            causes: Vec::new(),
            untyped: vec![untyped("a", &["name"]), untyped("b", &[]), untyped("c", &[])],
        };
        let wanted = replacement(&live, &root(&json!({"b": {"y": "z"}})), &refusal, Lists::ByName);
        assert_eq!(wanted, root(&json!({"a": [{"name": "theirs"}], "b": {"y": "z"}, "d": 1})));
    }

    #[test]
    fn field_paths_are_parsed() {
        for (field, want) in [
            ("spec.ports[1].name", vec!["spec", "ports", "1", "name"]),
            ("spec.selector[app.kubernetes.io/name]", vec!["spec", "selector", "app.kubernetes.io/name"]),
            (".data", vec!["data"]),
            ("", vec![]),
        ] {
            assert_eq!(path(field), want);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// RFC 7386.
    fn merged(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = if let Value::Object(target) = target { target } else { Map::new() };
        for (name, value) in patch {
            let before = target.remove(name);
            if !value.is_null() {
                target.insert(name.clone(), merged(before.unwrap_or_default(), value));
            }
        }
        Value::Object(target)
    }

    proptest! {
        #[test]
        fn a_merge_patch_turns_one_value_into_the_other(live in any_json(), wanted in any_json()) {
            let (live, wanted) = (json!({"spec": live}), json!({"spec": wanted}));
            prop_assert_eq!(merged(live.clone(), &merge_patch(&live, &wanted)), wanted);
        }
    }
}
