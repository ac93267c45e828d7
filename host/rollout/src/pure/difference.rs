//! Whether an object matches its desired state. Pure.

use chandler_core::{Budget, Stop, is_custom_group, pointer::escape};
use serde_json::{Map, Value};

use crate::pure::live::text;

/// The first place, as a JSON pointer, where `live` lacks a part of `desired` or has another value. Fields that only `live` has
/// do not count: the API server sets defaults, and other field managers may own fields.
///
/// None means that `live` certainly contains `desired`; [`hidden_change`](crate::pure::hidden_changes::hidden_change) decides
/// whether an apply would reset more. Some means that the two look different: the API server may store a quantity or a list in another
/// notation, which only a dry run can show.
///
/// # Errors
/// If the comparison takes more steps than the budget has left.
pub(crate) fn difference(desired: &Value, live: &Value, budget: &Budget) -> Result<Option<String>, Stop> {
    // The data of a ControllerRevision is an arbitrary object that is stored unchanged.
    let as_written = is_custom(text(desired, "/apiVersion")) || text(desired, "/kind") == "ControllerRevision";
    match at(as_written, "", desired, live, budget) {
        Ok(()) => Ok(None),
        Err(Ended::At(pointer)) => Ok(Some(pointer)),
        Err(Ended::Early(stop)) => Err(stop),
    }
}

/// Why a search ended.
pub(crate) enum Ended {
    /// It found this place.
    At(String),
    /// The budget was exhausted or cancelled.
    Early(Stop),
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        Self::Early(stop)
    }
}

fn at(custom: bool, pointer: &str, desired: &Value, live: &Value, budget: &Budget) -> Result<(), Ended> {
    budget.step()?;
    let here = |differs: bool| if differs { Err(Ended::At(pointer.to_owned())) } else { Ok(()) };
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => in_object(custom, pointer, desired, live, budget),
        // Lists in which other field managers have items. An apply sets the order of its own items, and replaces references as
        // a whole.
        (Value::Array(desired), Value::Array(live))
            if matches!(pointer, "/metadata/finalizers" | "/metadata/ownerReferences") =>
        {
            let mut live = live.iter();
            here(!desired.iter().all(|wanted| live.any(|item| item == wanted)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            here(desired.len() != live.len())?;
            desired.iter().zip(live).enumerate().try_for_each(|(index, (desired, live))| {
                at(custom, &format!("{pointer}/{index}"), desired, live, budget)
            })
        }
        (Value::Number(desired), Value::Number(live)) => {
            here(desired != live && desired.as_f64().is_none_or(|desired| Some(desired) != live.as_f64()))
        }
        (desired, live) => here(desired != live),
    }
}

fn in_object(
    custom: bool,
    pointer: &str,
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    budget: &Budget,
) -> Result<(), Ended> {
    desired.iter().filter(|(name, value)| !is_noise(pointer, name, value)).try_for_each(|(name, desired)| {
        let below = || format!("{pointer}/{}", escape(name));
        match live.get(name) {
            Some(live) => at(custom, &below(), desired, live, budget),
            None if !custom && is_left_out(name, desired) => Ok(()),
            // Empty values count as well: the API server may have dropped them or a user may have removed them, which no field
            // manager records.
            None => Err(Ended::At(below())),
        }
    })
}

/// Maps in built-in kinds that the API server drops when they are empty. Empty structs are stored: a selector that matches
/// everything, a volume.
const MAPS: &[&str] =
    &["labels", "annotations", "data", "binaryData", "matchLabels", "nodeSelector", "limits", "requests"];

/// Whether the API server drops this value from every object of a built-in kind.
fn is_left_out(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && MAPS.contains(&name),
        _ => false,
    }
}

/// Whether the kind of this version is defined by a CustomResourceDefinition, judging by its group.
pub(crate) fn is_custom(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, _)| is_custom_group(group))
}

/// Whether an apply never sets this field: the status, and the timestamp that Go writes into all metadata.
fn is_noise(pointer: &str, name: &str, value: &Value) -> bool {
    match name {
        "status" => pointer.is_empty(),
        "creationTimestamp" => value.is_null() && pointer.ends_with("/metadata"),
        _ => false,
    }
}

