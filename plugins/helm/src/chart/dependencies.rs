//! Dependencies of charts: which are enabled, under which names, and which of their values the chart takes over.

use std::collections::HashSet;

use chandler_go_template::{Map, Value};

use chandler_versions::{Constraint, Version};

use super::{
    Chart, Import,
    values::{at_path, coalesce, coalesce_keeping_nulls, copy, merge_tables, table},
};

/// Removes the subcharts that the values disable, gives aliases their names, and imports values, in the chart and all below.
///
/// # Errors
/// A value for a subchart that is not a map.
pub fn process(chart: &mut Chart, values: &Map) -> Result<(), String> {
    enable(chart, values, "")?;
    import(chart)
}

/// Whether a version is in a range; not if one of them cannot be read.
pub fn is_compatible(constraint: &str, version: &str) -> bool {
    match (Version::parse(version), Constraint::parse(constraint)) {
        (Ok(version), Ok(constraint)) => constraint.check(&version),
        _ => false,
    }
}

fn enable(chart: &mut Chart, values: &Map, path: &str) -> Result<(), String> {
    let Some(mut declared) = chart.metadata.dependencies.clone() else { return Ok(()) };
    let present = std::mem::take(&mut chart.dependencies);
    let fits = |chart: &Chart, name: &str, version: &str| {
        chart.name() == name && is_compatible(version, &chart.metadata.version)
    };
    // Subcharts that are not declared come first.
    let mut kept: Vec<Chart> = present
        .iter()
        .filter(|existing| !declared.iter().any(|dependency| fits(existing, &dependency.name, &dependency.version)))
        .cloned()
        .collect();
    for dependency in &mut declared {
        if let Some(found) = present.iter().find(|existing| fits(existing, &dependency.name, &dependency.version)) {
            let mut found = found.clone();
            if !dependency.alias.is_empty() {
                found.metadata.name.clone_from(&dependency.alias);
            }
            kept.push(found);
        }
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
        dependency.enabled = true;
    }
    chart.dependencies = kept;
    let coalesced = coalesce(chart, values)?;
    let tags = table(&coalesced, "tags");
    for dependency in &mut declared {
        if let Some(tags) = &tags {
            let set = dependency.tags.iter().filter_map(|tag| match tags.get(tag) {
                Some(Value::Bool(value)) => Some(value),
                _ => None,
            });
            let set: Vec<bool> = set.collect();
            dependency.enabled = set.is_empty() || set.contains(&true);
        }
        // A condition decides before tags do.
        let conditions = dependency.condition.trim().split(',').filter(|condition| !condition.is_empty());
        let decided = conditions.filter_map(|condition| match at_path(&coalesced, &format!("{path}{condition}")) {
            Some(Value::Bool(value)) => Some(value),
            _ => None,
        });
        if let Some(enabled) = decided.into_iter().next() {
            dependency.enabled = enabled;
        }
    }
    let removed: HashSet<&str> =
        declared.iter().filter(|dependency| !dependency.enabled).map(|dependency| dependency.name.as_str()).collect();
    chart.dependencies.retain(|subchart| !removed.contains(subchart.name()));
    for subchart in &mut chart.dependencies {
        let below = format!("{path}{}.", subchart.name());
        enable(subchart, &coalesced, &below)?;
    }
    let remaining = declared.iter().filter(|dependency| !removed.contains(dependency.name.as_str())).cloned().collect();
    chart.metadata.dependencies = Some(remaining);
    Ok(())
}

fn import(chart: &mut Chart) -> Result<(), String> {
    for subchart in &mut chart.dependencies {
        import(subchart)?;
    }
    let Some(declared) = chart.metadata.dependencies.clone().filter(|declared| !declared.is_empty()) else {
        return Ok(());
    };
    let coalesced = coalesce_keeping_nulls(chart, &Map::new())?;
    let imported = Map::new();
    for dependency in &declared {
        for import in &dependency.imports {
            let (child, parent) = match import {
                Import::Export(name) => (format!("exports.{name}"), "."),
                Import::Path { child, parent } => (child.clone(), parent.as_str()),
            };
            if let Some(found) = table(&coalesced, &format!("{}.{child}", dependency.name)) {
                merge_tables(&imported, &nested(parent, found));
            }
        }
    }
    let values = copy(&coalesced);
    merge_tables(&values, &copy(&imported));
    chart.values = values;
    Ok(())
}

/// A map that has another at a path.
fn nested(path: &str, map: Map) -> Map {
    if path == "." {
        return map;
    }
    path.split('.').rev().fold(map, |inner, key| [(key, inner)].into_iter().collect())
}
