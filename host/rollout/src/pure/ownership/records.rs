//! The records of all field managers about one place of an object, step by step from its root.
//!
//! Searching them from the root for each place would walk the records once per place, and compare every item of a list with
//! each of its items.

use std::collections::{BTreeSet, HashMap};

use chandler_core::{Budget, Stop};
use serde_json::{Map, Value};

use super::{records, text};
use crate::pure::owner::FIELD_MANAGER;

/// The records that cover a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records<'a> {
    at: Vec<Record<'a>>,
    /// Whether the place is the whole object: an empty record covers nothing of it.
    root: bool,
}

/// One record that covers a place.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    others: bool,
    /// The fields below, or `None` if the record covers a value above as a whole.
    node: Option<&'a Map<String, Value>>,
}

impl<'a> Records<'a> {
    /// The records of an object.
    pub(crate) fn of(object: &'a Value) -> Self {
        let record = |record: &'a Value| {
            let node = record.get("fieldsV1")?.as_object()?;
            Some(Record { others: text(record, "manager") != FIELD_MANAGER, node: Some(node) })
        };
        Self { at: records(object).filter_map(record).collect(), root: true }
    }

    /// The records of a member.
    pub(crate) fn member(&self, name: &str, budget: &Budget) -> Result<Self, Stop> {
        budget.take(self.at.len() as u64)?;
        let element = format!("f:{name}");
        Ok(self.below(|_, node| node.get(&element)?.as_object()))
    }

    /// The records of the items of a list.
    pub(crate) fn elements<'r>(&'r self, budget: &Budget) -> Result<Elements<'r, 'a>, Stop> {
        let lists = self
            .at
            .iter()
            .map(|record| record.node.map_or_else(|| Ok(Items::default()), |node| Items::of(node, budget)));
        Ok(Elements { records: self, lists: lists.collect::<Result<_, _>>()? })
    }

    /// Whether another manager owns exactly this value.
    pub(crate) fn are_of_others(&self) -> bool {
        self.at.iter().any(|record| record.others && record.node.is_some_and(Map::is_empty))
    }

    /// Whether the value was written as a whole, or as a part of a value that was.
    pub(crate) fn are_whole(&self) -> bool {
        self.at.iter().any(|record| record.node.is_none_or(Map::is_empty))
    }

    fn below(&self, step: impl Fn(usize, &'a Map<String, Value>) -> Option<&'a Map<String, Value>>) -> Self {
        let at = self.at.iter().enumerate().filter_map(|(number, record)| {
            let node = match record.node {
                None => None,
                Some(node) if node.is_empty() && self.root => return None,
                Some(node) if node.is_empty() => None,
                Some(node) => Some(step(number, node)?),
            };
            Some(Record { node, ..*record })
        });
        Self { at: at.collect(), root: false }
    }
}

/// The records of the items of a list.
pub(crate) struct Elements<'r, 'a> {
    records: &'r Records<'a>,
    /// One entry per record.
    lists: Vec<Items<'a>>,
}

impl<'a> Elements<'_, 'a> {
    /// The records of one item.
    pub(crate) fn item(&self, index: usize, item: &Value, budget: &Budget) -> Result<Records<'a>, Stop> {
        budget.take(self.lists.len() as u64)?;
        Ok(self.records.below(|number, _| self.lists.get(number)?.get(index, item)))
    }
}

/// The items of a list in one record, by the way they are identified.
#[derive(Default)]
struct Items<'a> {
    index: HashMap<usize, &'a Value>,
    /// By the names of the keys, then by their values.
    keyed: Vec<(Vec<String>, HashMap<String, &'a Value>)>,
    valued: HashMap<String, &'a Value>,
}

impl<'a> Items<'a> {
    fn of(node: &'a Map<String, Value>, budget: &Budget) -> Result<Self, Stop> {
        let mut items = Self::default();
        for (element, below) in node {
            budget.step()?;
            let Some((form, rest)) = element.split_once(':') else { continue };
            match form {
                "i" => drop(rest.parse().map(|index| items.index.entry(index).or_insert(below))),
                "v" => {
                    if let Ok(value) = serde_json::from_str::<Value>(rest) {
                        items.valued.entry(value.to_string()).or_insert(below);
                    }
                }
                "k" => {
                    if let Ok(keys) = serde_json::from_str::<Map<String, Value>>(rest) {
                        items.add_keys(&keys, below);
                    }
                }
                _ => {}
            }
        }
        Ok(items)
    }

    fn add_keys(&mut self, keys: &Map<String, Value>, below: &'a Value) {
        let names: Vec<String> = keys.keys().collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let Some(values) = values(&names, |name| keys.get(name)) else { return };
        let known = self.keyed.iter().position(|(known, _)| *known == names);
        let place = known.unwrap_or(self.keyed.len());
        if known.is_none() {
            self.keyed.push((names, HashMap::new()));
        }
        let list = self.keyed.get_mut(place);
        if let Some((_, list)) = list {
            list.entry(values).or_insert(below);
        }
    }

    fn get(&self, index: usize, item: &Value) -> Option<&'a Map<String, Value>> {
        let keyed = || {
            let mut lists = self.keyed.iter();
            lists.find_map(|(names, list)| list.get(&values(names, |name| item.get(name))?).copied())
        };
        let valued = || if self.valued.is_empty() { None } else { self.valued.get(&item.to_string()).copied() };
        self.index.get(&index).copied().or_else(keyed).or_else(valued)?.as_object()
    }
}

/// The values of these keys, as one text.
fn values<'v>(names: &[String], of: impl Fn(&str) -> Option<&'v Value>) -> Option<String> {
    let values: Vec<&Value> = names.iter().map(|name| of(name)).collect::<Option<_>>()?;
    serde_json::to_string(&values).ok()
}
