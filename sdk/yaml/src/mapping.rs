//! Mappings under construction: duplicate keys and merge keys.

use std::collections::HashMap;

use crate::{Entry, Kind, Mapping, Node, ParseError, Warning};

/// An incomplete mapping.
#[derive(Default)]
pub(crate) struct Building {
    entries: Vec<Entry>,
    /// The key whose value comes next.
    pub(crate) key: Option<Key>,
    /// The values of each `<<`, with the position of the key.
    merged: Vec<(u32, u32, Vec<Mapping>)>,
}

/// A key without a value yet.
pub(crate) enum Key {
    /// A key.
    Text { key: Box<str>, line: u32, column: u32 },
    /// `<<`.
    Merge { line: u32, column: u32 },
}

impl Building {
    /// Adds the value of the pending key, if there is one.
    pub(crate) fn value(&mut self, key: Key, value: Node) -> Result<(), ParseError> {
        match key {
            Key::Text { key, line, column } => self.entries.push(Entry { key, line, column, value }),
            Key::Merge { line, column } => self.merged.push((line, column, mappings(value)?)),
        }
        Ok(())
    }

    /// The mapping. The last of equal keys wins; merged keys that the mapping itself lacks follow.
    pub(crate) fn finish(mut self, warnings: &mut Vec<Warning>) -> Mapping {
        if has_duplicates(&self.entries) {
            self.entries = last_wins(self.entries, warnings);
        }
        if !self.merged.is_empty() {
            merge(&mut self.entries, self.merged, warnings);
        }
        Mapping { entries: self.entries }
    }
}

/// The value of a `<<`.
fn mappings(value: Node) -> Result<Vec<Mapping>, ParseError> {
    let wrong =
        |line, column| ParseError { line, column, message: "<< needs a mapping or a sequence of mappings".to_owned() };
    match value.kind {
        Kind::Mapping(mapping) => Ok(vec![mapping]),
        Kind::Sequence(items) => items
            .into_iter()
            .map(|item| match item.kind {
                Kind::Mapping(mapping) => Ok(mapping),
                _ => Err(wrong(item.line, item.column)),
            })
            .collect(),
        _ => Err(wrong(value.line, value.column)),
    }
}

fn has_duplicates(entries: &[Entry]) -> bool {
    /// Up to this size pairwise comparison is cheaper.
    const FEW: usize = 12;
    if entries.len() <= FEW {
        return entries
            .iter()
            .enumerate()
            .any(|(at, entry)| entries.iter().take(at).any(|other| other.key == entry.key));
    }
    let mut keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
}

/// Keeps the last of equal keys, at the position of the first. Warns if their values differ.
fn last_wins(entries: Vec<Entry>, warnings: &mut Vec<Warning>) -> Vec<Entry> {
    let mut places: HashMap<Box<str>, usize> = HashMap::with_capacity(entries.len());
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(other) = places.get(&entry.key).and_then(|at| kept.get_mut(*at)) else {
            places.insert(entry.key.clone(), kept.len());
            kept.push(entry);
            continue;
        };
        if !same(&other.value, &entry.value) {
            let message = format!(
                "key {:?} is a duplicate with another value; the one in line {} is ignored",
                entry.key, other.line
            );
            warnings.push(Warning { line: entry.line, column: entry.column, message });
        }
        *other = entry;
    }
    kept
}

/// Adds merged keys that are missing. In a sequence the earlier mapping wins; of several `<<` the later one wins, as in
/// go-yaml.
fn merge(entries: &mut Vec<Entry>, merged: Vec<(u32, u32, Vec<Mapping>)>, warnings: &mut Vec<Warning>) {
    let own = entries.len();
    let mut known: HashMap<Box<str>, usize> =
        entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)).collect();
    for (line, column, mappings) in merged.into_iter().rev() {
        for entry in mappings.into_iter().flat_map(|mapping| mapping.entries) {
            let Some(at) = known.get(&entry.key) else {
                known.insert(entry.key.clone(), entries.len());
                entries.push(entry);
                continue;
            };
            // go-yaml v2 inserts the merged keys at the position of `<<`, over the keys before it. That violates the
            // rule for merge keys, and is probably a mistake.
            let before = |other: &&Entry| *at < own && (other.line, other.column) < (line, column);
            if let Some(other) = entries.get(*at).filter(before)
                && !same(&other.value, &entry.value)
            {
                let message = format!(
                    "<< merges key {:?} too; the one in line {} wins, but Go tools use the merged one",
                    other.key, other.line
                );
                warnings.push(Warning { line, column, message });
            }
        }
    }
}

/// Whether two nodes are equal, ignoring positions.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Sequence(one), Kind::Sequence(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Kind::Mapping(one), Kind::Mapping(other)) => {
            // Sorted, since looking up each key of one in the other is too slow for many keys.
            one.len() == other.len()
                && one
                    .sorted()
                    .into_iter()
                    .zip(other.sorted())
                    .all(|(one, other)| one.key == other.key && same(&one.value, &other.value))
        }
        (one, other) => one == other,
    }
}
