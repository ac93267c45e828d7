//! The definition of ignored fields: one pointer is followed after the other. The walk for all pointers must have the same
//! result.

use serde_json::{Map, Value};

use super::Part;
use crate::pure::{
    fields::key_of,
    ownership::{PathElement, is_owned_by_others, is_whole},
};

/// Replaces the values at the rest of a pointer. `here` is the live counterpart of `desired`, `object` the whole live object,
/// and `path` the path to `here`.
pub(super) fn settle<'a>(
    desired: &mut Value,
    here: &'a Value,
    object: &Value,
    path: &mut Vec<PathElement<'a>>,
    pointer: &[Part],
) {
    let Some((part, rest)) = pointer.split_first() else { return };
    match desired {
        Value::Object(desired) => {
            let names: Vec<String> = match part {
                Part::Named(name) => vec![name.clone()],
                Part::Every => {
                    desired.keys().chain(here.as_object().into_iter().flat_map(|map| map.keys())).cloned().collect()
                }
            };
            for name in names {
                let found = here.as_object().and_then(|map| map.get_key_value(&name));
                if let Some((name, _)) = found {
                    path.push(PathElement::Member(name));
                }
                match (rest.is_empty(), found) {
                    (true, Some((_, value))) if !is_owned_by_others(object, path) => {
                        desired.insert(name, value.clone());
                    }
                    (true, _) => {
                        desired.remove(&name);
                    }
                    (false, _) => {
                        let below = found.map_or(&Value::Null, |(_, value)| value);
                        settle_below(desired, name, below, object, path, rest);
                    }
                }
                if found.is_some() {
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            let places: Vec<usize> = match part {
                Part::Named(name) => name.parse().into_iter().collect(),
                Part::Every => (0..items.len()).collect(),
            };
            let Some(found) = here.as_array() else { return };
            let key = key_of(items, found);
            for place in places {
                let Some(item) = items.get_mut(place) else { continue };
                // An item that does not exist yet is created as the release defines it.
                let Some((index, value)) = counterpart(item, place, found, key) else { continue };
                path.push(PathElement::Item(index, value));
                if rest.is_empty() {
                    *item = value.clone();
                } else {
                    settle(item, value, object, path, rest);
                }
                path.pop();
            }
        }
        _ => {}
    }
}

/// Replaces the values below a member. A map is removed if it would contain only ignored fields, and added if it is a part of a
/// value that an apply would reset as a whole.
fn settle_below<'a>(
    desired: &mut Map<String, Value>,
    name: String,
    here: &'a Value,
    object: &Value,
    path: &mut Vec<PathElement<'a>>,
    rest: &[Part],
) {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    match desired.get_mut(&name) {
        Some(value) => {
            let was_empty = is_empty(value);
            settle(value, here, object, path, rest);
            if here.is_null() && is_empty(value) && !was_empty {
                desired.remove(&name);
            }
        }
        None if here.is_object() && path.split_last().is_some_and(|(_, parent)| is_whole(object, parent)) => {
            let mut value = Value::Object(Map::new());
            settle(&mut value, here, object, path, rest);
            if !is_empty(&value) {
                desired.insert(name, value);
            }
        }
        None => {}
    }
}

/// The counterpart of an item in another list: by name, else by index.
fn counterpart<'a>(item: &Value, place: usize, list: &'a [Value], key: Option<&str>) -> Option<(usize, &'a Value)> {
    match key {
        Some(key) => list.iter().enumerate().find(|(_, other)| other.get(key) == item.get(key)),
        None => list.get(place).map(|other| (place, other)),
    }
}
