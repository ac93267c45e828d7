//! Resource versions grow; an update with an old one is a conflict.

use serde_json::json;

use crate::support::{
    Scope, cases,
    objects::{config_map, ingress, labelled, version},
};

cases! {
    "3.01" versions_grow_with_every_write;
    "3.01" a_list_is_at_least_as_new_as_its_items;
    "3.01" a_deletion_is_a_write;
    "3.01" an_update_with_an_old_version_is_a_conflict;
    "3.01" an_update_without_a_version_is_unconditional_if_the_kind_allows;
    "3.01" an_update_without_a_version_is_refused_elsewhere;
    "3.01" a_patch_with_an_old_version_is_a_conflict;
    "3.01" an_apply_with_an_old_version_is_a_conflict;
    "3.01" a_non_numeric_version_is_refused;
    "3.01" a_new_object_must_not_have_a_version;
    "3.01" identity_cannot_be_changed;
    "4" status_updates_respect_versions;
}

fn number(object: &serde_json::Value) -> u64 {
    version(object).parse().expect("resource versions are numbers")
}

async fn versions_grow_with_every_write(scope: &Scope) {
    let maps = scope.config_maps().await;
    let first = maps.create(&config_map("a", json!({}))).await.is(201);
    let second = maps.create(&config_map("b", json!({}))).await.is(201);
    let third = maps.merge("a", &json!({"data": {"x": "1"}})).await.ok();
    let other_kind = scope.secrets().await;
    let fourth = other_kind.create(&json!({"metadata": {"name": "a"}})).await.is(201);
    assert!(number(&first) < number(&second), "{first} {second}");
    assert!(number(&second) < number(&third), "{second} {third}");
    assert!(number(&third) < number(&fourth), "one sequence for all kinds: {third} {fourth}");
}

async fn a_list_is_at_least_as_new_as_its_items(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    maps.merge("a", &json!({"data": {"x": "1"}})).await.ok();
    let list = maps.list("").await.ok();
    let newest = list["items"].as_array().unwrap().iter().map(number).max().unwrap();
    assert!(number(&list) >= newest, "{} {newest}", version(&list));
}

async fn a_deletion_is_a_write(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&labelled(config_map("a", json!({})), json!({"case": "yes"}))).await.ok();
    let mut events = maps.watch(&format!("labelSelector=case=yes&resourceVersion={}", version(&created))).await;
    maps.delete("a").await.ok();
    let deleted = events.expect().await;
    assert_eq!(deleted.summary(), "DELETED a");
    assert!(number(&deleted.object) > number(&created));
}

async fn an_update_with_an_old_version_is_a_conflict(scope: &Scope) {
    let maps = scope.config_maps().await;
    let read = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    maps.merge("a", &json!({"data": {"x": "2"}})).await.ok();
    let mut update = read.clone();
    update["data"]["x"] = "3".into();
    let status = maps.put("a", &update).await.refused(409, "Conflict");
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the \
         latest version and try again"
    );
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(maps.get("a").await.ok()["data"]["x"], "2");
}

async fn an_update_without_a_version_is_unconditional_if_the_kind_allows(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let replaced = maps.put("a", &config_map("a", json!({"y": "2"}))).await.is(200);
    assert_eq!(replaced["data"], json!({"y": "2"}));
    let ingresses = scope.ingresses().await;
    ingresses.create(&ingress("a")).await.ok();
    ingresses.put("a", &ingress("a")).await.is(200);
}

async fn an_update_without_a_version_is_refused_elsewhere(scope: &Scope) {
    let widgets = scope.widgets().await;
    let widget = scope.widget("a", json!({"size": 2}));
    widgets.create(&widget).await.is(201);
    let cause = widgets.put("a", &widget).await.invalid("metadata.resourceVersion");
    assert_eq!(cause["message"], "Invalid value: 0: must be specified for an update");

    let leases = scope.collection("coordination.k8s.io/v1", "leases").await;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}});
    leases.create(&lease).await.is(201);
    leases.put("a", &lease).await.invalid("metadata.resourceVersion");
}

async fn a_patch_with_an_old_version_is_a_conflict(scope: &Scope) {
    for collection in [scope.config_maps().await, scope.widgets().await] {
        let body = json!({"metadata": {"name": "a"}});
        let body = if collection.path("").contains("widgets") { scope.widget("a", json!({})) } else { body };
        let old = collection.create(&body).await.ok();
        let label =
            |version: &str, value: &str| json!({"metadata": {"resourceVersion": version, "labels": {"x": value}}});
        let new = collection.merge("a", &label(version(&old), "1")).await.is(200);
        collection.merge("a", &label(version(&old), "2")).await.refused(409, "Conflict");
        collection.merge("a", &label(version(&new), "2")).await.is(200);
    }
}

async fn an_apply_with_an_old_version_is_a_conflict(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut applied = config_map("a", json!({"x": "1"}));
    let old = maps.apply("a", "one", &applied).await.is(201);
    maps.merge("a", &json!({"data": {"y": "2"}})).await.ok();
    applied["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    applied["data"]["x"] = "2".into();
    maps.apply("a", "one", &applied).await.refused(409, "Conflict");
}

async fn a_non_numeric_version_is_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = maps.create(&config_map("a", json!({}))).await.ok();
    object["metadata"]["resourceVersion"] = "new".into();
    let answer = maps.put("a", &object).await;
    assert!(answer.status >= 400, "{} {}", answer.status, answer.text);
}

async fn a_new_object_must_not_have_a_version(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({}));
    object["metadata"]["resourceVersion"] = "1".into();
    let answer = maps.create(&object).await;
    assert!(answer.status >= 400, "{} {}", answer.status, answer.text);
    assert!(answer.text.contains("resourceVersion should not be set on objects to be created"), "{}", answer.text);
    assert_eq!(maps.get("a").await.status, 404);
}

async fn identity_cannot_be_changed(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({}))).await.ok();
    let mut other = created.clone();
    other["metadata"]["uid"] = "another".into();
    let status = maps.put("a", &other).await.refused(409, "Conflict");
    assert!(
        status["message"].as_str().unwrap().contains("Precondition failed: UID in precondition: another"),
        "{status}"
    );

    let mut blank = created.clone();
    blank["metadata"].as_object_mut().unwrap().remove("uid");
    blank["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let kept = maps.put("a", &blank).await.ok();
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(kept["metadata"][field], created["metadata"][field], "{field}");
    }
}

async fn status_updates_respect_versions(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut old = widgets.create(&scope.widget("a", json!({}))).await.ok();
    widgets.merge("a", &json!({"spec": {"size": 9}})).await.ok();
    old["status"] = json!({"phase": "Done"});
    widgets.put("a/status", &old).await.refused(409, "Conflict");
    assert!(widgets.get("a").await.ok().get("status").is_none());
}
