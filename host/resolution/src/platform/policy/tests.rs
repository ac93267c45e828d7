use chandler_resolver::{Selector, version::VersionRelease};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(spec: Value) -> Result<Policy, InvalidPolicy> {
    Policy::read(&PlatformPolicy::new("limits", serde_json::from_value(spec).unwrap()))
}

fn request(value: Value) -> PackageRequest {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_absent_list_allows_everything_and_an_empty_one_nothing() {
    let allows = |spec: Value| read(spec).unwrap().allows("app");
    assert!(allows(json!({})) && allows(json!({"packages": [{"name": "app"}]})));
    assert!(!allows(json!({"packages": []})) && !allows(json!({"packages": [{"name": "other"}]})));
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    let not = json!({"not": {"constraints": [{"cel": {"rule": "properties.exists("}}]}});
    for (spec, expected) in [
        (json!({"packages": [{"name": "a"}, {"name": "b", "version": "one"}]}), "spec.packages[1].version: improper"),
        (json!({"packages": [{"name": "a", "version": ""}]}), "spec.packages[0].version"),
        (json!({"packages": [{"name": "a"}, {"name": "a"}]}), "spec.packages[1]: package a is there twice"),
        (json!({"constraints": [{"type": "olm.constraint", "value": not}]}), "spec.constraints[0]: olm.constraint"),
        (json!({"constraints": [{"type": "olm.gvk.required", "value": 1}]}), "spec.constraints[0]: olm.gvk.required"),
        (
            json!({"constraints": vec![json!({"type": "olm.constraint", "value": {}}); 65]}),
            "spec.constraints has more than 64",
        ),
        (json!({"packages": vec![json!({"name": "a"}); 501]}), "spec.packages has more than 500"),
    ] {
        let message = read(spec.clone()).unwrap_err().to_string();
        assert!(
            message.contains(expected) && message.starts_with("PlatformPolicy limits is invalid"),
            "{spec}: {message}"
        );
    }
}

#[test]
fn a_request_gets_the_limits_of_its_entry() {
    let policy = read(json!({"packages": [
        {"name": "app", "version": "<2", "channels": ["stable", "fast"], "catalogs": {"matchLabels": {"tier": "gold"}}},
        {"name": "free"},
    ]}))
    .unwrap();
    let limit = |value: Value| policy.limit(&request(value));
    assert_eq!(limit(json!({"name": "free", "version": ">1"})), Ok(request(json!({"name": "free", "version": ">1"}))));
    assert_eq!(limit(json!({"name": "other"})), Ok(request(json!({"name": "other"}))), "it was installed before");
    let all = json!({"name": "app", "version": "<2", "channels": ["stable", "fast"], "catalogs": {"matchLabels": {"tier": "gold"}}, "optional": true});
    assert_eq!(limit(json!({"name": "app", "optional": true})), Ok(request(all)));
    let wanted = json!({"name": "app", "version": ">=1", "channels": ["candidate", "fast"],
                        "catalogs": {"matchLabels": {"tier": "silver", "zone": "a"}}});
    let tier = json!({"key": "tier", "operator": "In", "values": ["silver"]});
    let both = json!({"name": "app", "version": ">=1, <2", "channels": ["fast"],
                      "catalogs": {"matchLabels": {"tier": "gold", "zone": "a"}, "matchExpressions": [tier]}});
    assert_eq!(limit(wanted), Ok(request(both)));
    assert_eq!(limit(json!({"name": "app", "version": "one"})).unwrap().version.as_deref(), Some("one"));
}

#[test]
fn a_request_for_what_is_not_allowed_is_refused_and_never_widened() {
    let policy = read(json!({"packages": [{"name": "app", "version": "1.x", "channels": ["stable"]}]})).unwrap();
    let limit = |value: Value| policy.limit(&request(value)).unwrap_err().to_string();
    insta::assert_snapshot!(limit(json!({"name": "app", "channels": ["fast"]})), @"PlatformPolicy limits allows package app only in channels stable, and the PlatformOperator asks for channels fast");
    insta::assert_snapshot!(limit(json!({"name": "app", "version": "1.0.0-rc.1"})), @"PlatformPolicy limits allows package app only in version 1.x, and the PlatformOperator asks for version 1.0.0-rc.1");
    let long = vec!["<9"; 60].join(" || ");
    assert!(limit(json!({"name": "app", "version": long})).ends_with("together they are too long, shorten one"));
    let limited = policy.limited(&[request(json!({"name": "app", "channels": ["fast"]}))]);
    let selects = crate::question::selected(limited[0].catalogs.as_ref());
    assert!(!selects.is_empty() && !selects.matches("main", &BTreeMap::new()), "{limited:?}");
}

#[test]
fn limits_in_words() {
    let policy = read(json!({"packages": [
        {"name": "app", "version": "<2", "channels": ["stable"], "catalogs": {"matchLabels": {"tier": "gold"}}},
        {"name": "free"},
    ]}))
    .unwrap();
    assert_eq!([policy.limits("free"), policy.limits("other")], [None, None]);
    insta::assert_snapshot!(policy.limits("app").unwrap(), @"PlatformPolicy limits allows only version <2, channels stable, the catalogs that its labels select");
    let names: Vec<String> = (0..23).map(|number| format!("p{number:02}")).collect();
    assert!(listed(&names).ends_with("p19 and 3 more"));
    assert_eq!(listed(&[]), "none");
}

fn selector() -> impl Strategy<Value = CatalogSelector> {
    let label = || prop::sample::select(vec!["a", "b"]).prop_map(str::to_owned);
    let value = || prop::sample::select(vec!["x", "y"]).prop_map(str::to_owned);
    let operator = prop::sample::select(vec![
        LabelOperator::In,
        LabelOperator::NotIn,
        LabelOperator::Exists,
        LabelOperator::DoesNotExist,
    ]);
    let expression = (label(), operator, prop::collection::vec(value(), 0..2))
        .prop_map(|(key, operator, values)| CatalogExpression { key, operator, values });
    (prop::collection::btree_map(label(), value(), 0..3), prop::collection::vec(expression, 0..3))
        .prop_map(|(match_labels, match_expressions)| CatalogSelector { match_labels, match_expressions })
}

fn channels() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["stable", "fast", "slow"]).prop_map(str::to_owned), 0..3)
}

