//! Generates rules, and every request that distinguishes them.

use chandler_permissions::{Attributes, NonResourceAttributes, PolicyRule, ResourceAttributes};
use proptest::{prelude::*, sample::subsequence};

const VERBS: &[&str] = &["get", "list", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "jobs", "pods/log", "jobs/log", "*/log", "*"];
const NAMES: &[&str] = &["a", "b"];
const PATHS: &[&str] = &["/a", "/a/*", "/a*", "/a/b", "*"];

/// Every relevant request; "other" represents all values that no rule contains.
pub(crate) fn requests() -> Vec<Attributes> {
    let mut all = Vec::new();
    let own = str::to_owned;
    for verb in ["get", "list", "other"] {
        for group in ["", "apps", "other"] {
            for resource in ["pods", "jobs", "other"] {
                for subresource in ["", "log", "other"] {
                    for name in ["", "a", "b", "other"] {
                        all.push(Attributes::Resource(ResourceAttributes {
                            namespace: own("n"),
                            verb: own(verb),
                            group: own(group),
                            version: own("v1"),
                            resource: own(resource),
                            subresource: own(subresource),
                            name: own(name),
                        }));
                    }
                }
            }
        }
        for path in ["/", "/a", "/a/", "/a/b", "/a/other", "/a/bother", "/aother", "other"] {
            all.push(Attributes::NonResource(NonResourceAttributes { path: own(path), verb: own(verb) }));
        }
    }
    all
}

fn some(texts: &'static [&'static str], least: usize) -> impl Strategy<Value = Vec<String>> {
    let chosen = subsequence(texts, least..=texts.len());
    chosen.prop_map(|texts| texts.into_iter().map(str::to_owned).collect())
}

pub(crate) fn rule() -> impl Strategy<Value = PolicyRule> {
    let resources = (some(VERBS, 1), some(GROUPS, 1), some(RESOURCES, 1), some(NAMES, 0));
    let resources = resources.prop_map(|(verbs, api_groups, resources, resource_names)| PolicyRule {
        verbs,
        api_groups,
        resources,
        resource_names,
        ..PolicyRule::default()
    });
    let paths = (some(VERBS, 1), some(PATHS, 1));
    let paths =
        paths.prop_map(|(verbs, non_resource_urls)| PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() });
    prop_oneof![3 => resources, 1 => paths]
}

pub(crate) fn allowed(rules: &[PolicyRule], request: &Attributes) -> bool {
    rules.iter().any(|rule| rule.allows(request))
}
