//! Duplicate items in the lists of a Deployment's pods, such as two environment variables of one name.
//!
//! OLM installs them, since it updates Deployments as a whole. An apply refuses them. So duplicates with one meaning are merged, and others
//! are refused before anything is installed.

use chandler_sdk::{Diagnostic, Location, lists::CODE};
use chandler_yaml::list_keys::{ACCEPTED_ONCE, DuplicateItem, of_pod};
use serde_json::Value;

use super::CsvSource;
use crate::bundle::{Locate as _, Other, place_in};

/// The findings about duplicates.
#[derive(Default)]
pub(super) struct Found {
    /// They have several meanings.
    pub(super) errors: Vec<Diagnostic>,
    /// They were merged, or are left as they are.
    pub(super) warnings: Vec<Diagnostic>,
}

/// Finds duplicates in the Deployments of a ClusterServiceVersion, and merges those with one meaning if `merges`.
pub(super) fn settle(source: &mut CsvSource, others: &[Other], merges: bool) -> Found {
    let mut found = Found::default();
    let CsvSource { csv, path, node } = source;
    let webhooks = csv.spec.webhookdefinitions.iter().filter_map(|webhook| webhook.target_port.as_ref());
    let targets: Vec<String> = webhooks.filter_map(Value::as_str).map(str::to_owned).collect();
    for (index, deployment) in csv.spec.install.spec.deployments.iter_mut().enumerate() {
        let pointer = format!("/spec/install/spec/deployments/{index}/spec/template/spec");
        let Some(pod) = deployment.spec.pointer_mut("/template/spec") else { continue };
        let duplicates = of_pod(pod, &pointer);
        if duplicates.is_empty() {
            continue;
        }
        let written = pod.clone();
        if merges {
            let is_used = |name: &str| {
                mentions(&written, name)
                    || others.iter().any(|other| mentions(&other.value, name))
                    || targets.iter().any(|target| target == name)
            };
            merge(pod, &is_used);
        }
        let left = of_pod(pod, &pointer);
        for duplicate in duplicates {
            let is_left = left.iter().any(|left| (&left.list, &left.key) == (&duplicate.list, &duplicate.key));
            let at = place_in(path, node, &duplicate.pointer());
            let first = Location::of(&**path, node.nearest(&format!("{}/{}", duplicate.list, duplicate.first)));
            let help = format!("remove it, or the item at {first}");
            if !is_left {
                let effect = effect(&duplicate, &written, pod, &pointer);
                found.warnings.push(at.warning(CODE, format!("{duplicate}: {effect}")).help(help));
            } else if merges {
                found.errors.push(at.error(CODE, format!("{duplicate}: {ACCEPTED_ONCE}")).help(help));
            } else {
                found.warnings.push(at.warning(CODE, format!("{duplicate}: {ACCEPTED_ONCE}")).help(help));
            }
        }
    }
    found
}

/// What was done with a duplicate, for a message.
fn effect(duplicate: &DuplicateItem, written: &Value, pod: &Value, pod_pointer: &str) -> String {
    let list = duplicate.list.strip_prefix(pod_pointer).unwrap_or_default();
    match list.rsplit('/').next().unwrap_or_default() {
        "env" => return "the last value is used".to_owned(),
        "hostAliases" => return "their host names are merged".to_owned(),
        _ => {}
    }
    let kept = pod.pointer(list).and_then(Value::as_array).into_iter().flatten();
    let kept: Vec<&str> = kept.filter_map(|item| item.get("name").and_then(Value::as_str)).collect();
    let name = |item: usize| written.pointer(&format!("{list}/{item}/name")).and_then(Value::as_str);
    let mut names = [duplicate.first, duplicate.index].into_iter().filter_map(name);
    match names.find(|name| !name.is_empty() && !kept.contains(name)) {
        Some(dropped) => format!("the name {dropped:?} is dropped, since nothing in the bundle uses it"),
        None => "one of them is used".to_owned(),
    }
}

/// Whether a text occurs as a value, other than in the definition of a port.
fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(members) if members.contains_key("containerPort") => false,
        Value::Object(members) => members.values().any(|value| mentions(value, text)),
        _ => false,
    }
}

