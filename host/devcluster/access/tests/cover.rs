//! What the escalation check calls "covered" is compared with trying every request.

use chandler_devcluster_access::{
    Attributes, NonResourceAttributes, PolicyRule, ResourceAttributes,
    cover::{break_down, compact, uncovered},
};
use proptest::{prelude::*, sample::subsequence};

const VERBS: &[&str] = &["get", "list", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "jobs", "pods/log", "jobs/log", "*/log", "*"];
const NAMES: &[&str] = &["a", "b"];
const PATHS: &[&str] = &["/a", "/a/*", "/a*", "/a/b", "*"];

/// Every request that matters; "other" stands for all that no rule names.
fn requests() -> Vec<Attributes> {
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

fn rule() -> impl Strategy<Value = PolicyRule> {
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

fn allowed(rules: &[PolicyRule], request: &Attributes) -> bool {
    rules.iter().any(|rule| rule.allows(request))
}

proptest! {
    #[test]
    fn covered_is_what_every_request_says(
        owned in prop::collection::vec(rule(), 0..5),
        wanted in prop::collection::vec(rule(), 1..3),
    ) {
        let held: Vec<&PolicyRule> = owned.iter().collect();
        let missing = uncovered(&held, &wanted);
        let lost = requests().into_iter().find(|request| allowed(&wanted, request) && !allowed(&owned, request));
        prop_assert_eq!(missing.is_empty(), lost.is_none(), "missing {:?}, lost {:?}", missing, lost);
        // What is missing is wanted, and with it nothing is missing.
        prop_assert!(uncovered(&wanted.iter().collect::<Vec<_>>(), &missing).is_empty());
        let together: Vec<&PolicyRule> = owned.iter().chain(&missing).collect();
        prop_assert!(uncovered(&together, &wanted).is_empty());
    }

    #[test]
    fn taking_apart_and_putting_together_allow_the_same(rules in prop::collection::vec(rule(), 0..4)) {
        let parts: Vec<PolicyRule> = rules.iter().flat_map(break_down).collect();
        let compacted = compact(parts.clone());
        prop_assert!(compacted.len() <= parts.len());
        for request in requests() {
            let expected = allowed(&rules, &request);
            prop_assert_eq!(allowed(&parts, &request), expected, "{:?}", request);
            prop_assert_eq!(allowed(&compacted, &request), expected, "{:?}", request);
        }
    }
}

#[test]
fn enumerations_do_not_cover_wildcards() {
    let rule = |verbs: &str, group: &str, resource: &str| PolicyRule {
        verbs: verbs.split_whitespace().map(str::to_owned).collect(),
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        ..PolicyRule::default()
    };
    let cases = [
        (rule("get list watch create update delete", "", "pods"), rule("*", "", "pods"), false),
        (rule("get", "", "pods"), rule("get", "*", "pods"), false),
        (rule("get", "", "pods"), rule("get", "", "*"), false),
        (rule("get", "", "*/scale"), rule("get", "", "foo/scale"), true),
        (rule("get", "", "foo/scale"), rule("get", "", "*/scale"), false),
        (rule("get", "", "*"), rule("get", "", "foo/scale"), true),
        (rule("*", "*", "*"), rule("*", "*", "*"), true),
    ];
    for (owned, wanted, covered) in cases {
        assert_eq!(uncovered(&[&owned], [&wanted]).is_empty(), covered, "{owned} {wanted}");
    }
}
