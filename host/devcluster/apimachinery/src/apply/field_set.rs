//! Sets of field paths and their `FieldsV1` form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::apply::element::PathElement;

/// Deepest nesting of a decoded set; objects themselves nest no deeper than their parser allows.
const DEEPEST: usize = 256;

/// Why a `FieldsV1` value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// A value that must be an object is not.
    #[error("fields must be objects of objects")]
    NotAnObject,
    /// A key is none of `.`, `f:<name>`, `k:<keys>`, `v:<value>`, `i:<index>`.
    #[error("{0:?} is not a path element")]
    UnknownElement(String),
    /// The nesting is too deep.
    #[error("fields nest deeper than {DEEPEST} levels")]
    TooDeep,
}

/// A set of field paths, as a tree.
///
/// A path can be a member whether or not longer paths are: an owner of `.metadata.labels` need not own any label, and the
/// other way round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSet {
    /// No entry is both not a member and without children, so that equal sets are equal values.
    entries: BTreeMap<PathElement, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Entry {
    member: bool,
    children: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no path is a member.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path. The empty path means the object itself and is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let entry = self.entries.entry(first.clone()).or_default();
        if rest.is_empty() {
            entry.member = true;
        } else {
            entry.children.insert(rest);
        }
    }

    /// Whether a path is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path.split_first() {
            None => false,
            Some((only, [])) => self.contains_element(only),
            Some((first, rest)) => self.below(first).is_some_and(|children| children.contains(rest)),
        }
    }

    /// Whether the path of one step is a member.
    pub fn contains_element(&self, element: &PathElement) -> bool {
        self.entries.get(element).is_some_and(|entry| entry.member)
    }

    /// The members below one step, without that step; `None` when there are none.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.entries.get(element).map(|entry| &entry.children).filter(|children| !children.is_empty())
    }

    /// The first elements of all members, each with whether it is a member itself and the set below it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.entries.iter().map(|(element, entry)| (element, entry.member, &entry.children))
    }

    /// Puts a subtree under one step; replaces what was there.
    pub(crate) fn set(&mut self, element: PathElement, member: bool, children: FieldSet) {
        let entry = Entry { member, children };
        if entry.is_empty() {
            self.entries.remove(&element);
        } else {
            self.entries.insert(element, entry);
        }
    }

    /// Members of either.
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, entry) in &other.entries {
            let merged = match union.entries.get(element) {
                Some(mine) => {
                    Entry { member: mine.member || entry.member, children: mine.children.union(&entry.children) }
                }
                None => entry.clone(),
            };
            union.entries.insert(element.clone(), merged);
        }
        union
    }

    /// Members of both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.filtered(|element, entry| {
            let theirs = other.entries.get(element)?;
            Some(Entry {
                member: entry.member && theirs.member,
                children: entry.children.intersection(&theirs.children),
            })
        })
    }

    /// Members of this set that are not members of the other. Paths count alone: removing a path keeps those below it.
    pub fn difference(&self, other: &Self) -> Self {
        self.filtered(|element, entry| {
            Some(match other.entries.get(element) {
                None => entry.clone(),
                Some(theirs) => Entry {
                    member: entry.member && !theirs.member,
                    children: entry.children.difference(&theirs.children),
                },
            })
        })
    }

    /// Members of this set that neither are members of the other nor lie below one.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.filtered(|element, entry| match other.entries.get(element) {
            None => Some(entry.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => {
                Some(Entry { member: entry.member, children: entry.children.recursive_difference(&theirs.children) })
            }
        })
    }

    /// Members that have no members below them.
    pub fn leaves(&self) -> Self {
        self.filtered(|_, entry| {
            let leaf = entry.member && entry.children.is_empty();
            Some(Entry { member: leaf, children: entry.children.leaves() })
        })
    }

    fn filtered(&self, keep: impl Fn(&PathElement, &Entry) -> Option<Entry>) -> Self {
        let entries = self.entries.iter().filter_map(|(element, entry)| {
            let kept = keep(element, entry)?;
            (!kept.is_empty()).then(|| (element.clone(), kept))
        });
        Self { entries: entries.collect() }
    }

    /// All members, in order.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, entry) in &self.entries {
            prefix.push(element.clone());
            if entry.member {
                paths.push(prefix.clone());
            }
            entry.children.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// Reads `fieldsV1`.
    ///
    /// # Errors
    /// When the value is not of the form that `FieldsV1` documents.
    pub fn decode(value: &Value) -> Result<Self, FieldsError> {
        Self::decode_at(value, 0).map(|entry| entry.children)
    }

    fn decode_at(value: &Value, depth: usize) -> Result<Entry, FieldsError> {
        if depth > DEEPEST {
            return Err(FieldsError::TooDeep);
        }
        let object = value.as_object().ok_or(FieldsError::NotAnObject)?;
        let mut entry = Entry { member: object.is_empty() && depth > 0, children: Self::new() };
        for (key, value) in object {
            if key == "." {
                entry.member = true;
                continue;
            }
            let element = PathElement::decode(key).ok_or_else(|| FieldsError::UnknownElement(key.clone()))?;
            entry.children.entries.insert(element, Self::decode_at(value, depth + 1)?);
        }
        Ok(entry)
    }

    /// Writes `fieldsV1`: a member without members below it is `{}`, one with members below it has the key `.`.
    pub fn encode(&self) -> Value {
        Value::Object(self.encode_entries(false))
    }

    fn encode_entries(&self, member: bool) -> Map<String, Value> {
        let mut object = Map::new();
        if member && !self.is_empty() {
            object.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, entry) in &self.entries {
            object.insert(element.encode(), Value::Object(entry.children.encode_entries(entry.member)));
        }
        object
    }
}

