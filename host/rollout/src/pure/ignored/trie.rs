//! All pointers of a rule in one tree, so that an object is walked once for all of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Part;

/// A place that pointers lead to or through. Pointers are numbered from 1, in the order of the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// The last pointer that ends here; zero if none does.
    last: usize,
    /// The last pointer that continues from here; zero if none does.
    deeper: usize,
    named: BTreeMap<String, Node>,
    every: Option<Box<Node>>,
}

impl Node {
    /// Adds a pointer, whose number is larger than all before.
    pub(super) fn add(&mut self, pointer: &[Part], number: usize) {
        let Some((part, rest)) = pointer.split_first() else {
            self.last = number;
            return;
        };
        self.deeper = number;
        let below = match part {
            Part::Named(name) => self.named.entry(name.clone()).or_default(),
            Part::Every => self.every.get_or_insert_default(),
        };
        below.add(rest, number);
    }
}

/// The nodes of all pointers that match one place of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Active<'t> {
    nodes: Vec<&'t Node>,
    /// Pointers up to this one do not count: a later one replaced the whole place.
    after: usize,
}

/// The effect of pointers on one place.
pub(super) struct Settled<'t> {
    /// Whether a pointer ends here.
    pub(super) whole: bool,
    /// The pointers that continue.
    pub(super) below: Active<'t>,
}

impl<'t> Active<'t> {
    pub(super) fn new(roots: impl IntoIterator<Item = &'t Node>) -> Self {
        Self { nodes: roots.into_iter().collect(), after: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of nodes that a step from here visits.
    pub(super) fn width(&self) -> usize {
        self.nodes.len()
    }

    /// The members that pointers lead to; a wildcard leads to the members of both maps.
    pub(super) fn names(&self, desired: &Map<String, Value>, found: Option<&Map<String, Value>>) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.nodes.iter().flat_map(|node| node.named.keys()).cloned().collect();
        if self.has_every() {
            names.extend(desired.keys().chain(found.into_iter().flat_map(|map| map.keys())).cloned());
        }
        names
    }

    pub(super) fn has_every(&self) -> bool {
        self.nodes.iter().any(|node| node.every.is_some())
    }

    /// The effect of pointers on a member.
    pub(super) fn member(&self, name: &str) -> Settled<'t> {
        self.step(self.nodes.iter().filter_map(|node| node.named.get(name)))
    }

    /// The nodes for single items, by their indices.
    pub(super) fn places(&self) -> BTreeMap<usize, Vec<&'t Node>> {
        let mut places: BTreeMap<usize, Vec<&'t Node>> = BTreeMap::new();
        for (name, node) in self.nodes.iter().flat_map(|node| &node.named) {
            if let Ok(place) = name.parse() {
                places.entry(place).or_default().push(node);
            }
        }
        places
    }

    /// The effect of pointers on an item with these nodes.
    pub(super) fn item(&self, named: &[&'t Node]) -> Settled<'t> {
        self.step(named.iter().copied())
    }

    fn step(&self, named: impl Iterator<Item = &'t Node>) -> Settled<'t> {
        let every = self.nodes.iter().filter_map(|node| node.every.as_deref());
        let nodes: Vec<&Node> = named.chain(every).collect();
        let last = nodes.iter().map(|node| node.last).max().unwrap_or(0);
        let after = self.after.max(last);
        let nodes = nodes.into_iter().filter(|node| node.deeper > after).collect();
        Settled { whole: last > self.after, below: Self { nodes, after } }
    }
}
