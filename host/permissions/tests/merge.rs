//! For any rules, merging and rendering neither add nor lose permissions.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue must fail")]

use std::collections::{BTreeMap, BTreeSet};

use chandler_permissions::{Account, PolicyRule, Scope, merge, role::Role, roles, roles::place};
use proptest::prelude::*;

use crate::common::{allowed, requests, rule};

/// The rules of the rendered roles, by scope.
fn granted(rendered: &[serde_json::Value]) -> BTreeMap<Scope, Vec<PolicyRule>> {
    let roles = rendered.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Role"));
    roles.map(|role| (Scope::of(role["metadata"]["namespace"].as_str()), Role::read(role).rules)).collect()
}

proptest! {
    #[test]
    fn merging_allows_exactly_the_same(rules in prop::collection::vec(rule(), 0..6)) {
        let merged = merge(&rules);
        for request in requests() {
            prop_assert_eq!(allowed(&merged, &request), allowed(&rules, &request), "{:?} {:?}", request, merged);
        }
    }

    #[test]
    fn merging_again_or_in_another_order_changes_nothing(rules in prop::collection::vec(rule(), 0..6)) {
        let merged = merge(&rules);
        prop_assert_eq!(&merge(&merged), &merged);
        prop_assert_eq!(&merge(rules.iter().rev()), &merged);
        prop_assert_eq!(&merge(rules.iter().chain(&merged)), &merged);
    }

    #[test]
    fn rendered_roles_grant_the_requested_rules(
        cluster in prop::collection::vec(rule(), 1..4),
        local in prop::collection::vec(rule(), 1..4),
        promoted in prop::collection::vec(rule(), 0..3),
    ) {
        let account = Account { namespace: "n".into(), name: "a".into() };
        let space = |name: &str| Scope::Namespace(name.into());
        let wanted = [(Scope::Cluster, cluster.clone()), (space("n"), local.clone()), (space("new"), promoted.clone())];
        let not_yet = BTreeSet::from(["new".to_owned()]);
        let rendered = roles(&place(&wanted.into_iter().collect(), &not_yet), &account, "x");
        let granted = granted(&rendered);
        prop_assert_eq!(granted.len(), 2);
        let everywhere: Vec<PolicyRule> = cluster.into_iter().chain(promoted).collect();
        for request in requests() {
            prop_assert_eq!(allowed(&granted[&Scope::Cluster], &request), allowed(&everywhere, &request));
            prop_assert_eq!(allowed(&granted[&space("n")], &request), allowed(&local, &request));
        }
    }
}

#[test]
fn many_parts_are_merged_without_comparing_each_with_each() {
    // Every part without a name may contain others.
    let rules: Vec<PolicyRule> = (0..10_000)
        .map(|number| PolicyRule {
            verbs: vec!["get".into()],
            api_groups: vec![format!("g{number}")],
            resources: vec![format!("r{number}")],
            ..PolicyRule::default()
        })
        .collect();
    assert_eq!(merge(&rules).len(), 10_000);
    // Paths that contain each other leave one.
    let path = |path: &str| PolicyRule {
        verbs: vec!["get".into()],
        non_resource_urls: vec![path.into()],
        ..PolicyRule::default()
    };
    assert_eq!(merge(&[path("/a**"), path("/a*"), path("/a/b")]), [path("/a*")]);
}
