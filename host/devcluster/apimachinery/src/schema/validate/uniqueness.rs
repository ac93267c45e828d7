//! Items of lists: uniqueness, and which item of the stored list an item corresponds to.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::schema::{
    error::FieldError,
    model::{ListType, Schema},
    path::FieldPath,
};

/// Reports duplicate items of a set.
pub(super) fn set(list: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (index, item) in list.iter().enumerate() {
        if !seen.insert(item.to_string()) {
            errors.push(FieldError::duplicate(&path.index(index), item.clone()));
        }
    }
}

/// Whether a list of a built-in kind may have items with equal keys: kube-apiserver validates it without a look at its list type, and warns
/// at most. Server-side apply refuses them. The lists are those that `ValidatePodSpec` and `ValidateServiceAccount` do not compare.
pub(super) fn accepts_duplicates(list: &Schema, path: &FieldPath<'_>) -> bool {
    let FieldPath::Field(parent, name) = path else { return false };
    if !list.items().is_some_and(Schema::is_builtin) {
        return false;
    }
    match parent {
        FieldPath::Index(FieldPath::Field(_, "containers" | "initContainers" | "ephemeralContainers"), _) => {
            matches!(*name, "env" | "ports")
        }
        FieldPath::Field(_, "spec") => matches!(*name, "hostAliases" | "imagePullSecrets"),
        FieldPath::Root => *name == "secrets",
        _ => false,
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

/// The items of a stored list, to be looked up by the items of a new one.
pub(super) struct Stored<'a> {
    items: &'a Schema,
    list_type: &'a ListType,
    old: &'a [Value],
    /// By their keys in maps, by their values in sets: a search for each item would take a time that grows with the square of their
    /// number.
    places: HashMap<String, usize>,
}

impl<'a> Stored<'a> {
    /// The items of a list, or `None` if it is not a list.
    pub(super) fn of(items: &'a Schema, list_type: &'a ListType, old: Option<&'a Value>) -> Option<Self> {
        let old = old?.as_array()?;
        let mut places = HashMap::new();
        for (place, item) in old.iter().enumerate() {
            if let Some(identity) = identity(items, list_type, item) {
                places.entry(identity).or_insert(place);
            }
        }
        Some(Self { items, list_type, old, places })
    }

    /// The item that an item corresponds to: by keys in maps, by value in sets, by place in unchanged atomic lists.
    pub(super) fn correlated(&self, item: &Value, index: usize) -> Option<&'a Value> {
        // Items of atomic lists have no identity; an equal one at its place is nonetheless unchanged.
        let Some(identity) = identity(self.items, self.list_type, item) else {
            return self.old.get(index).filter(|old| *old == item);
        };
        self.places.get(&identity).and_then(|place| self.old.get(*place))
    }
}

/// The identity of an item; none in an atomic list.
fn identity(items: &Schema, list_type: &ListType, item: &Value) -> Option<String> {
    match list_type {
        ListType::Map(keys) => Some(Value::Object(key_of(items, keys, item)).to_string()),
        ListType::Set => Some(item.to_string()),
        ListType::Atomic => None,
    }
}
