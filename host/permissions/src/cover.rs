//! Checks whether rules contain other rules (`k8s.io/component-helpers/auth/rbac/validation`).

use std::collections::BTreeMap;

use crate::rule::{ALL, PolicyRule, has, path_covers};

/// The parts of `wanted` that `owned` does not contain, each with one verb, one resource and at most one name. Empty if
/// `owned` contains all of `wanted`.
///
/// A single rule of `owned` must contain a part. A part with `*` is contained only in a rule with `*`.
pub fn uncovered<'a>(owned: &[&PolicyRule], wanted: impl IntoIterator<Item = &'a PolicyRule>) -> Vec<PolicyRule> {
    let parts = wanted.into_iter().flat_map(break_down);
    parts.filter(|part| !is_covered(owned, part)).collect()
}

/// Whether any of the rules contains a part: a rule of one verb, one resource or path, and at most one name.
pub fn is_covered(owned: &[&PolicyRule], part: &PolicyRule) -> bool {
    owned.iter().any(|rule| covers(rule, part))
}

/// Splits a rule into rules of one verb, one resource (or path) and at most one name.
pub fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part);
                } else {
                    let names = rule.resource_names.iter();
                    parts.extend(names.map(|name| PolicyRule { resource_names: one(name), ..part.clone() }));
                }
            }
        }
    }
    for path in &rule.non_resource_urls {
        let verbs = rule.verbs.iter();
        parts.extend(verbs.map(|verb| PolicyRule {
            verbs: one(verb),
            non_resource_urls: one(path),
            ..PolicyRule::default()
        }));
    }
    parts
}

/// Whether a rule contains a part.
fn covers(rule: &PolicyRule, part: &PolicyRule) -> bool {
    let all = |owned: &[String], wanted: &[String]| has(owned, ALL) || wanted.iter().all(|text| has(owned, text));
    let names = rule.resource_names.is_empty()
        || (!part.resource_names.is_empty() && part.resource_names.iter().all(|name| has(&rule.resource_names, name)));
    let resources = has(&rule.resources, ALL)
        || part.resources.iter().all(|resource| {
            let of_every_resource = || resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
            has(&rule.resources, resource) || of_every_resource().is_some_and(|every| has(&rule.resources, &every))
        });
    let paths = part
        .non_resource_urls
        .iter()
        .all(|path| rule.non_resource_urls.iter().any(|allowed| path_covers(allowed, path)));
    all(&rule.verbs, &part.verbs) && all(&rule.api_groups, &part.api_groups) && resources && names && paths
}

/// Joins the verbs of parts with the same group, resource and name.
pub fn compact(parts: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut together: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
    let mut rest = Vec::new();
    for mut part in parts {
        let simple = part.api_groups.len() == 1
            && part.resources.len() == 1
            && part.resource_names.len() <= 1
            && part.non_resource_urls.is_empty();
        if simple {
            let verbs = std::mem::take(&mut part.verbs);
            together.entry(part).or_default().extend(verbs);
        } else {
            rest.push(part);
        }
    }
    rest.extend(together.into_iter().map(|(part, verbs)| PolicyRule { verbs, ..part }));
    rest
}
