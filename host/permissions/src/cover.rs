//! Checks whether rules contain other rules (`k8s.io/component-helpers/auth/rbac/validation`).

use std::collections::{BTreeMap, BTreeSet};

use crate::rule::{ALL, PolicyRule, has, of_every_resource, path_covers};

/// The length up to which a list is searched in order.
const SHORT: usize = 8;

/// The parts of `wanted` that `owned` does not contain, each with one verb, one resource and at most one name. Empty if
/// `owned` contains all of `wanted`.
///
/// A single rule of `owned` must contain a part. A part with `*` is contained only in a rule with `*`.
///
/// A rule has as many parts as the product of the lengths of its lists. For rules of unknown origin, the caller must look at
/// [`PolicyRule::parts`] first.
pub fn uncovered<'a>(owned: &[&PolicyRule], wanted: impl IntoIterator<Item = &'a PolicyRule>) -> Vec<PolicyRule> {
    let mut parts = Vec::new();
    for rule in wanted.into_iter().filter(|rule| !is_covered(owned, rule)) {
        add_uncovered(owned, rule, &mut parts);
    }
    parts
}

/// Whether any of the rules contains another one as a whole. For a part, a rule of one verb, one resource or path, and at most one name, that
/// is all. The parts of a larger rule may be in several rules.
pub fn is_covered(owned: &[&PolicyRule], rule: &PolicyRule) -> bool {
    owned.iter().any(|owned| covers(owned, rule))
}

/// Adds the parts of a rule that no other rule contains. Each list leaves fewer rules to compare with.
fn add_uncovered(owned: &[&PolicyRule], rule: &PolicyRule, parts: &mut Vec<PolicyRule>) {
    let one = |text: &String| vec![text.clone()];
    for group in &rule.api_groups {
        let in_group = narrowed(owned, |owned| any(&owned.api_groups, group));
        for resource in &rule.resources {
            let of_resource = narrowed(&in_group, |owned| has_resource(&Texts::new(&owned.resources, 1), resource));
            for verb in &rule.verbs {
                let with_verb = narrowed(&of_resource, |owned| any(&owned.verbs, verb));
                if with_verb.iter().any(|owned| owned.resource_names.is_empty()) {
                    continue;
                }
                let part = || PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part());
                    continue;
                }
                let names: BTreeSet<&String> = with_verb.iter().flat_map(|owned| &owned.resource_names).collect();
                let missing = rule.resource_names.iter().filter(|name| !names.contains(name));
                parts.extend(missing.map(|name| PolicyRule { resource_names: one(name), ..part() }));
            }
        }
    }
    for path in &rule.non_resource_urls {
        let allows = |owned: &PolicyRule| owned.non_resource_urls.iter().any(|allowed| path_covers(allowed, path));
        let of_path = narrowed(owned, |owned| owned.resource_names.is_empty() && allows(owned));
        let missing = rule.verbs.iter().filter(|verb| !of_path.iter().any(|owned| any(&owned.verbs, verb)));
        parts.extend(missing.map(|verb| PolicyRule {
            verbs: one(verb),
            non_resource_urls: one(path),
            ..PolicyRule::default()
        }));
    }
}

fn narrowed<'a>(owned: &[&'a PolicyRule], keep: impl Fn(&PolicyRule) -> bool) -> Vec<&'a PolicyRule> {
    owned.iter().copied().filter(|owned| keep(owned)).collect()
}

/// Whether a list has a text, or everything.
fn any(texts: &[String], text: &str) -> bool {
    has(texts, ALL) || has(texts, text)
}

/// Splits a rule into rules of one verb, one resource (or path) and at most one name.
pub fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut parts = Vec::new();
    add_uncovered(&[], rule, &mut parts);
    parts
}

/// A list of texts that is searched for so many others.
enum Texts<'a> {
    List(&'a [String]),
    Set(BTreeSet<&'a str>),
}

impl<'a> Texts<'a> {
    fn new(texts: &'a [String], searches: usize) -> Self {
        if texts.len() <= SHORT || searches <= SHORT {
            Self::List(texts)
        } else {
            Self::Set(texts.iter().map(String::as_str).collect())
        }
    }

    fn has(&self, text: &str) -> bool {
        match self {
            Self::List(texts) => has(texts, text),
            Self::Set(texts) => texts.contains(text),
        }
    }
}

/// Whether a list has all of these texts.
fn has_all(owned: &[String], wanted: &[String]) -> bool {
    let owned = Texts::new(owned, wanted.len());
    wanted.iter().all(|text| owned.has(text))
}

/// Whether a rule contains another one as a whole. Names are compared last: a rule can have very many of them.
fn covers(rule: &PolicyRule, wanted: &PolicyRule) -> bool {
    let all = |owned: &[String], wanted: &[String]| has(owned, ALL) || has_all(owned, wanted);
    let resources = || {
        has(&rule.resources, ALL) || {
            let owned = Texts::new(&rule.resources, wanted.resources.len());
            wanted.resources.iter().all(|resource| has_resource(&owned, resource))
        }
    };
    let paths = || {
        let allowed = |path: &String| rule.non_resource_urls.iter().any(|allowed| path_covers(allowed, path));
        wanted.non_resource_urls.iter().all(allowed)
    };
    let names = || {
        rule.resource_names.is_empty()
            || (!wanted.resource_names.is_empty() && has_all(&rule.resource_names, &wanted.resource_names))
    };
    all(&rule.verbs, &wanted.verbs) && all(&rule.api_groups, &wanted.api_groups) && resources() && paths() && names()
}

/// Whether a list of resources has a resource, or that subresource of every resource, or everything.
fn has_resource(owned: &Texts<'_>, resource: &str) -> bool {
    owned.has(resource) || owned.has(ALL) || of_every_resource(resource).is_some_and(|every| owned.has(&every))
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
