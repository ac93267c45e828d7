//! Merges many small rules into few large ones that allow exactly the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cover::{break_down, is_covered},
    rule::PolicyRule,
};

/// Merges permissions into few rules, without rules that others contain. The order depends only on the permissions.
///
/// Rules are joined only if they differ in a single list, so the result allows nothing more.
pub fn merge<'a>(rules: impl IntoIterator<Item = &'a PolicyRule>) -> Vec<PolicyRule> {
    let parts: BTreeSet<PolicyRule> = rules.into_iter().flat_map(break_down).collect();
    let parts = without_covered(parts);
    // The order of joins affects only readability: verbs come first, so that all verbs of a resource are in one rule.
    let parts = join(parts, |rule| &mut rule.verbs);
    let parts = join(parts, |rule| &mut rule.resource_names);
    let parts = join(parts, |rule| &mut rule.resources);
    let parts = join(parts, |rule| &mut rule.non_resource_urls);
    let mut rules = join(parts, |rule| &mut rule.api_groups);
    rules.sort_by(|left, right| sort_key(left).cmp(&sort_key(right)));
    rules
}

/// Sorts by group, rules for all objects before rules for named ones; paths last.
fn sort_key(rule: &PolicyRule) -> impl Ord + '_ {
    let PolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls } = rule;
    (non_resource_urls, api_groups, !resource_names.is_empty(), resources, resource_names, verbs)
}

/// Removes parts that another part contains. Parts that contain each other are equal, and a set has each once.
fn without_covered(parts: BTreeSet<PolicyRule>) -> Vec<PolicyRule> {
    let all: Vec<&PolicyRule> = parts.iter().collect();
    // Only a part with wildcards or without names can contain a different part.
    let wide: Vec<&PolicyRule> = all.iter().copied().filter(|part| is_wide(part)).collect();
    let needed = all.iter().filter(|part| !wide.iter().any(|other| other != *part && is_covered(&[other], part)));
    needed.map(|part| (*part).clone()).collect()
}

/// Whether a part may contain a different part.
fn is_wide(part: &PolicyRule) -> bool {
    let star = |texts: &[String]| texts.iter().any(|text| text.contains('*'));
    star(&part.verbs)
        || star(&part.api_groups)
        || star(&part.resources)
        || star(&part.non_resource_urls)
        || (!part.resources.is_empty() && part.resource_names.is_empty())
}

/// Joins rules that differ only in one list. An empty list means everything, so it is never joined with another list.
fn join(rules: Vec<PolicyRule>, list: impl Fn(&mut PolicyRule) -> &mut Vec<String>) -> Vec<PolicyRule> {
    let mut joined: BTreeMap<(PolicyRule, bool), BTreeSet<String>> = BTreeMap::new();
    for mut rule in rules {
        let texts = std::mem::take(list(&mut rule));
        joined.entry((rule, texts.is_empty())).or_default().extend(texts);
    }
    joined
        .into_iter()
        .map(|((mut rule, _), texts)| {
            *list(&mut rule) = texts.into_iter().collect();
            rule
        })
        .collect()
}
