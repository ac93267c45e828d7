//! Which requests a policy is about.

use serde_json::{Value, json};

use super::rules::{about, enforce_with};
use crate::support::{
    Scope, cases,
    objects::{self, config_map, labelled},
};

cases! {
    "3.23" operations_are_distinguished;
    "3.23" names_limit_a_policy;
    "3.23" excluded_resources_are_not_matched;
    "3.23" labels_of_the_object_select_it;
    "3.23" labels_of_the_namespace_select_it;
    "3.23" scopes_are_distinguished;
    "3.23" a_binding_limits_its_policy;
    "3.23" conditions_limit_a_policy;
    "3.23" subresources_are_named;
    "3.23" other_versions_are_converted;
    "3.23" exact_versions_are_not_converted;
}

/// A policy that denies what it matches.
fn denying(constraints: Value) -> Value {
    json!({"matchConstraints": constraints, "validations": [{"expression": "false", "message": "matched"}]})
}

fn rules(rules: &[Value]) -> Value {
    json!({"resourceRules": rules})
}

async fn operations_are_distinguished(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.is(201);
    let rule = enforce_with(scope, denying(rules(&[about("", "configmaps", &["UPDATE"])])), json!({})).await;
    assert_eq!(rule.denies(maps.merge("a", &json!({"data": {"x": "1"}})).await), "matched");
    maps.create(&config_map("b", json!({}))).await.is(201);
    maps.delete("a").await.is(200);
}

async fn names_limit_a_policy(scope: &Scope) {
    let mut named = about("", "configmaps", &["*"]);
    named["resourceNames"] = json!(["a", "b"]);
    let rule = enforce_with(scope, denying(rules(&[named])), json!({})).await;
    let maps = scope.config_maps().await;
    for name in ["a", "b"] {
        assert_eq!(rule.denies(maps.create(&config_map(name, json!({}))).await), "matched");
    }
    maps.create(&config_map("c", json!({}))).await.is(201);
    maps.create(&json!({"metadata": {"generateName": "a"}})).await.is(201);
}

async fn excluded_resources_are_not_matched(scope: &Scope) {
    let mut excluded = about("", "configmaps", &["CREATE"]);
    excluded["resourceNames"] = json!(["a"]);
    let mut constraints = rules(&[about("", "*", &["*"])]);
    constraints["excludeResourceRules"] = json!([excluded, about("", "secrets", &["*"])]);
    let rule = enforce_with(scope, denying(constraints), json!({})).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.is(201);
    assert_eq!(rule.denies(maps.create(&config_map("b", json!({}))).await), "matched");
    scope.secrets().await.create(&json!({"metadata": {"name": "a"}})).await.is(201);
}

async fn labels_of_the_object_select_it(scope: &Scope) {
    let mut constraints = rules(&[about("", "configmaps", &["*"])]);
    constraints["objectSelector"] = json!({"matchExpressions": [
        {"key": "guarded", "operator": "In", "values": ["yes", "very"]}, {"key": "free", "operator": "DoesNotExist"},
    ]});
    let maps = scope.config_maps().await;
    let labels = |labels: Value| labelled(config_map("a", json!({})), labels);
    maps.create(&labels(json!({"guarded": "very"}))).await.is(201);
    let policy = json!({"matchConstraints": {"resourceRules": [about("", "configmaps", &["*"])]},
        "validations": [{"expression": "false", "message": "matched"}]});
    let rule = enforce_with(scope, policy, json!({"matchResources": constraints})).await;
    assert_eq!(rule.denies(maps.merge("a", &json!({"metadata": {"labels": null}})).await), "matched", "the old labels");
    for (name, labels, matched) in [
        ("b", json!({"guarded": "yes"}), true),
        ("c", json!({"guarded": "no"}), false),
        ("d", json!({"guarded": "yes", "free": ""}), false),
        ("e", json!({}), false),
    ] {
        let answer = maps.create(&labelled(config_map(name, json!({})), labels)).await;
        if matched {
            assert_eq!(rule.denies(answer), "matched");
        } else {
            answer.is(201);
        }
    }
    assert_eq!(rule.denies(maps.merge("e", &json!({"metadata": {"labels": {"guarded": "yes"}}})).await), "matched");
}

