//! Compares the escalation check's notion of covered rules with trying every request.

use chandler_permissions::{
    PolicyRule,
    cover::{break_down, compact, uncovered},
};
use proptest::prelude::*;

use crate::common::{allowed, requests, rule};

proptest! {
    #[test]
    fn covered_rules_allow_no_further_request(
        owned in prop::collection::vec(rule(), 0..5),
        wanted in prop::collection::vec(rule(), 1..3),
    ) {
        let held: Vec<&PolicyRule> = owned.iter().collect();
        let missing = uncovered(&held, &wanted);
        let lost = requests().into_iter().find(|request| allowed(&wanted, request) && !allowed(&owned, request));
        prop_assert_eq!(missing.is_empty(), lost.is_none(), "missing {:?}, lost {:?}", missing, lost);
        // The missing parts are wanted, and adding them leaves nothing missing.
        prop_assert!(uncovered(&wanted.iter().collect::<Vec<_>>(), &missing).is_empty());
        let together: Vec<&PolicyRule> = owned.iter().chain(&missing).collect();
        prop_assert!(uncovered(&together, &wanted).is_empty());
    }

    #[test]
    fn splitting_and_joining_rules_allow_the_same(rules in prop::collection::vec(rule(), 0..4)) {
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
