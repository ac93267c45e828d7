//! Requirements of apply requests, and creation by apply.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    APPLY, Scope, cases,
    objects::{config_map, deployment, entry},
};

cases! {
    "3.09" apply_creates;
    "3.09" apply_reads_yaml;
    "3.09" a_manager_is_required;
    "3.09" managed_fields_are_refused;
    "3.09" kind_and_version_are_required;
    "3.09" other_versions_and_kinds_are_refused;
    "3.09" a_uid_creates_nothing;
    "3.09" an_apply_does_not_generate_names;
    "3.09" unknown_fields_are_refused;
    "3.09" an_apply_is_validated_as_a_whole;
    "3.09" the_stored_object_must_match_its_type;
    "3.09" apply_through_scale_owns_replicas: differs("the scale is not written by server-side apply");
}

async fn apply_creates(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(201);
    assert!(created["metadata"]["uid"].is_string() && created["metadata"]["resourceVersion"].is_string());
    assert_eq!(maps.get("a").await.ok(), created);
    let unnamed = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}});
    maps.apply("b", "one", &unnamed).await.refused(400, "BadRequest");
}

async fn apply_reads_yaml(scope: &Scope) {
    let maps = scope.config_maps().await;
    let yaml = "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: '1'\n  z: |\n    two\n    lines\n";
    let path = maps.path("a?fieldManager=one");
    let created = scope.http().send(Method::PATCH, &path, APPLY, yaml.into()).await.is(201);
    assert_eq!(created["data"], json!({"x": "1", "z": "two\nlines\n"}));
    let answer = scope.http().send(Method::PATCH, &path, APPLY, "{unclosed".into()).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
}

async fn a_manager_is_required(scope: &Scope) {
    let maps = scope.config_maps().await;
    let cause = scope.http().patch(&maps.path("a"), APPLY, &config_map("a", json!({}))).await.invalid("fieldManager");
    assert_eq!(cause["message"], "Required value: is required for apply patch");
    assert_eq!(maps.get("a").await.status, 404);
}

async fn managed_fields_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let live = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let mut object = config_map("a", json!({"x": "1"}));
    object["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    let status = maps.apply("a", "one", &object).await.refused(400, "BadRequest");
    assert_eq!(status["message"], "metadata.managedFields must be nil");
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    widgets.apply("a", "one", &object).await.refused(400, "BadRequest");
}

async fn kind_and_version_are_required(scope: &Scope) {
    let maps = scope.config_maps().await;
    for body in [
        json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
        json!({"apiVersion": "v1", "metadata": {"name": "a"}}),
        json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
    ] {
        let answer = maps.apply("a", "one", &body).await;
        assert!((400..=500).contains(&answer.status), "{body}: {} {}", answer.status, answer.text);
    }
    assert_eq!(maps.get("a").await.status, 404);
}

async fn other_versions_and_kinds_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    for body in [
        json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
    ] {
        let answer = maps.apply("a", "one", &body).await;
        assert!((400..500).contains(&answer.status), "{body}: {} {}", answer.status, answer.text);
    }
}

async fn a_uid_creates_nothing(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({}));
    object["metadata"]["uid"] = "5a4e1ea9-0000-4000-8000-000000000000".into();
    let status = maps.apply("a", "one", &object).await.refused(409, "Conflict");
    assert!(status["message"].as_str().unwrap().contains("uid mismatch"), "{status}");
    maps.create(&config_map("a", json!({}))).await.ok();
    maps.apply("a", "one", &object).await.invalid("metadata.uid");
}

async fn an_apply_does_not_generate_names(scope: &Scope) {
    let maps = scope.config_maps().await;
    let path = maps.path("").trim_end_matches('/').to_owned();
    let answer = scope
        .http()
        .patch(&format!("{path}?fieldManager=one"), APPLY, &json!({"metadata": {"generateName": "a-"}}))
        .await;
    assert_eq!(answer.status, 405, "{}", answer.text);
}

async fn unknown_fields_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({}));
    object["dataa"] = json!({"x": "1"});
    let answer = maps.apply("a?fieldValidation=Strict", "one", &object).await;
    assert!((400..=500).contains(&answer.status) && answer.text.contains("dataa"), "{} {}", answer.status, answer.text);
    let answer = maps
        .apply("a", "one", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": ["x"]}))
        .await;
    assert!((400..=500).contains(&answer.status), "{} {}", answer.status, answer.text);
    assert_eq!(maps.get("a").await.status, 404);
}

async fn an_apply_is_validated_as_a_whole(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.apply("a", "one", &scope.widget("a", json!({"size": 0}))).await.invalid("spec.size");
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    widgets.apply("a?force=true", "one", &scope.widget("a", json!({"size": 101}))).await.invalid("spec.size");
}

async fn apply_through_scale_owns_replicas(scope: &Scope) {
    let deployments = scope.collection("apps/v1", "deployments").await;
    deployments.apply("web", "one", &deployment("web", 0)).await.is(201);
    let scale =
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 1}});
    let status = deployments.apply("web/scale", "scaler", &scale).await.refused(409, "Conflict");
    assert!(status["message"].as_str().unwrap().contains(r#"conflict with "one""#), "{status}");
    let scaled = deployments.apply("web/scale?force=true", "scaler", &scale).await.is(200);
    assert_eq!(scaled["spec"]["replicas"], 1);
    let object = deployments.get("web").await.ok();
    let owned = &entry(&object, "scaler", "Apply", "scale").expect("an entry of the scaler")["fieldsV1"];
    assert_eq!(owned, &json!({"f:spec": {"f:replicas": {}}}));
    deployments.apply("web", "one", &deployment("web", 0)).await.refused(409, "Conflict");
    let mut silent = deployment("web", 0);
    silent["spec"].as_object_mut().unwrap().remove("replicas");
    assert_eq!(deployments.apply("web", "one", &silent).await.is(200)["spec"]["replicas"], 1);
}

async fn the_stored_object_must_match_its_type(scope: &Scope) {
    let account = |secrets: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": secrets});
    let accounts = scope.collection("v1", "serviceaccounts").await;
    accounts.apply("a", "one", &account(json!([{"name": "x"}]))).await.is(201);
    // Updates may omit the key; their fields are then no longer tracked.
    let live = accounts.merge("a", &json!({"secrets": [{"name": "x"}, {"uid": "y"}]})).await.ok();
    assert_eq!(live["metadata"].get("managedFields"), None);
    let status = accounts.apply("a", "one", &account(json!([{"name": "x"}]))).await.is(500);
    let message = status["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("failed to create manager for existing fields: failed to convert new object ("),
        "{message}"
    );
    assert!(
        message.ends_with(
            r#"/v1, Kind=ServiceAccount) to smd typed: .secrets: element 1: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#
        ),
        "{message}"
    );
    // After an update corrects the list, it is tracked from the next apply on.
    accounts.merge("a", &json!({"secrets": [{"name": "z"}]})).await.ok();
    let live = accounts.apply("a", "one", &account(json!([{"name": "x"}]))).await.ok();
    assert_eq!(live["secrets"], json!([{"name": "z"}, {"name": "x"}]));
    assert!(entry(&live, "before-first-apply", "Update", "").is_some(), "{live}");
}
