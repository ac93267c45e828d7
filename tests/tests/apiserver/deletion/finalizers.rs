//! Finalizers, grace, and deleting collections.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{names, version},
};

cases! {
    "3.14" an_object_waits_for_its_finalizers;
    "3.14" a_terminating_object_can_be_changed;
    "3.14" no_finalizer_can_be_added_to_a_terminating_object;
    "3.14" removing_the_last_finalizer_deletes_the_object;
    "3.14" removing_the_last_finalizer_with_any_verb_deletes_the_object;
    "3.14" a_deletion_cannot_be_undone;
    "3.14" clients_do_not_set_the_time_of_deletion;
    "3.14" a_grace_period_is_ignored_by_kinds_without_one;
    "3.14" a_terminating_object_keeps_its_name;
    "3.14" deletecollection_respects_selectors;
    "3.14" a_collection_with_finalizers_waits;
    "3.14" an_apply_removes_its_own_finalizer;
}

async fn held(secrets: &Collection, finalizers: &[&str]) -> Value {
    secrets.create(&json!({"metadata": {"name": "a", "finalizers": finalizers}})).await.is(201)
}

fn finalizers(value: Value) -> Value {
    json!({"metadata": {"finalizers": value}})
}

async fn an_object_waits_for_its_finalizers(scope: &Scope) {
    let secrets = scope.secrets().await;
    let created = held(&secrets, &["example.com/hold"]).await;
    let mut events = secrets.watch(&format!("resourceVersion={}", version(&created))).await;
    let waiting = secrets.delete("a").await.is(200);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string(), "{waiting}");
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(secrets.get("a").await.ok(), waiting);
    assert_eq!(events.summaries(1).await, ["MODIFIED a"]);
    secrets.merge("a", &finalizers(json!(null))).await.ok();
    let gone = events.expect().await;
    assert_eq!(gone.summary(), "DELETED a");
    secrets.get("a").await.refused(404, "NotFound");
}

async fn a_terminating_object_can_be_changed(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/hold"]).await;
    let waiting = secrets.delete("a").await.ok();
    let changed = secrets.merge("a", &json!({"stringData": {"x": "1"}})).await.is(200);
    assert_eq!(changed["data"]["x"], "MQ==");
    assert_eq!(changed["metadata"]["deletionTimestamp"], waiting["metadata"]["deletionTimestamp"]);
    secrets.merge("a", &finalizers(json!([]))).await.ok();
}

async fn no_finalizer_can_be_added_to_a_terminating_object(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/one", "example.com/two"]).await;
    secrets.delete("a").await.ok();
    let cause = secrets
        .merge("a", &finalizers(json!(["example.com/one", "example.com/late"])))
        .await
        .invalid("metadata.finalizers");
    let message = cause["message"].as_str().unwrap();
    assert!(message.contains("no new finalizers can be added if the object is being deleted"), "{message}");
    assert!(message.contains("example.com/late"), "{message}");
    let left = secrets.merge("a", &finalizers(json!(["example.com/two"]))).await.is(200);
    assert_eq!(left["metadata"]["finalizers"], json!(["example.com/two"]));
    secrets.merge("a", &finalizers(json!([]))).await.ok();
    secrets.get("a").await.refused(404, "NotFound");
}

async fn removing_the_last_finalizer_deletes_the_object(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/hold"]).await;
    secrets.merge("a", &finalizers(json!([]))).await.ok();
    secrets.get("a").await.is(200);
    secrets.merge("a", &finalizers(json!(["example.com/hold"]))).await.ok();
    secrets.delete("a").await.ok();
    let last = secrets.merge("a", &finalizers(json!([]))).await.is(200);
    assert_eq!(last["metadata"]["name"], "a", "the answer shows the last state");
    secrets.get("a").await.refused(404, "NotFound");
    held(&secrets, &[]).await;
}

