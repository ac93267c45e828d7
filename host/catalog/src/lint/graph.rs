//! The update graph of a channel: its head, and what is wrong with its chain of replaced bundles.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Channel, ChannelEntry, Problem};

/// The newest entry of a channel: the one that no other entry replaces or skips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// There is one, as it must be.
    One(&'a str),
    /// There is none: the entries replace each other.
    None,
    /// There are several.
    Several(Vec<&'a str>),
}

/// The head of a channel.
pub fn head(channel: &Channel) -> Head<'_> {
    let updated =
        |entry: &'_ ChannelEntry| -> Vec<String> { entry.replaces.iter().chain(&entry.skips).cloned().collect() };
    let updated: BTreeSet<String> = channel.entries.iter().flat_map(updated).collect();
    let names: BTreeSet<&str> = channel.entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut heads: Vec<&str> = names.into_iter().filter(|name| !updated.contains(*name)).collect();
    match heads.len() {
        0 => Head::None,
        1 => heads.pop().map_or(Head::None, Head::One),
        _ => Head::Several(heads),
    }
}

/// Checks the chain of a channel that has entries: it has one head; from there, `replaces` leads to all entries that no entry
/// skips; it has no cycle. The last entry may replace a bundle that is not in the channel.
pub(super) fn problems(channel: &Channel) -> Vec<Problem> {
    let name = || channel.name.clone();
    if channel.entries.is_empty() {
        return Vec::new();
    }
    let head = match head(channel) {
        Head::One(head) => head,
        Head::None => return vec![Problem::NoHead { channel: name() }],
        Head::Several(heads) => {
            let heads = heads.into_iter().map(str::to_owned).collect();
            return vec![Problem::MultipleHeads { channel: name(), heads }];
        }
    };
    // Of equal names the last one counts.
    let entries: BTreeMap<&str, &ChannelEntry> =
        channel.entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    let skipped: BTreeSet<&str> = channel.entries.iter().flat_map(|entry| &entry.skips).map(String::as_str).collect();
    let mut chain = vec![head];
    let mut reached = BTreeSet::from([head]);
    let mut entry = entries.get(head);
    while let Some(replaced) = entry.and_then(|entry| entry.replaces.as_deref()) {
        // Skipped bundles are not installed, so their own edges do not count.
        if skipped.contains(replaced) {
            break;
        }
        let is_new = reached.insert(replaced);
        chain.push(replaced);
        if !is_new {
            let from = chain.iter().position(|link| *link == replaced).unwrap_or_default();
            let chain = chain.iter().skip(from).map(|link| (*link).to_owned()).collect();
            return vec![Problem::Cycle { channel: name(), chain }];
        }
        entry = entries.get(replaced);
    }
    let stranded: Vec<String> = entries
        .keys()
        .filter(|entry| !reached.contains(*entry) && !skipped.contains(*entry))
        .map(|entry| (*entry).to_owned())
        .collect();
    if stranded.is_empty() { Vec::new() } else { vec![Problem::Stranded { channel: name(), bundles: stranded }] }
}
