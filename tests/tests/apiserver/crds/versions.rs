//! Several versions of one kind.

use serde_json::{Value, json};

use crate::support::{
    Collection, JSON_PATCH, Scope, cases,
    objects::{self, CRDS, version},
};

cases! {
    "3.18" an_object_can_be_read_in_every_version;
    "3.18" each_version_has_its_schema;
    "3.18" the_preferred_version_is_the_most_stable;
    "3.18" stored_versions_are_recorded;
    "3.18" a_stored_version_cannot_be_removed;
    "3.18" deprecated_versions_warn: differs("reading a deprecated version does not warn, and the warning names no successor");
    "3.18" watches_and_lists_use_the_requested_version;
    "3.18" fields_unknown_to_a_version_are_pruned;
}

fn versions(scope: &Scope) -> Value {
    let schema = |fields: Value| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields}}}})
    };
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["versions"] = json!([
        {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
            "schema": schema(json!({"color": {"type": "string"}, "size": {"type": "integer", "maximum": 5}}))},
        {"name": "v1", "served": true, "storage": true,
            "schema": schema(json!({"color": {"type": "string"}, "size": {"type": "integer", "maximum": 10}, "new": {"type": "string"}}))},
        {"name": "v2alpha1", "served": true, "storage": false, "deprecated": true, "deprecationWarning": "use something else",
            "schema": schema(json!({"color": {"type": "string"}, "size": {"type": "integer"}}))},
    ]);
    crd
}

async fn collections(scope: &Scope) -> [Collection; 3] {
    scope.create_crd(&versions(scope)).await;
    let of = |version: &'static str| async move {
        scope.collection(&format!("{}/{version}", scope.group()), "widgets").await
    };
    [of("v1beta1").await, of("v1").await, of("v2alpha1").await]
}

fn widget(scope: &Scope, version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{}/{version}", scope.group()), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn an_object_can_be_read_in_every_version(scope: &Scope) {
    let [old, new, next] = collections(scope).await;
    let created = old.create(&widget(scope, "v1beta1", "a", json!({"color": "red"}))).await.is(201);
    for (collection, version) in [(old, "v1beta1"), (new, "v1"), (next, "v2alpha1")] {
        let read = collection.get("a").await.ok();
        assert_eq!(read["apiVersion"], format!("{}/{version}", scope.group()));
        assert_eq!((&read["spec"], &read["metadata"]), (&created["spec"], &created["metadata"]), "{version}");
    }
}

async fn each_version_has_its_schema(scope: &Scope) {
    let [old, new, _] = collections(scope).await;
    old.create(&widget(scope, "v1beta1", "a", json!({"size": 6}))).await.invalid("spec.size");
    new.create(&widget(scope, "v1", "a", json!({"size": 6}))).await.is(201);
    old.create(&widget(scope, "v1", "b", json!({}))).await.refused(400, "BadRequest");
}

async fn the_preferred_version_is_the_most_stable(scope: &Scope) {
    collections(scope).await;
    let path = format!("/apis/{}", scope.group());
    let group = scope
        .http()
        .until(&path, "there", |answer| answer.body["versions"].as_array().is_some_and(|all| all.len() == 3));
    let group = group.await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let order: Vec<&str> =
        group["versions"].as_array().unwrap().iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(order, ["v1", "v1beta1", "v2alpha1"]);
}

async fn stored_versions_are_recorded(scope: &Scope) {
    collections(scope).await;
    let path = format!("{CRDS}/widgets.{}", scope.group());
    let switch = json!([{"op": "replace", "path": "/spec/versions/1/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true}]);
    let switched = scope.http().patch(&path, JSON_PATCH, &switch).await.ok();
    assert_eq!(switched["status"]["storedVersions"], json!(["v1", "v1beta1"]));
}

async fn a_stored_version_cannot_be_removed(scope: &Scope) {
    collections(scope).await;
    let path = format!("{CRDS}/widgets.{}", scope.group());
    let remove = json!([{"op": "remove", "path": "/spec/versions/1"},
        {"op": "replace", "path": "/spec/versions/0/storage", "value": true}]);
    let cause = scope.http().patch(&path, JSON_PATCH, &remove).await.invalid("status.storedVersions[0]");
    assert!(cause["message"].as_str().unwrap().contains("missing from spec.versions"), "{cause}");
}

async fn deprecated_versions_warn(scope: &Scope) {
    let [old, new, next] = collections(scope).await;
    let group = scope.group();
    let expected = format!("{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget");
    assert_eq!(old.list("").await.warnings(), [expected]);
    assert_eq!(new.list("").await.warnings(), Vec::<String>::new());
    assert_eq!(next.list("").await.warnings(), ["use something else"]);
    let created = old.create(&widget(scope, "v1beta1", "a", json!({}))).await;
    assert_eq!(created.warnings().len(), 1);
}

async fn watches_and_lists_use_the_requested_version(scope: &Scope) {
    let [old, new, _] = collections(scope).await;
    let from = version(&new.list("").await.ok()).to_owned();
    new.create(&widget(scope, "v1", "a", json!({"color": "red"}))).await.ok();
    let mut events = old.watch(&format!("resourceVersion={from}")).await;
    let wanted = format!("{}/v1beta1", scope.group());
    assert_eq!(events.expect().await.object["apiVersion"], wanted);
    let list = old.list("").await.ok();
    assert_eq!((&list["apiVersion"], &list["items"][0]["apiVersion"]), (&json!(wanted), &json!(wanted)));
}

async fn fields_unknown_to_a_version_are_pruned(scope: &Scope) {
    let [old, new, _] = collections(scope).await;
    new.create(&widget(scope, "v1", "a", json!({"new": "x", "color": "red"}))).await.ok();
    let read = old.get("a").await.ok();
    assert_eq!(read["spec"], json!({"color": "red"}));
    assert_eq!(new.get("a").await.ok()["spec"], json!({"new": "x", "color": "red"}));
}
