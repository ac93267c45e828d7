//! Every way to change an object is checked.

use serde_json::{Value, json};

use super::rules::{BINDINGS, POLICIES, about, enforce, enforce_with};
use crate::support::{Scope, cases, objects::config_map};

cases! {
    "3.23" every_write_is_checked;
    "3.23" dry_runs_are_checked;
    "3.23" a_write_without_changes_is_checked;
    "3.23" each_object_of_a_collection_is_checked;
    "3.23" a_scale_is_checked_as_such;
    "3.23" tokens_are_checked;
    "3.23" invalid_objects_are_reported_first;
    "3.23" policies_are_not_about_policies;
    "3.23" policies_are_not_about_reviews;
}

async fn every_write_is_checked(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({"x": "1"}))).await.is(201);
    let allowed = "request.operation == 'DELETE' ? request.name != 'a' : object.data.x != '2'";
    let rule = enforce(
        scope,
        json!([{"expression": format!("request.name == 'policy-probe' || ({allowed})"), "message": "no"}]),
    )
    .await;
    let mut replaced = created.clone();
    replaced["data"]["x"] = json!("2");
    let patch = json!({"data": {"x": "2"}});
    let applied = config_map("a", json!({"x": "2"}));
    for answer in [
        maps.create(&config_map("b", json!({"x": "2"}))).await,
        maps.apply("b", "me", &config_map("b", json!({"x": "2"}))).await,
        maps.put("a", &replaced).await,
        maps.merge("a", &patch).await,
        maps.strategic("a", &patch).await,
        maps.json_patch("a", &json!([{"op": "replace", "path": "/data/x", "value": "2"}])).await,
        maps.apply("a?force=true", "me", &applied).await,
        maps.delete("a").await,
    ] {
        assert_eq!(rule.denies(answer), "no");
    }
    maps.merge("a", &json!({"data": {"x": "3"}})).await.is(200);
}

async fn dry_runs_are_checked(scope: &Scope) {
    let rule =
        enforce(scope, json!([{"expression": "!request.dryRun || request.name == 'policy-probe'", "message": "dry"}]))
            .await;
    let maps = scope.config_maps().await;
    let map = config_map("a", json!({}));
    assert_eq!(rule.denies(maps.create_with("dryRun=All", &map).await), "dry");
    maps.create(&map).await.is(201);
    assert_eq!(rule.denies(maps.merge("a?dryRun=All", &json!({"data": {"x": "1"}})).await), "dry");
    assert_eq!(rule.denies(maps.delete_with("a", &json!({"dryRun": ["All"]})).await), "dry");
    maps.delete("a").await.is(200);
}

async fn a_write_without_changes_is_checked(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"x": "1"}))).await.is(201);
    let rule = enforce(scope, json!([{"expression": "request.operation != 'UPDATE'", "message": "no updates"}])).await;
    assert_eq!(rule.denies(maps.merge("a", &json!({"data": {"x": "1"}})).await), "no updates");
}

async fn each_object_of_a_collection_is_checked(scope: &Scope) {
    let secrets = scope.secrets().await;
    for name in ["kept", "a", "b"] {
        secrets.create(&json!({"metadata": {"name": name, "labels": {"name": name}}})).await.is(201);
    }
    let policy = json!({
        "matchConstraints": {"resourceRules": [about("", "secrets", &["DELETE"])]},
        "validations": [{"expression": "oldObject == null || oldObject.metadata.name != 'kept'",
            "messageExpression": "oldObject.metadata.name + ' ' + (has(request.name) ? 'by name' : 'among others')"}],
    });
    let rule = enforce_with(scope, policy, json!({})).await;
    let answer = secrets.delete_all("labelSelector=name=kept").await;
    let status = answer.clone().refused(422, "Invalid");
    assert_eq!(status["details"]["name"], "Unknown");
    assert_eq!(rule.denies(answer), "kept among others");
    assert_eq!(rule.denies(secrets.delete("kept").await), "kept by name");
    secrets.delete_all("labelSelector=name in (a,b)").await.is(200);
    secrets.get("kept").await.is(200);
}

