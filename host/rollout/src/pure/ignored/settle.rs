//! One walk over an object for all pointers.

use std::collections::HashMap;

use chandler_core::{Budget, Stop};
use serde_json::{Map, Value};

use super::trie::{Active, Settled};
use crate::pure::{fields::key_of, ownership::records::Records};

/// Replaces the values at all places that pointers lead to, as if one pointer was followed after the other. `here` is the live
/// counterpart of `desired`, and `records` name its owners. Items are identified by their state in the release.
///
/// # Errors
/// If it takes more steps than the budget has left. The desired object is then incomplete and must not be used.
pub(super) fn settle<'a>(
    desired: &mut Value,
    here: &'a Value,
    records: &Records<'a>,
    active: &Active<'_>,
    budget: &Budget,
) -> Result<(), Stop> {
    match (desired, here) {
        (Value::Object(desired), here) => in_object(desired, here.as_object(), records, active, budget),
        (Value::Array(items), Value::Array(found)) => in_list(items, found, records, active, budget),
        _ => Ok(()),
    }
}

fn in_object<'a>(
    desired: &mut Map<String, Value>,
    here: Option<&'a Map<String, Value>>,
    records: &Records<'a>,
    active: &Active<'_>,
    budget: &Budget,
) -> Result<(), Stop> {
    for name in active.names(desired, here) {
        budget.take(wide(active.width()))?;
        let Settled { whole, below } = active.member(&name);
        let found = here.and_then(|map| map.get_key_value(&name));
        let records_below = match found {
            Some((name, _)) => records.member(name, budget)?,
            None => Records::default(),
        };
        if whole {
            match found {
                Some((_, value)) if !records_below.are_of_others() => {
                    desired.insert(name.clone(), copy(value, budget)?);
                }
                _ => drop(desired.remove(&name)),
            }
        }
        if below.is_empty() {
            continue;
        }
        let here = found.map_or(&Value::Null, |(_, value)| value);
        let whole = records.are_whole();
        settle_below(desired, name, here, whole, &records_below, &below, budget)?;
    }
    Ok(())
}

/// Replaces the values below a member. A map is removed if it would contain only ignored fields, and added if it is a part of a
/// value that an apply would reset as a whole.
fn settle_below<'a>(
    desired: &mut Map<String, Value>,
    name: String,
    here: &'a Value,
    in_whole: bool,
    records: &Records<'a>,
    active: &Active<'_>,
    budget: &Budget,
) -> Result<(), Stop> {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    match desired.get_mut(&name) {
        Some(value) => {
            let was_empty = is_empty(value);
            settle(value, here, records, active, budget)?;
            if here.is_null() && is_empty(value) && !was_empty {
                desired.remove(&name);
            }
        }
        None if here.is_object() && in_whole => {
            let mut value = Value::Object(Map::new());
            settle(&mut value, here, records, active, budget)?;
            if !is_empty(&value) {
                desired.insert(name, value);
            }
        }
        None => {}
    }
    Ok(())
}

fn in_list<'a>(
    items: &mut [Value],
    found: &'a [Value],
    records: &Records<'a>,
    active: &Active<'_>,
    budget: &Budget,
) -> Result<(), Stop> {
    budget.take(wide(items.len() + found.len()))?;
    let counterparts = Counterparts::of(items, found);
    let elements = records.elements(budget)?;
    let named = active.places();
    let places: Vec<usize> =
        if active.has_every() { (0..items.len()).collect() } else { named.keys().copied().collect() };
    for place in places {
        let Some(item) = items.get_mut(place) else { continue };
        budget.take(wide(active.width()))?;
        // An item that does not exist yet is created as the release defines it.
        let Some((index, value)) = counterparts.get(item, place) else { continue };
        let Settled { whole, below } = active.item(named.get(&place).map(Vec::as_slice).unwrap_or_default());
        if whole {
            *item = copy(value, budget)?;
        }
        if !below.is_empty() {
            settle(item, value, &elements.item(index, value, budget)?, &below, budget)?;
        }
    }
    Ok(())
}

/// The items of the live list: by name, else by index.
struct Counterparts<'a> {
    found: &'a [Value],
    by: Option<(&'static str, HashMap<&'a str, usize>)>,
}

impl<'a> Counterparts<'a> {
    fn of(items: &[Value], found: &'a [Value]) -> Self {
        let by = key_of(items, found).map(|key| {
            let names = found.iter().enumerate();
            (key, names.filter_map(|(index, item)| Some((item.get(key)?.as_str()?, index))).collect())
        });
        Self { found, by }
    }

    fn get(&self, item: &Value, place: usize) -> Option<(usize, &'a Value)> {
        let index = match &self.by {
            Some((key, names)) => *names.get(item.get(key)?.as_str()?)?,
            None => place,
        };
        Some((index, self.found.get(index)?))
    }
}

/// A copy, which takes one step for each value in it.
fn copy(value: &Value, budget: &Budget) -> Result<Value, Stop> {
    fn count(value: &Value, budget: &Budget) -> Result<(), Stop> {
        budget.step()?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| count(item, budget)),
            Value::Object(map) => map.values().try_for_each(|value| count(value, budget)),
            Value::String(text) => budget.take(wide(text.len() / 64)),
            _ => Ok(()),
        }
    }
    count(value, budget)?;
    Ok(value.clone())
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
