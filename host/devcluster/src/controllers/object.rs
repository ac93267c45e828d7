//! Small changes to stored objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    api::{Api, delete::is_held},
    metadata,
    registry::Resource,
    store::{Expected, Key, Object},
};

/// Changes a stored object until it is written; a change that changes nothing writes nothing, and an object that is being
/// deleted and is no longer held goes. `None` when there is no such object.
pub(super) fn change(api: &Api, resource: &Resource, key: &Key, change: impl Fn(&mut Value)) -> Option<Arc<Object>> {
    change_if(api, resource, key, change, |_, _| true)
}

/// Like [`change`], if the object before and after the change are admitted. `None` when they are not, too.
pub(super) fn change_if(
    api: &Api,
    resource: &Resource,
    key: &Key,
    change: impl Fn(&mut Value),
    admits: impl Fn(&Value, &Value) -> bool,
) -> Option<Arc<Object>> {
    loop {
        let current = api.store.get(key)?;
        let mut next = current.value().clone();
        change(&mut next);
        if next != *current.value() && !admits(current.value(), &next) {
            return None;
        }
        let result = if metadata::is_deleting(&next) && !is_held(resource, &next) {
            api.store.delete(key, current.revision(), Some(next))
        } else if next == *current.value() {
            return Some(current);
        } else {
            api.store.put(key.clone(), Expected::Revision(current.revision()), next)
        };
        if let Ok(object) = result {
            return Some(object);
        }
    }
}

/// Removes a finalizer.
pub(super) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let map = metadata::of(object);
    if let Some(finalizers) = map.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|found| found != finalizer);
        if finalizers.is_empty() {
            map.remove("finalizers");
        }
    }
}

/// Sets a condition in `status.conditions`; the transition time moves only when the status flips.
pub(super) fn set_condition(
    object: &mut Value,
    condition_type: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: &str,
) {
    let status = if status { "True" } else { "False" };
    let conditions =
        metadata::child(metadata::as_map(object), "status").entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let condition = json!({
        "type": condition_type, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
    match conditions.iter_mut().find(|condition| condition.get("type").and_then(Value::as_str) == Some(condition_type))
    {
        Some(found) => {
            let kept = found.get("lastTransitionTime").cloned();
            let same = found.get("status").and_then(Value::as_str) == Some(status);
            *found = condition;
            if let (true, Some(kept), Some(found)) = (same, kept, found.as_object_mut()) {
                found.insert("lastTransitionTime".to_owned(), kept);
            }
        }
        None => conditions.push(condition),
    }
}