async fn removing_the_last_finalizer_with_any_verb_deletes_the_object(scope: &Scope) {
    let secrets = scope.secrets().await;
    for verb in ["put", "merge", "json", "strategic"] {
        held(&secrets, &["example.com/hold"]).await;
        let mut waiting = secrets.delete("a").await.ok();
        match verb {
            "put" => {
                waiting["metadata"].as_object_mut().unwrap().remove("finalizers");
                secrets.put("a", &waiting).await.ok();
            }
            "merge" => drop(secrets.merge("a", &finalizers(json!(null))).await.ok()),
            "json" => {
                secrets.json_patch("a", &json!([{"op": "remove", "path": "/metadata/finalizers"}])).await.ok();
            }
            _ => drop(
                secrets
                    .strategic("a", &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}))
                    .await
                    .ok(),
            ),
        }
        secrets.get("a").await.refused(404, "NotFound");
    }
}

async fn a_deletion_cannot_be_undone(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/hold"]).await;
    let mut waiting = secrets.delete("a").await.ok();
    let time = waiting["metadata"]["deletionTimestamp"].clone();
    waiting["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
    waiting["stringData"] = json!({"x": "1"});
    let changed = secrets.put("a", &waiting).await.is(200);
    assert_eq!(changed["metadata"]["deletionTimestamp"], time);
    secrets.merge("a", &finalizers(json!([]))).await.ok();
}

async fn clients_do_not_set_the_time_of_deletion(scope: &Scope) {
    let secrets = scope.secrets().await;
    let object = json!({"metadata": {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}});
    let created = secrets.create(&object).await.is(201);
    assert_eq!(created["metadata"].get("deletionTimestamp"), None);
    assert_eq!(created["metadata"].get("deletionGracePeriodSeconds"), None);
}

async fn a_grace_period_is_ignored_by_kinds_without_one(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &[]).await;
    secrets.delete_with("a", &json!({"gracePeriodSeconds": 30})).await.is(200);
    secrets.get("a").await.refused(404, "NotFound");
    held(&secrets, &[]).await;
    secrets.delete("a?gracePeriodSeconds=0").await.is(200);
    secrets.get("a").await.refused(404, "NotFound");
}

async fn a_terminating_object_keeps_its_name(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/hold"]).await;
    secrets.delete("a").await.ok();
    let status = secrets.create(&json!({"metadata": {"name": "a"}})).await.refused(409, "AlreadyExists");
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("object is being deleted: "), "{message}");
    secrets.merge("a", &finalizers(json!([]))).await.ok();
}

async fn deletecollection_respects_selectors(scope: &Scope) {
    let secrets = scope.secrets().await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")] {
        secrets.create(&json!({"metadata": {"name": name, "labels": {"app": app}}})).await.ok();
    }
    secrets.delete_all("labelSelector=app=x&fieldSelector=metadata.name!=d").await.is(200);
    assert_eq!(names(&secrets.list("").await.ok()), ["b", "d"]);
    secrets.delete_all("").await.is(200);
    assert!(names(&secrets.list("").await.ok()).is_empty());
}

async fn a_collection_with_finalizers_waits(scope: &Scope) {
    let secrets = scope.secrets().await;
    held(&secrets, &["example.com/hold"]).await;
    secrets.create(&json!({"metadata": {"name": "b"}})).await.ok();
    secrets.delete_all("").await.is(200);
    let list = secrets.list("").await.ok();
    assert_eq!(names(&list), ["a"]);
    assert!(list["items"][0]["metadata"]["deletionTimestamp"].is_string());
    secrets.merge("a", &finalizers(json!([]))).await.ok();
}

async fn an_apply_removes_its_own_finalizer(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    widgets.apply("a", "one", &object).await.is(201);
    widgets.delete("a").await.is(200);
    widgets.apply("a", "one", &scope.widget("a", json!({}))).await.is(200);
    widgets.get("a").await.refused(404, "NotFound");
}
