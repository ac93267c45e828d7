//! Operations on typed values: the fields of a value, the difference of two, the merge of two, removal of fields.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    apply::{
        element::PathElement,
        field_set::FieldSet,
        structure::{self, Structure, common_structure, structure},
    },
    schema::Schema,
};

/// The fields that a value sets.
///
/// # Errors
/// If an item of a list has no unique identity.
pub(crate) fn field_set(schema: &Schema, value: &Value) -> Result<FieldSet, String> {
    match structure(schema, Some(value)) {
        Structure::Leaf => Ok(FieldSet::new()),
        Structure::Map(schema) => {
            let mut set = FieldSet::new();
            for (name, child) in structure::fields(Some(value)).into_iter().flatten() {
                let field = structure::field(schema, name);
                let below = field_set(&field.schema, child).map_err(|error| prefix(&format!(".{name}"), &error))?;
                // Keys of maps are members even when something is below them: the key itself has an owner.
                let member = !field.named || is_leaf(&field.schema, child) || is_empty_object(child);
                set.set(PathElement::field(name), member, below);
            }
            Ok(set)
        }
        Structure::List(list) => {
            let mut set = FieldSet::new();
            let items = structure::items(Some(value));
            for (element, item) in list.elements(items).map_err(|error| format!(": {error}"))?.into_iter().zip(items) {
                if set.contains_element(&element) {
                    set.set(element, true, FieldSet::new());
                    continue;
                }
                let below = field_set(list.items(), item).map_err(|error| prefix(&element.to_string(), &error))?;
                set.set(element, true, below);
            }
            Ok(set)
        }
    }
}

fn prefix(step: &str, error: &str) -> String {
    format!("{step}{error}")
}

fn is_leaf(schema: &Schema, value: &Value) -> bool {
    value.is_null() || matches!(structure(schema, Some(value)), Structure::Leaf)
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// How two values differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Fields that only the new value has.
    pub(crate) added: FieldSet,
    /// Fields that both have, with different values.
    pub(crate) modified: FieldSet,
    /// Fields that only the old value has.
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Fields that the new value sets to something else than the old one.
    pub(crate) fn written(&self) -> FieldSet {
        self.added.union(&self.modified)
    }
}

