//! Writes a status: a merge patch of the fields that differ, or no request if none differ. A written status is logged by its conditions.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{FIELD_MANAGER, condition_log};

/// Writes the status of an object if it differs from `old`, and then returns the object.
pub async fn write<K, S>(api: &Api<K>, name: &str, old: Option<&S>, new: &S) -> Result<Option<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    S: Serialize + Default,
{
    let old = serde_json::to_value(old.unwrap_or(&S::default())).map_err(kube::Error::SerdeError)?;
    let new = serde_json::to_value(new).map_err(kube::Error::SerdeError)?;
    let Some(difference) = difference(&old, &new) else { return Ok(None) };
    let patch = Patch::Merge(json!({"status": difference}));
    let written = api.patch_status(name, &PatchParams::apply(FIELD_MANAGER), &patch).await?;
    condition_log::transitions(&K::kind(&()), name, &old, &new);
    Ok(Some(written))
}

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; `None` if they are equal.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        let old = old.get(key).unwrap_or(&Value::Null);
        if let Some(difference) = difference(old, value) {
            patch.insert(key.clone(), difference);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_fields_that_differ_are_written() {
        let old = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": 3});
        let new = json!({"a": 1, "b": {"c": [2], "d": 2}, "f": 4});
        assert_eq!(difference(&old, &new), Some(json!({"b": {"c": [2]}, "e": null, "f": 4})));
        assert_eq!(difference(&old, &old), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| map.into_iter().collect())
        })
    }

    /// RFC 7386, section 2.
    fn merge(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = match target {
            Value::Object(target) => target,
            _ => Map::new(),
        };
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                let old = target.remove(key).unwrap_or(Value::Null);
                target.insert(key.clone(), merge(old, value));
            }
        }
        Value::Object(target)
    }

    proptest! {
        #[test]
        fn the_patch_turns_old_into_new(old in value(), new in value()) {
            let patched = match difference(&old, &new) {
                Some(patch) => merge(old, &patch),
                None => old,
            };
            prop_assert_eq!(patched, new);
        }
    }
}
