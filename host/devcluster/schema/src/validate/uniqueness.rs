//! Items of lists: uniqueness, and which item of the stored list an item corresponds to.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{
    error::FieldError,
    path::FieldPath,
    schema::{ListType, Schema},
};

/// Reports items of a set that stand twice.
pub(super) fn set(list: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (index, item) in list.iter().enumerate() {
        if !seen.insert(item.to_string()) {
            errors.push(FieldError::duplicate(&path.index(index), item.clone()));
        }
    }
}

/// Reports items with equal keys.
pub(super) fn map(
    schema: &Schema,
    keys: &[String],
    list: &[Value],
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(items) = schema.items() else { return };
    let mut seen = HashSet::new();
    for (index, item) in list.iter().enumerate() {
        let key = key_of(items, keys, item);
        if !seen.insert(Value::Object(key.clone()).to_string()) {
            errors.push(FieldError::duplicate(&path.index(index), key));
        }
    }
}

fn key_of(items: &Schema, keys: &[String], item: &Value) -> Map<String, Value> {
    let mut key: Vec<&String> = keys.iter().collect();
    key.sort_unstable();
    key.into_iter()
        .filter_map(|name| {
            let default = || items.property(name).and_then(|property| property.default.as_deref());
            item.get(name).or_else(default).map(|value| (name.clone(), value.clone()))
        })
        .collect()
}

/// The item of the stored list that an item corresponds to: by keys in maps, by value in sets, by place in unchanged atomic lists.
pub(super) fn correlated<'a>(
    items: &Schema,
    list_type: &ListType,
    item: &Value,
    index: usize,
    old: &'a Value,
) -> Option<&'a Value> {
    let old = old.as_array()?;
    match list_type {
        ListType::Map(keys) => {
            let key = key_of(items, keys, item);
            old.iter().find(|old| key_of(items, keys, old) == key)
        }
        ListType::Set => old.iter().find(|old| *old == item),
        // Items of atomic lists have no identity; an equal one at its place is nonetheless unchanged.
        ListType::Atomic => old.get(index).filter(|old| *old == item),
    }
}
