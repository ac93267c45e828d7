//! Fields that are left to others: what stands there in the cluster is what is wanted. Pure.

use std::sync::Arc;

use chandler_core::ObjectKey;
use serde_json::{Map, Value};

use crate::{
    desired::{APPLIED, Desired},
    fields::key_of,
    owner::{OWNER_KIND, OWNER_NAME, PART_OF},
    ownership::{Step, is_owned_by_others, is_whole},
};

/// Which objects a rule is about, and which of their fields are left to others. What is not set fits every object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    /// The API group; empty for the core group.
    pub group: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The namespace that the object has in the cluster.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The fields, as JSON pointers (RFC 6901). A part that is just `*` stands for every member and every item. A number is
    /// the place of an item in the list of the release; in the cluster it is found by its name where items have names.
    pub json_pointers: Vec<String>,
}

/// A pointer that cannot be ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.ignoreDifferences[{rule}].jsonPointers[{pointer}]: {text:?} {why}")]
pub struct IgnoredFieldsError {
    rule: usize,
    pointer: usize,
    text: String,
    why: &'static str,
}

/// Rules that were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(Arc<[Rule]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    fields: IgnoredFields,
    pointers: Vec<Vec<Part>>,
}

/// A part of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Named(String),
    Every,
}

impl Ignored {
    /// Checks the rules, given in the order in which they stand in the spec.
    pub fn new(rules: impl IntoIterator<Item = IgnoredFields>) -> Result<Self, IgnoredFieldsError> {
        let rule = |(number, fields): (usize, IgnoredFields)| {
            let pointers = fields.json_pointers.iter().enumerate().map(|(pointer, text)| {
                parse(text).map_err(|why| IgnoredFieldsError { rule: number, pointer, text: text.clone(), why })
            });
            let pointers = pointers.collect::<Result<_, _>>()?;
            Ok(Rule { fields, pointers })
        };
        Ok(Self(rules.into_iter().enumerate().map(rule).collect::<Result<_, _>>()?))
    }

    /// Has what is desired of an object that exists be what it is, in the fields that are left to others. Where there is
    /// nothing, nothing is desired.
    ///
    /// What others have on record as theirs is not even applied, so that they are not put in the wrong by an answer that is
    /// already old. The marks of the owner are kept.
    pub(crate) fn lay_over(&self, desired: &mut Desired, live: &Value) {
        let rules = self.0.iter().filter(|rule| rule.is_about(&desired.key));
        let pointers: Vec<&[Part]> = rules.flat_map(|rule| &rule.pointers).map(Vec::as_slice).collect();
        if pointers.is_empty() {
            return;
        }
        let marks = marks(&desired.value);
        for pointer in pointers {
            settle(&mut desired.value, live, live, &mut Vec::new(), pointer);
        }
        put_back(&mut desired.value, marks);
    }
}

impl Rule {
    fn is_about(&self, key: &ObjectKey) -> bool {
        let fits = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let IgnoredFields { group, kind, namespace, name, .. } = &self.fields;
        fits(group, &key.group)
            && fits(kind, &key.kind)
            && fits(namespace, key.namespace.as_deref().unwrap_or_default())
            && fits(name, &key.name)
    }
}

fn parse(text: &str) -> Result<Vec<Part>, &'static str> {
    let rest = text.strip_prefix('/').ok_or("is not a JSON pointer: it has to begin with /")?;
    let parts = rest.split('/').map(part).collect::<Option<Vec<Part>>>();
    let parts = parts.ok_or("is not a JSON pointer: ~ stands only in ~0, for ~ itself, and in ~1, for /")?;
    let names: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Named(name) => name.as_str(),
            Part::Every => "*",
        })
        .collect();
    match names.as_slice() {
        ["apiVersion" | "kind" | "*" | ""] => Err("says what the object is, which cannot be left to others"),
        ["*", ..] => Err("has to name the member of the object that it begins with"),
        ["metadata", "labels", OWNER_KIND | OWNER_NAME | PART_OF] | ["metadata", "annotations", APPLIED] => {
            Err("says whose the object is, which cannot be left to others")
        }
        ["metadata", "labels" | "annotations" | "finalizers", ..] => Ok(parts),
        ["metadata", ..] => Err("cannot be left to others: of metadata only labels, annotations and finalizers can"),
        _ => Ok(parts),
    }
}

fn part(text: &str) -> Option<Part> {
    if text == "*" {
        return Some(Part::Every);
    }
    let mut name = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        name.push(match c {
            '~' => match rest.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(Part::Named(name))
}

/// Settles what stands at the rest of a pointer. `here` is the state of `desired` in the cluster, `object` that of the whole
/// object, and `path` the way from there.
fn settle<'a>(desired: &mut Value, here: &'a Value, object: &Value, path: &mut Vec<Step<'a>>, pointer: &[Part]) {
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
                    path.push(Step::Member(name));
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
                // An item that is not there is still to be created, with what the release says.
                let Some((index, value)) = counterpart(item, place, found, key) else { continue };
                path.push(Step::Item(index, value));
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

/// Settles what is below a member. A map goes where only what is ignored would be in it, and comes where it is a part of a value
/// that an apply would reset as a whole.
fn settle_below<'a>(
    desired: &mut Map<String, Value>,
    name: String,
    here: &'a Value,
    object: &Value,
    path: &mut Vec<Step<'a>>,
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

/// The same item of another list: that of its name, else the one in its place.
fn counterpart<'a>(item: &Value, place: usize, list: &'a [Value], key: Option<&str>) -> Option<(usize, &'a Value)> {
    match key {
        Some(key) => list.iter().enumerate().find(|(_, other)| other.get(key) == item.get(key)),
        None => list.get(place).map(|other| (place, other)),
    }
}

/// What marks an object as its owner's.
type Marks = Vec<(&'static str, &'static str, Value)>;

fn marks(desired: &Value) -> Marks {
    [("labels", PART_OF), ("labels", OWNER_KIND), ("labels", OWNER_NAME), ("annotations", APPLIED)]
        .into_iter()
        .filter_map(|(map, name)| Some((map, name, desired.get("metadata")?.get(map)?.get(name)?.clone())))
        .collect()
}

fn put_back(desired: &mut Value, marks: Marks) {
    let Some(metadata) = desired.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for (map, name, value) in marks {
        let map = metadata.entry(map).or_insert_with(|| Value::Object(Map::new()));
        if let Some(map) = map.as_object_mut() {
            map.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests;