/// The form of conflict messages: `.spec.containers[name="a"].image`.
pub fn display_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fields(value: &Value) -> FieldSet {
        FieldSet::decode(value).unwrap()
    }

    #[test]
    fn codec_keeps_members_and_parents_apart() {
        let value = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {}},
                "f:finalizers": {"v:\"x\"": {}, "i:3": {}},
            },
        });
        let set = fields(&value);
        assert_eq!(set.encode(), value);
        let paths: Vec<String> = set.paths().iter().map(|path| display_path(path)).collect();
        assert_eq!(
            paths,
            [
                ".metadata.labels",
                ".metadata.labels.app",
                ".spec.containers[name=\"a\"]",
                ".spec.containers[name=\"a\"].image",
                ".spec.finalizers[=\"x\"]",
                ".spec.finalizers[3]",
                ".spec.ports[containerPort=80,protocol=\"TCP\"]",
            ]
        );
    }

    #[test]
    fn malformed_fields_are_refused() {
        for value in [
            json!([]),
            json!({"f:a": 1}),
            json!({"x:a": {}}),
            json!({"k:[]": {}}),
            json!({"a": {}}),
            json!({"v:{": {}}),
        ] {
            assert!(FieldSet::decode(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn operations() {
        let a = fields(&json!({"f:x": {".": {}, "f:y": {}}, "f:z": {}}));
        let b = fields(&json!({"f:x": {"f:y": {}}, "f:w": {}}));
        assert_eq!(a.union(&b).encode(), json!({"f:w": {}, "f:x": {".": {}, "f:y": {}}, "f:z": {}}));
        assert_eq!(a.intersection(&b).encode(), json!({"f:x": {"f:y": {}}}));
        assert_eq!(a.difference(&b).encode(), json!({"f:x": {}, "f:z": {}}));
        assert_eq!(a.leaves().encode(), json!({"f:x": {"f:y": {}}, "f:z": {}}));
        let parent = fields(&json!({"f:x": {}}));
        assert_eq!(a.recursive_difference(&parent).encode(), json!({"f:z": {}}));
        assert_eq!(a.difference(&parent).encode(), json!({"f:x": {"f:y": {}}, "f:z": {}}));
    }

    fn element() -> impl Strategy<Value = PathElement> {
        prop_oneof![
            "[a-z.:/\"]{0,4}".prop_map(PathElement::Field),
            ("[a-z]{1,3}", 0..4_i32)
                .prop_map(|(name, value)| { PathElement::decode(&format!("k:{{\"{name}\":{value}}}")).unwrap() }),
            (0..5_u64).prop_map(PathElement::Index),
            "[a-z\"]{0,3}".prop_map(|text| PathElement::Value(crate::apply::element::Json::new(&Value::from(text)))),
        ]
    }

    fn set() -> impl Strategy<Value = FieldSet> {
        prop::collection::vec(prop::collection::vec(element(), 1..4), 0..12).prop_map(|paths| {
            let mut set = FieldSet::new();
            for path in paths {
                set.insert(&path);
            }
            set
        })
    }

    proptest! {
        #[test]
        fn codec_round_trip(set in set()) {
            prop_assert_eq!(FieldSet::decode(&set.encode()).unwrap(), set);
        }

        #[test]
        fn set_algebra(a in set(), b in set()) {
            let (difference, intersection) = (a.difference(&b), a.intersection(&b));
            prop_assert_eq!(difference.union(&intersection), a.clone());
            prop_assert!(difference.intersection(&b).is_empty());
            prop_assert_eq!(a.union(&b), b.union(&a));
            for path in a.paths() {
                prop_assert!(a.union(&b).contains(&path));
                prop_assert_eq!(difference.contains(&path), !b.contains(&path));
            }
        }
    }
}