/// Compares two values of one type.
pub(crate) fn compare(schema: &Schema, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    compare_at(schema, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn compare_at(
    schema: &Schema,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<PathElement>,
    comparison: &mut Comparison,
) {
    match common_structure(schema, old, new) {
        Structure::Leaf => {
            if let (Some(old), Some(new)) = (old, new) {
                if !equal(old, new) {
                    comparison.modified.insert(path);
                }
                return;
            }
        }
        Structure::Map(schema) => compare_fields(schema, old, new, path, comparison),
        Structure::List(list) => {
            let (old_items, new_items) = (structure::items(old), structure::items(new));
            match (list.elements(old_items), list.elements(new_items)) {
                (Ok(old_elements), Ok(new_elements)) => {
                    let sides = (grouped(&old_elements, old_items), grouped(&new_elements, new_items));
                    compare_items(list.items(), &sides, path, comparison);
                }
                _ if old != new => comparison.modified.insert(path),
                _ => {}
            }
        }
    }
    match (old, new) {
        (None, Some(_)) => comparison.added.insert(path),
        (Some(_), None) => comparison.removed.insert(path),
        _ => {}
    }
}

fn compare_fields(
    schema: &Schema,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<PathElement>,
    comparison: &mut Comparison,
) {
    let (old, new) = (structure::fields(old), structure::fields(new));
    let old_names = old.into_iter().flat_map(Map::keys);
    let new_names = new.into_iter().flat_map(Map::keys).filter(|name| old.is_none_or(|old| !old.contains_key(*name)));
    for name in old_names.chain(new_names) {
        path.push(PathElement::field(name));
        let field = structure::field(schema, name);
        let (old, new) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
        compare_at(&field.schema, old, new, path, comparison);
        path.pop();
    }
}

/// Items by identity; live objects may hold several with one key.
type Grouped<'a> = HashMap<&'a PathElement, Vec<&'a Value>>;

fn grouped<'a>(elements: &'a [PathElement], items: &'a [Value]) -> Grouped<'a> {
    let mut grouped = Grouped::new();
    for (element, item) in elements.iter().zip(items) {
        grouped.entry(element).or_default().push(item);
    }
    grouped
}

fn compare_items(
    schema: &Schema,
    (old, new): &(Grouped<'_>, Grouped<'_>),
    path: &mut Vec<PathElement>,
    comparison: &mut Comparison,
) {
    let none = Vec::new();
    for element in old.keys().chain(new.keys().filter(|element| !old.contains_key(*element))) {
        path.push((*element).clone());
        let (old, new) = (old.get(element).unwrap_or(&none), new.get(element).unwrap_or(&none));
        match (old.as_slice(), new.as_slice()) {
            ([_, _, ..], [_, _, ..]) if old != new => comparison.modified.insert(path),
            ([_, _, ..], [_, _, ..]) => {}
            ([_, _, ..], rest) => {
                compare_at(schema, None, rest.first().copied(), path, comparison);
                comparison.removed.insert(path);
            }
            (rest, [_, _, ..]) => {
                compare_at(schema, rest.first().copied(), None, path, comparison);
                comparison.added.insert(path);
            }
            (old, new) => compare_at(schema, old.first().copied(), new.first().copied(), path, comparison),
        }
        path.pop();
    }
}

/// Equality of values where `1` equals `1.0`.
fn equal(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => old == new,
    }
}

/// Merges `applied` over `live`: fields that only one of them has stay, scalars and atomic values come from `applied`.
///
/// # Errors
/// If items of a list of `applied` have no unique identities.
pub(crate) fn merge(schema: &Schema, live: Option<&Value>, applied: Option<&Value>) -> Result<Option<Value>, String> {
    let is_empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(object)) => object.is_empty(),
        Some(_) => false,
    };
    let both_empty = is_empty(live) && is_empty(applied);
    match common_structure(schema, live, applied) {
        _ if both_empty => Ok(applied.or(live).cloned()),
        Structure::Leaf => Ok(applied.or(live).cloned()),
        Structure::Map(schema) => merge_fields(schema, structure::fields(live), structure::fields(applied)).map(Some),
        Structure::List(list) => {
            let (live, applied) = (structure::items(live), structure::items(applied));
            let Ok(live_elements) = list.elements(live) else {
                return Ok(Some(Value::Array(applied.to_vec())));
            };
            let applied_elements = list.elements(applied)?;
            let live = Indexed { elements: &live_elements, values: live };
            let applied = Indexed { elements: &applied_elements, values: applied };
            merge_items(list.items(), live, applied).map(|items| Some(Value::Array(items)))
        }
    }
}

fn merge_fields(
    schema: &Schema,
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
) -> Result<Value, String> {
    let mut merged = Map::new();
    let live_names = live.into_iter().flat_map(Map::keys);
    let new_names = applied.into_iter().flat_map(Map::keys);
    let new_names = new_names.filter(|name| live.is_none_or(|live| !live.contains_key(*name)));
    for name in live_names.chain(new_names) {
        let field = structure::field(schema, name);
        let sides = (live.and_then(|live| live.get(name)), applied.and_then(|applied| applied.get(name)));
        if let Some(value) = merge(&field.schema, sides.0, sides.1)? {
            merged.insert(name.clone(), value);
        }
    }
    Ok(Value::Object(merged))
}

#[derive(Clone, Copy)]
struct Indexed<'a> {
    elements: &'a [PathElement],
    values: &'a [Value],
}

impl<'a> Indexed<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a PathElement, &'a Value)> {
        self.elements.iter().zip(self.values)
    }
}

