use chandler_api::PlatformPolicy;
use serde_json::json;

use super::*;
use crate::platform::Policy;

fn operator(name: &str, second: u32, spec: Value) -> PlatformOperator {
    let metadata = json!({"name": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")});
    let object = json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator", "metadata": metadata, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn package(name: &str) -> Value {
    json!({"package": {"name": name}})
}

fn names(plan: &Plan) -> Vec<(&str, &str)> {
    plan.packages.iter().map(|it| (it.request.name.as_str(), it.operator.as_str())).collect()
}

#[test]
fn the_oldest_comes_first_and_the_name_decides_between_equals() {
    let operators = [operator("c", 2, package("x")), operator("b", 1, package("y")), operator("a", 1, package("z"))];
    let plan = plan(&operators.each_ref());
    assert_eq!(names(&plan), [("z", "a"), ("y", "b"), ("x", "c")]);
    assert!(plan.packages.iter().all(|it| it.request.optional));
}

#[test]
fn equal_requests_share_a_package_and_a_different_one_is_refused() {
    let other = json!({"package": {"name": "x"}, "version": "<2"});
    let operators = [operator("a", 1, package("x")), operator("b", 2, package("x")), operator("c", 3, other)];
    let plan = plan(&operators.each_ref());
    assert_eq!(names(&plan), [("x", "a")]);
    let refused: Vec<String> = plan.refused.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    insta::assert_snapshot!(refused.join("\n"), @"c: PlatformOperator a, which is older, wants package x too, and its spec is different: make the specs equal, or delete one of the two");
}

#[test]
fn a_name_that_no_package_can_have_is_refused() {
    for name in ["X", "-x", "x-", "x y", "x_y", ".", "x/y", "ä"] {
        let operators = [operator("a", 1, package(name))];
        let plan = plan(&operators.each_ref());
        assert_eq!((names(&plan), plan.refused.get("a")), (vec![], Some(&Refused::Name(name.to_owned()))));
    }
    for name in ["x", "x-y.z", "3scale"] {
        let operators = [operator("a", 1, package(name))];
        assert_eq!(names(&plan(&operators.each_ref())), [(name, "a")]);
    }
}

#[test]
fn what_is_being_deleted_wants_nothing() {
    let mut deleted = operator("a", 1, package("x"));
    deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp.clone();
    let other = operator("b", 2, json!({"package": {"name": "x"}, "version": "<2"}));
    assert_eq!(names(&plan(&[&deleted, &other])), [("x", "b")]);
}

#[test]
fn what_is_in_no_catalog_is_refused_for_all_that_want_it() {
    let operators = [operator("a", 1, package("x")), operator("b", 2, package("x")), operator("c", 3, package("y"))];
    let all = operators.each_ref();
    let mut plan = plan(&all);
    plan.refuse(&all, |wanted| {
        let catalogs = vec!["main".to_owned()];
        (wanted.request.name == "x").then(|| Refused::Unknown {
            package: "x".to_owned(),
            catalogs,
            not_ready: Vec::new(),
        })
    });
    assert_eq!(names(&plan), [("y", "c")]);
    assert_eq!(plan.refused.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        plan.refused["b"].to_string(),
        "failed to find candidate olm.bundles from the x package: it is in no catalog; catalogs that were read: main"
    );
}

#[test]
fn the_catalog_of_the_highest_priority_suggests_the_namespace() {
    let found = |suggestions: &[(i32, &str)]| {
        namespace_of("x.y", suggestions.iter().map(|(priority, name)| (*priority, (*name).to_owned())).collect())
    };
    assert_eq!(found(&[]), None);
    assert_eq!(found(&[(0, "")]).as_deref(), Some("x-y"));
    assert_eq!(found(&[(0, "Not A Name"), (-1, "")]).as_deref(), Some("x-y"));
    assert_eq!(found(&[(0, "b"), (0, "a"), (5, ""), (-1, "c")]).as_deref(), Some("a"));
    assert_eq!(found(&[(0, "a"), (1, "b")]).as_deref(), Some("b"));
}

#[test]
fn there_are_at_most_as_many_packages_as_a_resolution_has() {
    let operators: Vec<_> =
        (0..=PACKAGES).map(|index| operator(&format!("o{index:04}"), 1, package(&format!("p{index}")))).collect();
    let plan = plan(&operators.iter().collect::<Vec<_>>());
    assert_eq!((plan.packages.len(), plan.refused.len()), (PACKAGES, 1));
}

#[test]
fn nulls_of_a_configuration_are_absent() {
    let spec = json!({"package": {"name": "x"}, "config": {"a": null, "b": {"c": null, "d": [null]}}});
    let operators = [operator("a", 1, spec)];
    assert_eq!(json!(plan(&operators.each_ref()).packages[0].config), json!({"b": {"d": [null]}}));
}

#[test]
fn a_policy_refuses_new_packages_and_no_others() {
    let operators = [
        operator("a", 1, package("old")),
        operator("b", 2, package("new")),
        operator("c", 3, json!({"package": {"name": "limited"}, "channels": ["fast"]})),
        operator("d", 4, package("allowed")),
    ];
    let all = operators.each_ref();
    let existing: Resolution = serde_json::from_value(json!({
        "metadata": {"name": "platform"}, "spec": {"packages": [{"name": "old", "version": "1.x"}]}
    }))
    .unwrap();
    let restricted = |spec: Value| {
        let policy = PlatformPolicy::new("limits", serde_json::from_value(spec).unwrap());
        let mut plan = plan(&all);
        plan.restrict(&all, &Policy::read(&policy).map(Some), Some(&existing));
        plan
    };
    let limits = restricted(json!({"packages": [{"name": "allowed"}, {"name": "limited", "channels": ["stable"]}]}));
    assert_eq!(names(&limits), [("old", "a"), ("allowed", "d")]);
    let refused = |plan: &Plan| {
        plan.refused.iter().map(|(name, reason)| format!("{name}: {reason}")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(refused(&limits), @r"
    b: package new is not among the packages that PlatformPolicy limits allows: allowed, limited
    c: PlatformPolicy limits allows package limited only in channels stable, and the PlatformOperator asks for channels fast
    ");
    let invalid = restricted(json!({"packages": [{"name": "new", "version": "one"}]}));
    assert_eq!(names(&invalid), [("old", "a")]);
    assert!(invalid.refused["b"].to_string().starts_with("PlatformPolicy limits is invalid: spec.packages[0].version"));
    let mut free = plan(&all);
    free.restrict(&all, &Ok(None), Some(&existing));
    assert_eq!(free, plan(&all));
}