fn version() -> impl Strategy<Value = Option<String>> {
    let ranges = vec!["<2", ">=1.5", "1.x || 3.x", ">=1.0.0-rc.1", "2.0.0-rc.1", "!=1.0.0"];
    prop::option::of(prop::sample::select(ranges).prop_map(str::to_owned))
}

proptest! {
    /// A bundle meets the limited request exactly if it meets both; a contradiction is met by none.
    #[test]
    fn what_is_limited_is_what_both_allow(
        allowed in (version(), channels(), prop::option::of(selector())),
        wanted in (version(), channels(), prop::option::of(selector())),
        bundle in (prop::sample::select(vec!["1.0.0", "1.7.0", "2.0.0-rc.1", "2.1.0", "3.0.0"]),
                   prop::sample::select(vec!["stable", "fast", "slow"]),
                   prop::collection::btree_map(prop::sample::select(vec!["a".to_owned(), "b".to_owned()]), prop::sample::select(vec!["x".to_owned(), "y".to_owned()]), 0..3)),
    ) {
        let (version, channel, labels) = bundle;
        let version = VersionRelease::parse(version, None).unwrap();
        let meets = |range: Option<&String>, channels: &[String], catalogs: Option<&CatalogSelector>| {
            range.is_none_or(|range| Range::parse(range).unwrap().matches(version.version()))
                && (channels.is_empty() || channels.iter().any(|it| it == channel))
                && { let selects: Selector = crate::question::selected(catalogs); selects.matches("main", &labels) }
        };
        let of = |(version, channels, catalogs): &(Option<String>, Vec<String>, Option<CatalogSelector>)|
            meets(version.as_ref(), channels, catalogs.as_ref());
        let entry = PolicyPackage { name: "app".to_owned(), version: allowed.0.clone(), channels: allowed.1.clone(), catalogs: allowed.2.clone() };
        let policy = read(json!({"packages": [entry]})).unwrap();
        let asked = PackageRequest { name: "app".to_owned(), version: wanted.0.clone(), channels: wanted.1.clone(), catalogs: wanted.2.clone(), optional: true };
        let both = of(&allowed) && of(&wanted);
        match policy.limit(&asked) {
            Ok(limited) => prop_assert_eq!(meets(limited.version.as_ref(), &limited.channels, limited.catalogs.as_ref()), both, "{:?}", limited),
            Err(_) => prop_assert!(!both),
        }
    }
}