/// Merges two lists: items of `applied` keep its order, items that only `live` has keep their place before the next common one.
fn merge_items(schema: &Schema, live: Indexed<'_>, applied: Indexed<'_>) -> Result<Vec<Value>, String> {
    let mut by_element: HashMap<&PathElement, Option<&Value>> = HashMap::new();
    for (element, value) in live.iter() {
        // Items with one key are replaced as a whole by the applied one.
        by_element.entry(element).and_modify(|seen| *seen = None).or_insert(Some(value));
    }
    let in_applied: std::collections::HashSet<&PathElement> = applied.elements.iter().collect();
    let mut out = Vec::with_capacity(live.values.len().max(applied.values.len()));
    let mut rest = applied.elements.iter().zip(applied.values);
    let mut taken: std::collections::HashSet<&PathElement> = std::collections::HashSet::new();
    for (element, value) in live.iter() {
        if !in_applied.contains(element) {
            out.push(value.clone());
            continue;
        }
        // A common item: it comes now if it is the next common one of `applied`, after the new ones before it; otherwise
        // the order of `applied` wins and it comes later.
        let next_common =
            rest.clone().find(|(element, _)| by_element.contains_key(element)).map(|(element, _)| element);
        if taken.contains(element) || next_common != Some(element) {
            continue;
        }
        for (applied_element, applied_value) in rest.by_ref() {
            let live_value = by_element.get(applied_element).copied().flatten();
            out.extend(merge(schema, live_value, Some(applied_value))?);
            taken.insert(applied_element);
            if applied_element == element {
                break;
            }
        }
    }
    for (applied_element, applied_value) in rest {
        let live_value = by_element.get(applied_element).copied().flatten();
        out.extend(merge(schema, live_value, Some(applied_value))?);
    }
    Ok(out)
}

/// Removes the members of `fields` from a value, each with everything below it. Atomic values are not taken apart.
///
/// A container that loses its last part stays, empty, unless it is a member itself.
pub(crate) fn remove(schema: &Schema, value: &Value, fields: &FieldSet) -> Value {
    match structure(schema, Some(value)) {
        Structure::Leaf => value.clone(),
        Structure::Map(schema) => {
            let mut kept = Map::new();
            for (name, child) in structure::fields(Some(value)).into_iter().flatten() {
                let element = PathElement::field(name);
                if fields.contains_element(&element) {
                    continue;
                }
                let Some(below) = fields.below(&element) else {
                    kept.insert(name.clone(), child.clone());
                    continue;
                };
                let field = structure::field(schema, name);
                kept.insert(name.clone(), remove(&field.schema, child, below));
            }
            Value::Object(kept)
        }
        Structure::List(list) => {
            let kept = structure::items(Some(value)).iter().filter_map(|item| {
                let Ok(element) = list.element(item) else { return Some(item.clone()) };
                if fields.contains_element(&element) {
                    return None;
                }
                Some(fields.below(&element).map_or_else(|| item.clone(), |below| remove(list.items(), item, below)))
            });
            Value::Array(kept.collect())
        }
    }
}

/// Makes every named field a member that has members below it.
///
/// A manager that applies `spec.replicas` also owns `spec` when it is decided whether `spec` may be removed.
pub(crate) fn with_named_parents(schema: &Schema, value: Option<&Value>, set: &FieldSet) -> FieldSet {
    let mut result = FieldSet::new();
    let structure = structure(schema, value);
    for (element, member, children) in set.steps() {
        let (member, below) = match (&structure, element) {
            (Structure::Map(schema), PathElement::Field(name)) => {
                let field = structure::field(schema, name);
                let child = structure::fields(value).and_then(|fields| fields.get(name));
                (member || field.named, with_named_parents(&field.schema, child, children))
            }
            (Structure::List(list), element) => {
                let found = structure::items(value).iter().find(|item| list.element(item).as_ref() == Ok(element));
                (member, with_named_parents(list.items(), found, children))
            }
            _ => (member, children.clone()),
        };
        result.set(element.clone(), member, below);
    }
    result
}