async fn labels_of_the_namespace_select_it(scope: &Scope) {
    let namespace = scope.namespace().await;
    let maps = scope.config_maps().await;
    let limits = json!({"namespaceSelector": {"matchLabels": {"guarded": "yes"}}});
    let policy = json!({"validations": [{"expression": "false", "message": "matched"}]});
    let rule = enforce_with(scope, policy, json!({"matchResources": limits})).await;
    maps.create(&config_map("a", json!({}))).await.is(201);
    let label = json!({"metadata": {"labels": {"guarded": "yes"}}});
    let path = format!("/api/v1/namespaces/{namespace}");
    scope.http().patch(&path, crate::support::MERGE, &label).await.ok();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
    let answer = loop {
        tick.tick().await;
        let answer = maps.create_with("dryRun=All", &config_map("b", json!({}))).await;
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!(rule.denies(answer), "matched");
}

async fn scopes_are_distinguished(scope: &Scope) {
    let maps = scope.config_maps().await;
    for (name, scopes, matched) in [("a", "Namespaced", true), ("b", "Cluster", false), ("c", "*", true)] {
        let mut scoped = about("", "configmaps", &["CREATE"]);
        scoped["scope"] = json!(scopes);
        scoped["resourceNames"] = json!([name]);
        let rule = enforce_with(scope, denying(rules(&[scoped])), json!({})).await;
        let answer = maps.create(&config_map(name, json!({}))).await;
        if matched {
            assert_eq!(rule.denies(answer), "matched");
        } else {
            answer.is(201);
        }
        rule.end().await;
    }
}

async fn a_binding_limits_its_policy(scope: &Scope) {
    let limits = rules(&[about("", "configmaps", &["DELETE"])]);
    let rule = enforce_with(scope, denying(rules(&[about("", "*", &["*"])])), json!({"matchResources": limits})).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.is(201);
    assert_eq!(rule.denies(maps.delete("a").await), "matched");
    maps.get("a").await.is(200);
}

async fn conditions_limit_a_policy(scope: &Scope) {
    let probe = "request.name == 'policy-probe' || ";
    let mut policy = denying(rules(&[about("", "configmaps", &["CREATE"])]));
    policy["matchConditions"] = json!([
        {"name": "data", "expression": format!("{probe} has(object.data)")},
        {"name": "guarded", "expression": format!("{probe} object.data.guarded == 'yes'")},
    ]);
    let rule = enforce_with(scope, policy, json!({})).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("no-data", json!(null))).await.is(201);
    maps.create(&config_map("free", json!({"guarded": "no"}))).await.is(201);
    assert_eq!(rule.denies(maps.create(&config_map("a", json!({"guarded": "yes"}))).await), "matched");
    // An error counts unless another condition does not hold.
    let denied = rule.denies(maps.create(&config_map("b", json!({"other": "yes"}))).await);
    assert!(denied.ends_with("resulted in error: no such key: guarded"), "{denied}");
}

async fn subresources_are_named(scope: &Scope) {
    let widgets = scope.widgets().await;
    let group = scope.server().shared_group();
    widgets.create(&scope.widget("a", json!({}))).await.is(201);
    let rule = enforce_with(scope, denying(rules(&[about(&group, "*/status", &["UPDATE"])])), json!({})).await;
    let status = json!({"status": {"phase": "Done"}});
    assert_eq!(rule.denies(widgets.merge("a/status", &status).await), "matched");
    widgets.merge("a", &json!({"spec": {"size": 4}})).await.is(200);
    rule.end().await;
    let rule = enforce_with(scope, denying(rules(&[about(&group, "widgets", &["UPDATE"])])), json!({})).await;
    assert_eq!(rule.denies(widgets.merge("a", &json!({"spec": {"size": 5}})).await), "matched");
    widgets.merge("a/status", &status).await.is(200);
}

/// A CRD in two versions.
fn versions(scope: &Scope) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut crd = objects::crd(&scope.group(), schema);
    let mut other = crd["spec"]["versions"][0].clone();
    other["name"] = json!("v2");
    other["storage"] = json!(false);
    crd["spec"]["versions"].as_array_mut().unwrap().push(other);
    crd
}

fn widget(scope: &Scope, name: &str, version: &str) -> Value {
    json!({"apiVersion": format!("{}/{version}", scope.group()), "kind": "Widget", "metadata": {"name": name}})
}

async fn other_versions_are_converted(scope: &Scope) {
    let group = scope.group();
    scope.create_crd(&versions(scope)).await;
    let mut about_v1 = about(&group, "widgets", &["CREATE"]);
    about_v1["apiVersions"] = json!(["v1"]);
    let text = "request.name + ' ' + object.apiVersion.split('/')[1] + ' ' + request.kind.version + ' ' \
        + request.resource.version + ' ' + request.requestKind.version + ' ' + request.requestResource.version";
    let policy = json!({"matchConstraints": rules(&[about_v1]),
        "validations": [{"expression": "request.name == 'policy-probe'", "messageExpression": text}]});
    let rule = enforce_with(scope, policy, json!({})).await;
    for (version, message) in [("v1", "a v1 v1 v1 v1 v1"), ("v2", "a v1 v1 v1 v2 v2")] {
        let widgets = scope.collection(&format!("{group}/{version}"), "widgets").await;
        assert_eq!(rule.denies(widgets.create(&widget(scope, "a", version)).await), message);
    }
}

async fn exact_versions_are_not_converted(scope: &Scope) {
    let group = scope.group();
    scope.create_crd(&versions(scope)).await;
    let mut about_v1 = about(&group, "widgets", &["CREATE"]);
    about_v1["apiVersions"] = json!(["v1"]);
    let mut constraints = rules(&[about_v1]);
    constraints["matchPolicy"] = json!("Exact");
    let rule = enforce_with(scope, denying(constraints), json!({})).await;
    let v1 = scope.collection(&format!("{group}/v1"), "widgets").await;
    assert_eq!(rule.denies(v1.create(&widget(scope, "a", "v1")).await), "matched");
    let v2 = scope.collection(&format!("{group}/v2"), "widgets").await;
    v2.create(&widget(scope, "a", "v2")).await.is(201);
}
