//! Owner references: cascading, orphaning and foreground deletion.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{self, owner},
};

cases! {
    "3.15" dependants_are_deleted_after_their_owner: controllers;
    "3.15" foreground_deletion_deletes_dependants_first: controllers;
    "3.15" foreground_deletion_does_not_wait_for_nonblocking_dependants: controllers;
    "3.15" orphans_stay_without_their_owner_reference: controllers;
    "3.15" one_of_two_owners_keeps_an_object: controllers;
    "3.15" dependants_of_a_nonexistent_owner_are_deleted: controllers;
    "3.15" an_owner_with_another_uid_does_not_count: controllers;
    "3.15" an_owner_in_another_namespace_counts_as_absent: controllers;
    "3.15" a_cluster_scoped_owner_counts_in_every_namespace: controllers;
    "3.15" custom_objects_own_and_are_owned: controllers;
    "3.15" collections_are_deleted_with_their_dependants: controllers;
    "3.15" foreground_deletion_is_a_finalizer;
    "3.15" orphaning_is_a_finalizer;
    "3.15" one_policy_at_a_time;
    "3.15" there_is_one_controller;
    "3.15" references_are_complete;
}

fn owned(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

fn blocking(object: &Value) -> Value {
    let mut reference = owner(object);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

/// A Secret without `apiVersion` and `kind`, which list responses omit and single responses include.
async fn plain(secrets: &Collection, name: &str) -> Value {
    secrets.create(&json!({"metadata": {"name": name}})).await.is(201)
}

/// Waits until the garbage collector has processed all earlier changes: it deletes an object whose owner never existed.
async fn wait_for_garbage_collector(secrets: &Collection) {
    let nonexistent =
        json!({"apiVersion": "v1", "kind": "Secret", "name": "nobody", "uid": "5a4e1ea9-0000-4000-8000-000000000001"});
    secrets.create(&owned("marker", &[nonexistent])).await.is(201);
    secrets.until_gone("marker").await;
}

async fn dependants_are_deleted_after_their_owner(scope: &Scope) {
    let secrets = scope.secrets().await;
    let first = plain(&secrets, "owner").await;
    let child = secrets.create(&owned("child", &[owner(&first)])).await.ok();
    secrets.create(&owned("grandchild", &[owner(&child)])).await.ok();
    plain(&secrets, "bystander").await;
    secrets.delete_with("owner", &json!({"propagationPolicy": "Background"})).await.is(200);
    secrets.get("owner").await.refused(404, "NotFound");
    secrets.until_gone("child").await;
    secrets.until_gone("grandchild").await;
    secrets.get("bystander").await.is(200);
}

async fn foreground_deletion_deletes_dependants_first(scope: &Scope) {
    let secrets = scope.secrets().await;
    let first = plain(&secrets, "owner").await;
    let mut child = owned("child", &[blocking(&first)]);
    child["metadata"]["finalizers"] = json!(["example.com/slow"]);
    secrets.create(&child).await.ok();
    let waiting = secrets.delete_with("owner", &json!({"propagationPolicy": "Foreground"})).await.ok();
    assert!(waiting["metadata"]["finalizers"].to_string().contains("foregroundDeletion"), "{waiting}");
    secrets.until("child", "marked for deletion", |child| child["metadata"]["deletionTimestamp"].is_string()).await;
    wait_for_garbage_collector(&secrets).await;
    secrets.get("owner").await.is(200);
    secrets.merge("child", &json!({"metadata": {"finalizers": null}})).await.ok();
    secrets.until_gone("owner").await;
    secrets.get("child").await.refused(404, "NotFound");
}

async fn foreground_deletion_does_not_wait_for_nonblocking_dependants(scope: &Scope) {
    let secrets = scope.secrets().await;
    let first = plain(&secrets, "owner").await;
    let mut child = owned("child", &[owner(&first)]);
    child["metadata"]["finalizers"] = json!(["example.com/slow"]);
    secrets.create(&child).await.ok();
    secrets.delete_with("owner", &json!({"propagationPolicy": "Foreground"})).await.ok();
    secrets.until_gone("owner").await;
    secrets.until("child", "marked for deletion", |child| child["metadata"]["deletionTimestamp"].is_string()).await;
    secrets.merge("child", &json!({"metadata": {"finalizers": null}})).await.ok();
    secrets.until_gone("child").await;
}

async fn orphans_stay_without_their_owner_reference(scope: &Scope) {
    let secrets = scope.secrets().await;
    let first = plain(&secrets, "owner").await;
    let other = plain(&secrets, "other").await;
    secrets.create(&owned("child", &[owner(&first)])).await.ok();
    secrets.create(&owned("shared", &[owner(&first), owner(&other)])).await.ok();
    secrets.delete_with("owner", &json!({"propagationPolicy": "Orphan"})).await.ok();
    secrets.until_gone("owner").await;
    let child = secrets.get("child").await.is(200);
    assert_eq!(child["metadata"].get("ownerReferences"), None, "{child}");
    let shared = secrets.get("shared").await.is(200);
    assert_eq!(shared["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    wait_for_garbage_collector(&secrets).await;
    secrets.get("child").await.is(200);
}

async fn one_of_two_owners_keeps_an_object(scope: &Scope) {
    let secrets = scope.secrets().await;
    let (first, second) = (plain(&secrets, "first").await, plain(&secrets, "second").await);
    secrets.create(&owned("child", &[owner(&first), owner(&second)])).await.ok();
    secrets.delete("first").await.ok();
    let left = |child: &Value| child["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1);
    secrets.until("child", "owned by one", left).await;
    secrets.delete("second").await.ok();
    secrets.until_gone("child").await;
}

async fn dependants_of_a_nonexistent_owner_are_deleted(scope: &Scope) {
    let secrets = scope.secrets().await;
    wait_for_garbage_collector(&secrets).await;
}

async fn an_owner_with_another_uid_does_not_count(scope: &Scope) {
    let secrets = scope.secrets().await;
    let first = plain(&secrets, "owner").await;
    secrets.delete("owner").await.ok();
    plain(&secrets, "owner").await;
    secrets.create(&owned("child", &[owner(&first)])).await.ok();
    secrets.until_gone("child").await;
    secrets.get("owner").await.is(200);
}

async fn an_owner_in_another_namespace_counts_as_absent(scope: &Scope) {
    let other = scope.another_namespace("elsewhere").await;
    let elsewhere = Collection::namespaced(scope.http(), "v1", &other, "secrets");
    let secrets = scope.secrets().await;
    let foreign = plain(&elsewhere, "owner").await;
    secrets.create(&owned("child", &[owner(&foreign)])).await.ok();
    secrets.until_gone("child").await;
    elsewhere.get("owner").await.is(200);
}

async fn a_cluster_scoped_owner_counts_in_every_namespace(scope: &Scope) {
    let secrets = scope.secrets().await;
    let classes = Collection::cluster(scope.http(), "scheduling.k8s.io/v1", "priorityclasses");
    let name = scope.name("owner");
    let class =
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1});
    let class = classes.create(&class).await.is(201);
    scope.remove_later(classes.path(&name));
    secrets.create(&owned("child", &[owner(&class)])).await.ok();
    wait_for_garbage_collector(&secrets).await;
    secrets.get("child").await.is(200);
    classes.delete(&name).await.ok();
    secrets.until_gone("child").await;
}

async fn custom_objects_own_and_are_owned(scope: &Scope) {
    let widgets = scope.widgets().await;
    let secrets = scope.secrets().await;
    let widget = widgets.create(&scope.widget("owner", json!({}))).await.ok();
    secrets.create(&owned("child", &[owner(&widget)])).await.ok();
    let mut other = scope.widget("other", json!({}));
    other["metadata"]["ownerReferences"] = json!([owner(&widget)]);
    widgets.create(&other).await.ok();
    widgets.delete("owner").await.ok();
    secrets.until_gone("child").await;
    widgets.until_gone("other").await;
}

async fn collections_are_deleted_with_their_dependants(scope: &Scope) {
    let secrets = scope.secrets().await;
    let maps = scope.config_maps().await;
    for name in ["a", "b"] {
        let map = maps.create(&json!({"metadata": {"name": name, "labels": {"case": "yes"}}})).await.ok();
        secrets.create(&owned(name, &[owner(&map)])).await.ok();
    }
    maps.delete_all("labelSelector=case=yes&propagationPolicy=Background").await.ok();
    for name in ["a", "b"] {
        secrets.until_gone(name).await;
    }
}

async fn foreground_deletion_is_a_finalizer(scope: &Scope) {
    let secrets = scope.secrets().await;
    let mut held = owned("a", &[]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    secrets.create(&held).await.ok();
    let waiting = secrets.delete_with("a", &json!({"propagationPolicy": "Foreground"})).await.ok();
    let finalizers: Vec<&str> =
        waiting["metadata"]["finalizers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(finalizers.contains(&"foregroundDeletion") && finalizers.contains(&"example.com/hold"), "{finalizers:?}");
    secrets.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn orphaning_is_a_finalizer(scope: &Scope) {
    let secrets = scope.secrets().await;
    let mut held = owned("a", &[]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    secrets.create(&held).await.ok();
    let waiting = secrets.delete_with("a", &json!({"orphanDependents": true})).await.ok();
    assert!(waiting["metadata"]["finalizers"].to_string().contains("\"orphan\""), "{waiting}");
    secrets.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn one_policy_at_a_time(scope: &Scope) {
    let secrets = scope.secrets().await;
    plain(&secrets, "a").await;
    secrets.delete_with("a", &json!({"propagationPolicy": "Sideways"})).await.invalid("propagationPolicy");
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    secrets.delete_with("a", &both).await.invalid("propagationPolicy");
    secrets.get("a").await.is(200);
}

async fn there_is_one_controller(scope: &Scope) {
    let secrets = scope.secrets().await;
    let (first, second) = (plain(&secrets, "first").await, plain(&secrets, "second").await);
    let controller = |object: &Value| {
        let mut reference = owner(object);
        reference["controller"] = true.into();
        reference
    };
    secrets.create(&owned("a", &[controller(&first), controller(&second)])).await.invalid("metadata.ownerReferences");
    secrets.create(&owned("a", &[controller(&first), owner(&second)])).await.is(201);
}

async fn references_are_complete(scope: &Scope) {
    let secrets = scope.secrets().await;
    let complete = owner(&plain(&secrets, "owner").await);
    for field in ["apiVersion", "kind", "name", "uid"] {
        let mut reference = complete.clone();
        reference[field] = "".into();
        secrets.create(&owned("a", &[reference])).await.invalid(&format!("metadata.ownerReferences.{field}"));
    }
    assert_eq!(objects::names(&secrets.list("").await.ok()), ["owner"]);
}
