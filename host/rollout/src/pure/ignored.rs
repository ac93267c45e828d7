//! Fields of other field managers: the live value, or its absence, is treated as desired. Pure.

#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
mod settle;
mod trie;

use std::{collections::HashMap, sync::Arc};

use chandler_core::{Budget, ObjectKey, Stop};
use serde_json::{Map, Value};

use self::{
    settle::settle,
    trie::{Active, Node},
};
use crate::pure::{
    desired::{APPLIED, Desired},
    owner::{OWNER_KIND, OWNER_NAME, PART_OF},
    ownership::records::Records,
};

/// The objects that a rule applies to, and the fields that other field managers may set. A selector that is not set matches
/// every object.
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
    /// The fields, as JSON pointers (RFC 6901). A part `*` matches every member and every item. A number is the index of an
    /// item in the list of the release; in the cluster the item is found by its name if items have names.
    pub json_pointers: Vec<String>,
}

/// An invalid pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.ignoreDifferences[{rule}].jsonPointers[{pointer}]: {text:?} {why}")]
pub struct IgnoredFieldsError {
    rule: usize,
    pointer: usize,
    text: String,
    why: &'static str,
}

/// Checked rules: the pointers of all rules for the same objects, in one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(Arc<HashMap<Objects, Node>>);

/// The objects that a rule applies to: group, kind, namespace and name, if set.
type Objects = [Option<String>; 4];

/// A part of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Named(String),
    Every,
}

impl Ignored {
    /// Checks the rules, in the order of the spec.
    pub fn new(rules: impl IntoIterator<Item = IgnoredFields>) -> Result<Self, IgnoredFieldsError> {
        let mut trees: HashMap<Objects, Node> = HashMap::new();
        let mut number = 0;
        for (rule, fields) in rules.into_iter().enumerate() {
            let IgnoredFields { group, kind, namespace, name, json_pointers } = fields;
            let tree = trees.entry([group, kind, namespace, name]).or_default();
            for (pointer, text) in json_pointers.into_iter().enumerate() {
                number += 1;
                match parse(&text) {
                    Ok(parts) => tree.add(&parts, number),
                    Err(why) => return Err(IgnoredFieldsError { rule, pointer, text, why }),
                }
            }
        }
        Ok(Self(Arc::new(trees)))
    }

    /// Replaces ignored fields of the desired object by their live values. A field that does not exist is not desired.
    ///
    /// A field that another manager owns is not applied at all, so that an outdated read cannot overwrite it. The marks of the
    /// owner are kept.
    ///
    /// # Errors
    /// If it takes more steps than the budget has left. The desired object must not be used then.
    pub(crate) fn overlay(&self, desired: &mut Desired, live: &Value, budget: &Budget) -> Result<(), Stop> {
        let active = self.about(&desired.key);
        if active.is_empty() {
            return Ok(());
        }
        let marks = marks(&desired.value);
        settle(&mut desired.value, live, &Records::of(live), &active, budget)?;
        restore(&mut desired.value, marks);
        Ok(())
    }

    /// The pointers of the rules for an object. There are sixteen combinations of selectors, however many rules there are.
    fn about(&self, key: &ObjectKey) -> Active<'_> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let parts = [key.group.as_str(), key.kind.as_str(), namespace, key.name.as_str()];
        let ways = (0..1_u8 << parts.len()).map(|way| {
            let mut bit = 0;
            parts.map(|part| {
                bit += 1;
                (way >> (bit - 1) & 1 == 1).then(|| part.to_owned())
            })
        });
        if self.0.is_empty() { Active::default() } else { Active::new(ways.filter_map(|objects| self.0.get(&objects))) }
    }
}

fn parse(text: &str) -> Result<Vec<Part>, &'static str> {
    let rest = text.strip_prefix('/').ok_or("is not a JSON pointer: it must begin with /")?;
    let parts = rest.split('/').map(part).collect::<Option<Vec<Part>>>();
    let parts = parts.ok_or("is not a JSON pointer: write ~0 for ~ and ~1 for /")?;
    let names: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Named(name) => name.as_str(),
            Part::Every => "*",
        })
        .collect();
    match names.as_slice() {
        ["apiVersion" | "kind" | "*" | ""] => Err("identifies the object and cannot be ignored"),
        ["*", ..] => Err("must begin with the name of a top-level field"),
        ["metadata", "labels", OWNER_KIND | OWNER_NAME | PART_OF] | ["metadata", "annotations", APPLIED] => {
            Err("marks the owner of the object and cannot be ignored")
        }
        ["metadata", "labels" | "annotations" | "finalizers", ..] => Ok(parts),
        ["metadata", ..] => Err("cannot be ignored: of metadata only labels, annotations and finalizers can"),
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

/// The labels and annotations that mark the owner of an object.
type Marks = Vec<(&'static str, &'static str, Value)>;

fn marks(desired: &Value) -> Marks {
    [("labels", PART_OF), ("labels", OWNER_KIND), ("labels", OWNER_NAME), ("annotations", APPLIED)]
        .into_iter()
        .filter_map(|(map, name)| Some((map, name, desired.get("metadata")?.get(map)?.get(name)?.clone())))
        .collect()
}

fn restore(desired: &mut Value, marks: Marks) {
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