/// Merges the duplicates of a pod that have one meaning.
fn merge(pod: &mut Value, is_used: &impl Fn(&str) -> bool) {
    with_list(pod, "hostAliases", |items| merge_pairs(items, &["ip"], merge_aliases));
    with_list(pod, "imagePullSecrets", |items| merge_pairs(items, &["name"], |_, _, _| Some(Pair::First)));
    for containers in ["initContainers", "containers"] {
        with_list(pod, containers, |containers| {
            for container in containers {
                with_list(container, "env", |items| merge_pairs(items, &["name"], merge_variables));
                with_list(container, "ports", |items| {
                    merge_pairs(items, &["containerPort", "protocol"], |items, one, other| {
                        merge_ports(items, one, other, is_used)
                    });
                });
            }
        });
    }
}

fn with_list(object: &mut Value, name: &str, change: impl FnOnce(&mut Vec<Value>)) {
    if let Some(items) = object.get_mut(name).and_then(Value::as_array_mut) {
        change(items);
    }
}

/// Which of two items with one key stays.
enum Pair {
    First,
    Second,
}

/// Merges neighbours among the items with one key: `merge` receives the items and the indices of two of them.
fn merge_pairs(items: &mut Vec<Value>, keys: &[&str], merge: impl Fn(&mut [Value], usize, usize) -> Option<Pair>) {
    let key = |item: &Value| -> Vec<Value> {
        let part = |name: &&str| match item.get(*name) {
            None | Some(Value::Null) if *name == "protocol" => "TCP".into(),
            value => value.cloned().unwrap_or_default(),
        };
        keys.iter().map(part).collect()
    };
    let mut first = 0;
    while let Some(item) = items.get(first) {
        let wanted = key(item);
        let next = items.iter().skip(first + 1).position(|other| key(other) == wanted);
        match next.map(|next| first + 1 + next).and_then(|next| Some((next, merge(items, first, next)?))) {
            Some((next, Pair::First)) => drop(items.remove(next)),
            Some((_, Pair::Second)) => drop(items.remove(first)),
            None => first += 1,
        }
    }
}

/// The last variable of a name wins. An earlier one matters only if something up to the last one refers to it.
fn merge_variables(items: &mut [Value], one: usize, other: usize) -> Option<Pair> {
    let reference = format!("$({})", items.get(one)?.get("name")?.as_str()?);
    let refers =
        |item: &Value| item.get("value").and_then(Value::as_str).is_some_and(|value| value.contains(&reference));
    if items.get(one) == items.get(other) && !items.get(other).is_some_and(refers) {
        return Some(Pair::First);
    }
    let between = items.get(one + 1..=other)?;
    (!between.iter().any(refers)).then_some(Pair::Second)
}

/// Ports that differ only in their name are one. A name is dropped only if nothing refers to it.
fn merge_ports(items: &mut [Value], one: usize, other: usize, is_used: &impl Fn(&str) -> bool) -> Option<Pair> {
    let without_name = |item: &Value| {
        let mut item = item.as_object()?.clone();
        item.remove("name");
        item.entry("protocol").or_insert_with(|| "TCP".into());
        item.retain(|_, value| !value.is_null());
        Some(item)
    };
    let name = |index: usize| items.get(index)?.get("name")?.as_str().filter(|name| !name.is_empty());
    if without_name(items.get(one)?)? != without_name(items.get(other)?)? {
        return None;
    }
    match (name(one), name(other)) {
        (None, Some(_)) => Some(Pair::Second),
        (Some(first), Some(second)) if first != second && is_used(second) => (!is_used(first)).then_some(Pair::Second),
        _ => Some(Pair::First),
    }
}

fn merge_aliases(items: &mut [Value], one: usize, other: usize) -> Option<Pair> {
    let more = items.get(other)?.get("hostnames").and_then(Value::as_array).cloned().unwrap_or_default();
    let alias = items.get_mut(one)?.as_object_mut()?;
    let names = alias.entry("hostnames").or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?;
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(Pair::First)
}
