//! Merges many small rules into few large ones that allow exactly the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cover::break_down,
    rule::{ALL, PolicyRule, of_every_resource},
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

/// Removes parts that another part contains. Of parts that contain each other, the first remains.
fn without_covered(parts: BTreeSet<PolicyRule>) -> Vec<PolicyRule> {
    let all = Parts::new(parts.iter());
    parts.iter().filter(|part| !all.contain_more_than(part)).cloned().collect()
}

/// Parts, for finding the part that contains another one without a comparison with each: its lists are equal, or have `*`.
pub(crate) struct Parts<'a> {
    exact: BTreeSet<&'a PolicyRule>,
    /// The first path with `*` at its end, by the verb and the text before `*`.
    prefixes: BTreeMap<(&'a str, &'a str), &'a str>,
    /// The lengths of these texts.
    lengths: BTreeSet<usize>,
}

impl<'a> Parts<'a> {
    /// The parts among these rules. Other rules are ignored.
    pub(crate) fn new(rules: impl Iterator<Item = &'a PolicyRule>) -> Self {
        let exact: BTreeSet<&PolicyRule> = rules.filter(|rule| rule.parts() == 1).collect();
        let mut prefixes = BTreeMap::new();
        for part in &exact {
            let ([verb], [path]) = (&part.verbs[..], &part.non_resource_urls[..]) else { continue };
            if let Some(prefix) = prefix(path) {
                prefixes.entry((verb.as_str(), prefix)).or_insert(path.as_str());
            }
        }
        let lengths = prefixes.keys().map(|(_, prefix)| prefix.len()).collect();
        Self { exact, prefixes, lengths }
    }

    /// Whether one of them contains this part.
    pub(crate) fn contain(&self, part: &PolicyRule) -> bool {
        self.exact.contains(part) || self.contain_more_than(part)
    }

    /// Whether one of them contains this part and is not equal to it.
    fn contain_more_than(&self, part: &PolicyRule) -> bool {
        let [verb] = &part.verbs[..] else { return false };
        let verbs = with_all(verb);
        match (&part.api_groups[..], &part.resources[..], &part.non_resource_urls[..]) {
            ([], [], [path]) => verbs.into_iter().any(|allowed| {
                let same = || allowed != verb && self.exact.contains(&of_path(allowed, path));
                same() || self.has_prefix(allowed, path, |pattern| allowed != verb || pattern != path)
            }),
            ([group], [resource], []) => {
                let of_every = of_every_resource(resource);
                let mut resources = [Some(resource.as_str()), of_every.as_deref(), Some(ALL)].into_iter().flatten();
                let names = [&part.resource_names[..], &[]];
                resources.any(|resource| {
                    verbs.into_iter().any(|verb| {
                        with_all(group).into_iter().any(|group| {
                            names.into_iter().any(|names| {
                                let wider = of_resource(verb, group, resource, names);
                                wider != *part && self.exact.contains(&wider)
                            })
                        })
                    })
                })
            }
            _ => false,
        }
    }

    fn has_prefix(&self, verb: &str, path: &str, counts: impl Fn(&str) -> bool) -> bool {
        let lengths = self.lengths.range(..=path.len());
        let mut patterns = lengths.filter_map(|length| self.prefixes.get(&(verb, path.get(..*length)?)));
        patterns.any(|pattern| counts(pattern))
    }
}

/// The text before `*` at the end of a path.
fn prefix(path: &str) -> Option<&str> {
    path.ends_with(ALL).then(|| path.trim_end_matches('*'))
}

fn with_all(text: &str) -> [&str; 2] {
    [text, ALL]
}

fn of_path(verb: &str, path: &str) -> PolicyRule {
    PolicyRule { verbs: vec![verb.to_owned()], non_resource_urls: vec![path.to_owned()], ..PolicyRule::default() }
}

fn of_resource(verb: &str, group: &str, resource: &str, names: &[String]) -> PolicyRule {
    PolicyRule {
        verbs: vec![verb.to_owned()],
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        resource_names: names.to_vec(),
        ..PolicyRule::default()
    }
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
