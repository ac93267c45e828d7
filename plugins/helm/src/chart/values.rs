//! Merging the values of charts.

use chandler_go_template::{List, Map, Value};

use super::{Chart, load};

/// Deeper values are not merged; reading YAML refuses them before.
const MOST_DEEP: usize = 250;

/// The values of a file that a user gives.
///
/// # Errors
/// Helm's text: a file that is not YAML, or not a map.
pub fn read(text: &str) -> Result<Map, String> {
    load::read_values(text)
}

/// A copy that shares nothing with the original.
pub fn copy(map: &Map) -> Map {
    copy_map(map, 0)
}

fn copy_map(map: &Map, depth: usize) -> Map {
    let copied = Map::of(map.element());
    for (key, value) in map.entries() {
        copied.insert(key, copy_value(&value, depth + 1));
    }
    copied
}

fn copy_value(value: &Value, depth: usize) -> Value {
    match value {
        _ if depth > MOST_DEEP => value.clone(),
        Value::Map(map) => Value::Map(copy_map(map, depth)),
        Value::List(list) => {
            Value::List(List::of(list.element(), list.items().iter().map(|item| copy_value(item, depth + 1)).collect()))
        }
        other => other.clone(),
    }
}

/// Values with others over them: maps are merged, anything else is replaced. As of several values files.
pub fn merge(base: &Map, over: &Map) -> Map {
    let merged = Map::new();
    for (key, value) in base.entries() {
        merged.insert(key, value);
    }
    for (key, value) in over.entries() {
        let value = match (merged.get(&key), value) {
            (Some(Value::Map(base)), Value::Map(over)) => Value::Map(merge(&base, &over)),
            (_, value) => value,
        };
        merged.insert(key, value);
    }
    merged
}

/// How nulls are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    /// They delete the default.
    Delete,
    /// They stay.
    Keep,
}

/// The values of a chart and its subcharts: those given, and the defaults where nothing is given. A null deletes a default.
///
/// # Errors
/// A value for a subchart that is not a map.
pub fn coalesce(chart: &Chart, given: &Map) -> Result<Map, String> {
    let values = copy(given);
    coalesce_chart(chart, &values, Nulls::Delete)?;
    Ok(values)
}

/// As [`coalesce`], but nulls stay.
pub(super) fn coalesce_keeping_nulls(chart: &Chart, given: &Map) -> Result<Map, String> {
    let values = copy(given);
    coalesce_chart(chart, &values, Nulls::Keep)?;
    Ok(values)
}

fn coalesce_chart(chart: &Chart, values: &Map, nulls: Nulls) -> Result<(), String> {
    coalesce_values(chart, values, nulls);
    for subchart in &chart.dependencies {
        let own = match values.get(subchart.name()) {
            Some(Value::Map(own)) => own,
            Some(other) => {
                let shown = crate::functions::display(&other);
                return Err(format!("type mismatch on {}: %!t({}={shown})", subchart.name(), other.type_name()));
            }
            None => {
                let own = Map::new();
                values.insert(subchart.name(), own.clone());
                own
            }
        };
        coalesce_globals(&own, values);
        coalesce_chart(subchart, &own, nulls)?;
    }
    Ok(())
}

/// Gives a subchart the globals of its parent, which win.
fn coalesce_globals(to: &Map, from: &Map) {
    let own = match to.get("global") {
        None => Map::new(),
        Some(Value::Map(own)) => own,
        Some(_) => return,
    };
    let above = match from.get("global") {
        None => Map::new(),
        Some(Value::Map(above)) => above,
        Some(_) => return,
    };
    for (key, value) in above.entries() {
        match (value, own.get(&key)) {
            (Value::Map(value), existing) => {
                // The top level only, as in Helm: what is below is shared by parent and subchart.
                let copied = Map::new();
                for (key, value) in value.entries() {
                    copied.insert(key, value);
                }
                match existing {
                    None => {
                        own.insert(key, copied);
                    }
                    Some(Value::Map(existing)) => {
                        coalesce_tables(&copied, &existing, Nulls::Keep, 0);
                        own.insert(key, copied);
                    }
                    Some(_) => {}
                }
            }
            (_, Some(Value::Map(_))) => {}
            (value, _) => {
                own.insert(key, value);
            }
        }
    }
    to.insert("global", own);
}

fn coalesce_values(chart: &Chart, values: &Map, nulls: Nulls) {
    for (key, default) in copy(&chart.values).entries() {
        match values.get(&key) {
            None => {
                values.insert(key, default);
            }
            Some(Value::Nil) if nulls == Nulls::Delete => {
                values.remove(&key);
            }
            Some(Value::Map(given)) => {
                if let Value::Map(default) = default {
                    // Nulls for a subchart are left to its own defaults.
                    let is_subchart = chart.dependencies.iter().any(|subchart| *subchart.name() == *key);
                    coalesce_tables(&given, &default, if is_subchart { Nulls::Keep } else { nulls }, 0);
                }
            }
            Some(_) => {}
        }
    }
}

/// Adds what is missing.
fn coalesce_tables(to: &Map, from: &Map, nulls: Nulls, depth: usize) {
    if depth > MOST_DEEP {
        return;
    }
    for (key, default) in from.entries() {
        match (to.get(&key), default) {
            (None, default) => {
                to.insert(key, default);
            }
            // Where the default is null, too, there is nothing to delete, and the null stays.
            (Some(Value::Nil), default) if nulls == Nulls::Delete && !default.is_nil() => {
                to.remove(&key);
            }
            (Some(Value::Map(given)), Value::Map(default)) => coalesce_tables(&given, &default, nulls, depth + 1),
            (Some(_), _) => {}
        }
    }
}

/// Adds what is missing, with nulls kept.
pub(super) fn merge_tables(to: &Map, from: &Map) {
    coalesce_tables(to, from, Nulls::Keep, 0);
}

/// The map at a path with dots between its parts.
pub(super) fn table(values: &Map, path: &str) -> Option<Map> {
    path.split('.').try_fold(values.clone(), |map, key| match map.get(key) {
        Some(Value::Map(inner)) => Some(inner),
        _ => None,
    })
}

/// The value at a path, if it is not a map.
pub(super) fn at_path(values: &Map, path: &str) -> Option<Value> {
    let (map, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (table(values, parents)?, key),
        None => (values.clone(), path),
    };
    map.get(key).filter(|value| !matches!(value, Value::Map(_)))
}
