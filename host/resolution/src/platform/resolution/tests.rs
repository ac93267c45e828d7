use chandler_api::PlatformOperator;

use super::*;
use crate::platform::plan;

fn operators(specs: &[Value]) -> Vec<PlatformOperator> {
    let operator = |(index, spec): (usize, &Value)| {
        let metadata = json!({"name": format!("o{index}"), "creationTimestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
                                      "metadata": metadata, "spec": spec}))
        .unwrap()
    };
    specs.iter().enumerate().map(operator).collect()
}

fn of(specs: &[Value], kept: &[Kept]) -> Resolution {
    let operators = operators(specs);
    let plan = plan(&operators.iter().collect::<Vec<_>>());
    let namespaces =
        plan.packages.iter().map(|it| (it.request.name.clone(), format!("in-{}", it.request.name))).collect();
    let settings = Settings {
        name: "platform-operators".to_owned(),
        labels: BTreeMap::from([("shard".to_owned(), "a".to_owned())]),
        ..Settings::default()
    };
    wanted(&plan, kept, &namespaces, &settings).unwrap()
}

#[test]
fn all_packages_are_optional_in_one_resolution() {
    let specs = [
        json!({"package": {"name": "x"}, "version": "<2", "channels": ["stable"],
               "catalogs": {"matchLabels": {"olm.operatorframework.io/metadata.name": "main"}}, "config": {"replicas": 2}}),
        json!({"package": {"name": "y"}}),
    ];
    let resolution = of(&specs, &[]);
    assert!(is_managed(&resolution));
    let json =
        serde_json::to_string_pretty(&json!({"metadata": resolution.metadata, "spec": resolution.spec})).unwrap();
    insta::assert_snapshot!(json);
    assert_eq!(wanted(&Plan::default(), &[], &BTreeMap::new(), &Settings::default()), None);
}

#[test]
fn a_change_has_only_what_differs_and_leaves_the_fields_of_administrators() {
    let mut existing = of(&[json!({"package": {"name": "x"}, "config": {"a": 1, "b": {"c": 2}}})], &[]);
    existing.metadata.uid = Some("1".to_owned());
    existing.spec.suspend = true;
    let same = of(&[json!({"package": {"name": "x"}, "config": {"a": 1, "b": {"c": 2}}})], &[]);
    assert_eq!(change(&existing, &same).unwrap(), None);
    let other = of(&[json!({"package": {"name": "x"}, "config": {"b": {"d": 3}}})], &[]);
    let config = json!({"x": {"a": null, "b": {"c": null, "d": 3}}});
    assert_eq!(
        change(&existing, &other).unwrap(),
        Some(json!({"metadata": {"uid": "1"}, "spec": {"output": {"resolveSet": {"config": config}}}}))
    );
    let more = of(&[json!({"package": {"name": "y"}})], &[]);
    assert_eq!(
        change(&existing, &more).unwrap(),
        Some(json!({"metadata": {"uid": "1"}, "spec": {
            "packages": [{"name": "y", "optional": true}],
            "output": {"resolveSet": {"config": null, "names": {"x": null, "y": "o0"}, "namespaces": {"x": null, "y": "in-y"}}}}}))
    );
}

#[test]
fn an_orphaned_package_is_kept_until_a_platform_operator_wants_it() {
    let existing = of(&[json!({"package": {"name": "x"}, "config": {"a": 1}}), json!({"package": {"name": "y"}})], &[]);
    let left = operators(&[json!({"package": {"name": "y"}})]);
    let left: Vec<_> = left.iter().collect();
    let orphaned = BTreeSet::from(["x".to_owned(), "never".to_owned()]);
    let one = kept(Some(&existing), &orphaned, false, &plan(&left));
    let with = of(&[json!({"package": {"name": "y"}})], &one);
    assert_eq!(kept_packages(&with), BTreeSet::from(["x".to_owned()]));
    assert_eq!(with.spec.packages.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["y", "x"]);
    assert_eq!(namespace(&with, "x").map(String::as_str), Some("in-x"));
    assert_eq!(kept(Some(&with), &BTreeSet::new(), false, &plan(&left)), one, "it stays kept");
    let again = operators(&[json!({"package": {"name": "x"}, "version": "2"})]);
    assert_eq!(kept(Some(&with), &BTreeSet::new(), false, &plan(&[&again[0]])), []);
}

#[test]
fn nothing_goes_while_a_platform_operator_cannot_be_read() {
    let existing = of(&[json!({"package": {"name": "x"}}), json!({"package": {"name": "y"}})], &[]);
    let readable = operators(&[json!({"package": {"name": "y"}})]);
    let held = kept(Some(&existing), &BTreeSet::new(), true, &plan(&[&readable[0]]));
    let with = of(&[json!({"package": {"name": "y"}})], &held);
    assert!(asks_for(&with, "x"));
    assert_eq!(kept_packages(&with), BTreeSet::new(), "it goes once all can be read");
}