/// The parts of an object that count when two states of it are compared: all but the status and the fields that the API server
/// counts.
pub(crate) fn normalized(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn difference(desired: &Value, live: &Value) -> Option<String> {
        super::difference(desired, live, &Budget::new(10_000)).unwrap()
    }

    #[test]
    fn a_comparison_ends_when_the_budget_is_exhausted() {
        let list = json!(vec![1; 1000]);
        let compared = super::difference(&list, &list, &Budget::new(100));
        assert_eq!(compared, Err(Stop::Exhausted { limit: 100 }));
    }

    #[test]
    fn only_desired_fields_count() {
        for (desired, live, want) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), None),
            (json!({"a": 1}), json!({"a": 1.0}), None),
            (json!({"a": {"b/c": 1}}), json!({"a": {"b/c": 2}}), Some("/a/b~1c")),
            (json!({"a": {"b": 1}}), json!({}), Some("/a/b").map(|_| "/a")),
            (json!({"a": null, "b": [], "data": {}}), json!({}), None),
            (
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "a": null}),
                json!({"apiVersion": "rbac.authorization.k8s.io/v1"}),
                None,
            ),
            (json!({"a": {}}), json!({}), Some("/a")),
            (json!({"data": {"a": null}}), json!({}), Some("/data")),
            (json!({"apiVersion": "a.b/v1", "a": null}), json!({"apiVersion": "a.b/v1"}), Some("/a")),
            (json!({"apiVersion": "a.b/v1", "a": []}), json!({"apiVersion": "a.b/v1"}), Some("/a")),
            (json!({"apiVersion": "a.b/v1", "data": {}}), json!({"apiVersion": "a.b/v1"}), Some("/data")),
            (json!({"kind": "ControllerRevision", "data": {}}), json!({"kind": "ControllerRevision"}), Some("/data")),
            (json!({"a": {}}), json!({"a": {"b": 1}}), None),
            (json!({"status": {"a": 1}, "metadata": {"creationTimestamp": null}}), json!({"metadata": {}}), None),
            (
                json!({"spec": {"status": 1, "metadata": {"creationTimestamp": null}}}),
                json!({"spec": {}}),
                Some("/spec/metadata"),
            ),
            (json!({"a": null}), json!({"a": 1}), Some("/a")),
            (json!({"a": [1, 2]}), json!({"a": [1, 2, 3]}), Some("/a")),
            (json!({"a": [{"n": 1}]}), json!({"a": [{"n": 1, "defaulted": true}]}), None),
            (json!({"a": [{"n": 1}]}), json!({"a": [{"n": 2}]}), Some("/a/0/n")),
            (json!({"a": "1000m"}), json!({"a": "1"}), Some("/a")),
            (json!({"metadata": {"finalizers": ["a"]}}), json!({"metadata": {"finalizers": ["b", "a"]}}), None),
            (
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"finalizers": ["b", "a"]}}),
                Some("/metadata/finalizers"),
            ),
            (
                json!({"metadata": {"ownerReferences": [{"uid": "a"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "b"}, {"uid": "a"}]}}),
                None,
            ),
            (
                json!({"metadata": {"ownerReferences": [{"uid": "a"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "a", "controller": true}]}}),
                Some("/metadata/ownerReferences"),
            ),
            (
                json!({"metadata": {"ownerReferences": [{"uid": "a"}]}}),
                json!({"metadata": {"ownerReferences": []}}),
                Some("/metadata/ownerReferences"),
            ),
        ] {
            assert_eq!(difference(&desired, &live).as_deref(), want, "{desired} {live}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c/~]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c/~]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_matches_itself(value in any_json()) {
            prop_assert_eq!(difference(&value, &value), None);
        }

        #[test]
        fn the_pointer_leads_to_the_difference(desired in any_json(), live in any_json()) {
            if let Some(pointer) = difference(&desired, &live) {
                prop_assert!(desired.pointer(&pointer).is_some(), "{}", pointer);
            }
        }
    }
}