async fn a_scale_is_checked_as_such(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"replicas": 1}))).await.is(201);
    let group = scope.server().shared_group();
    let text = "object.kind + ' ' + string(oldObject.spec.replicas) + ' to ' + string(object.spec.replicas) + ' ' \
        + request.kind.group + '/' + request.kind.kind + ' ' + request.resource.resource + '/' + request.subResource";
    let policy = json!({
        "matchConstraints": {"resourceRules": [about(&group, "widgets/scale", &["UPDATE"])]},
        "validations": [{"expression": "request.name == 'policy-probe' || object.spec.replicas < 3",
            "messageExpression": text}],
    });
    let rule = enforce_with(scope, policy, json!({})).await;
    let scale = |replicas: u32| json!({"spec": {"replicas": replicas}});
    widgets.merge("a/scale", &scale(2)).await.is(200);
    assert_eq!(rule.denies(widgets.merge("a/scale", &scale(3)).await), "Scale 2 to 3 autoscaling/Scale widgets/scale");
    widgets.merge("a", &json!({"spec": {"replicas": 4}})).await.is(200);
}

async fn tokens_are_checked(scope: &Scope) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    accounts.create(&json!({"metadata": {"name": "robot"}})).await.is(201);
    let policy = json!({
        "matchConstraints": {"resourceRules": [about("", "serviceaccounts/token", &["CREATE"])]},
        "validations": [{"expression": "request.name == 'policy-probe' || object.spec.expirationSeconds <= 600",
            "messageExpression": "request.kind.kind + ' for ' + request.name"}],
    });
    let rule = enforce_with(scope, policy, json!({})).await;
    let path = accounts.path("robot/token");
    let request = |seconds: u32| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}});
    scope.http().post(&path, &request(600)).await.is(201);
    assert_eq!(rule.denies(scope.http().post(&path, &request(700)).await), "TokenRequest for robot");
}

async fn invalid_objects_are_reported_first(scope: &Scope) {
    let rule = enforce(scope, json!([{"expression": "false", "message": "no"}])).await;
    let maps = scope.config_maps().await;
    let status = maps.create(&config_map("a", json!({"not a key": ""}))).await.refused(422, "Invalid");
    assert!(!status["message"].as_str().unwrap().contains("ValidatingAdmissionPolicy"), "{status}");
    assert_eq!(rule.denies(maps.create(&config_map("a", json!({"key": ""}))).await), "no");
}

async fn policies_are_not_about_policies(scope: &Scope) {
    // Not about all of the group, since other cases of the run create webhook configurations.
    let kinds = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
    let everything = json!({
        "matchConstraints": {"resourceRules": kinds.map(|kind| about("admissionregistration.k8s.io", kind, &["*"]))},
        "validations": [{"expression": "false", "message": "no"}],
    });
    let rule = enforce_with(scope, everything, json!({})).await;
    let name = scope.name("other");
    let spec = json!({"matchConstraints": {"resourceRules": [about("nothing.example.com", "nothing", &["CREATE"])]},
        "validations": [{"expression": "true"}]});
    for (collection, spec) in [(POLICIES, spec), (BINDINGS, json!({"policyName": name, "validationActions": ["Deny"]}))]
    {
        let object: Value = scope.mark(json!({"metadata": {"name": name}, "spec": spec}));
        scope.http().post(collection, &object).await.is(201);
        scope.http().delete(&format!("{collection}/{name}")).await.is(200);
    }
    rule.end().await;
}

async fn policies_are_not_about_reviews(scope: &Scope) {
    let namespace = scope.namespace().await;
    let reviews = json!({
        "matchConstraints": {"resourceRules": [about("authorization.k8s.io", "localsubjectaccessreviews", &["*"])]},
        "validations": [{"expression": "false", "message": "no"}],
    });
    enforce_with(scope, reviews, json!({})).await;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": namespace},
        "spec": {"user": "jane", "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}});
    let path = format!("/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews");
    scope.http().post(&path, &review).await.is(201);
}
