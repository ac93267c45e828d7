//! Objects of a stage that are applied one after the other.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use chandler_rollout::Progress;
use serde_json::{Value, json};

use super::{
    gates::{job, waiting},
    support::{Stage, config_map, config_map_key, deployment, eventually, ox, oxen, release},
};

/// The object at this place of a sequence.
fn at(place: &str, object: Value) -> (u32, Value) {
    (10, annotated("chandler.dev/sequence", place, object))
}

fn annotated(name: &str, value: &str, mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut).unwrap();
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations.as_object_mut().unwrap().insert(name.to_owned(), json!(value));
    object
}

fn names(writes: &[String]) -> Vec<&str> {
    writes.iter().filter(|write| write.starts_with("POST")).filter_map(|write| write.rsplit('/').next()).collect()
}

#[tokio::test]
async fn the_objects_of_a_sequence_are_created_in_its_order() {
    let stage = Stage::set().await;
    // By kind the ConfigMap would be first, and the Deployment last.
    let objects = [
        at("olm/1", deployment("web", "example.com/web:v1")),
        at(
            "olm/2",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        ),
        at("olm/10", config_map("settings", json!({}))),
    ];
    stage.complete(&release(&objects)).await;
    assert_eq!(names(&stage.writes()), ["deployments", "services", "configmaps"]);
    // An installed release causes no writes, and repairs need no order.
    let live = stage.live(&config_map_key("settings")).await.unwrap();
    assert_eq!(live["metadata"]["annotations"].get("chandler.dev/sequence"), None);
    stage.complete(&release(&objects)).await;
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test]
async fn a_sequence_that_waits_does_not_hold_up_another_one() {
    let stage = Stage::set().await;
    let objects = [
        at("a/0", job("first", json!({}))),
        at("a/1", config_map("after-the-job", json!({}))),
        at("b/0", deployment("broken", "registry.invalid/web:v1")),
        at("b/1", config_map("beside-the-workload", json!({}))),
        (20, config_map("next-level", json!({}))),
    ];
    let first = waiting(stage.advance(&release(&objects)).await);
    assert!(first.iter().any(|message| message.contains("Kind=Job")), "{first:?}");
    let written = stage.writes();
    assert_eq!(names(&written).len(), 3, "{written:?}");
    assert!(stage.live(&config_map_key("beside-the-workload")).await.is_some());
    assert!(stage.live(&config_map_key("after-the-job")).await.is_none());
}

#[tokio::test]
async fn a_sequence_waits_for_the_kind_that_another_one_defines() {
    let stage = Stage::set().await;
    let objects =
        [at("a/0", ox("one", json!({}))), at("b/0", config_map("before", json!({}))), at("b/1", oxen(json!({})))];
    let release = release(&objects);
    let messages = waiting(stage.advance(&release).await);
    assert!(
        messages.iter().any(|message| message.contains("Ox in version example.com/v1 is not served yet")),
        "{messages:?}"
    );
    eventually(async || stage.advance(&release).await.unwrap().is_complete()).await;
    assert_eq!(names(&stage.writes()), ["configmaps", "customresourcedefinitions", "oxen"]);
}

#[tokio::test]
async fn an_object_that_is_refused_does_not_stop_other_sequences() {
    let stage = Stage::set().await;
    // The namespace of another sequence.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}});
    let mut inside = config_map("inside", json!({}));
    inside["metadata"]["namespace"] = json!("harbour");
    let objects = [at("a/0", inside), at("b/0", config_map("before", json!({}))), at("b/1", namespace)];
    match stage.advance(&release(&objects)).await.unwrap() {
        Progress::Complete { changes, .. } => assert_eq!(changes.created.len(), 3),
        waiting @ Progress::Waiting { .. } => panic!("{waiting:?}"),
    }
    assert_eq!(names(&stage.writes()), ["configmaps", "namespaces", "configmaps"]);
}

#[tokio::test]
async fn an_object_that_is_only_created_is_never_changed() {
    let stage = Stage::set().await;
    let object = |value: &str| {
        let object = config_map("settings", json!({"a": value}));
        release(&[(0, annotated("chandler.dev/create-only", "true", object))])
    };
    stage.complete(&object("1")).await;
    stage.meddle(&config_map_key("settings"), json!({"data": {"a": "of the user"}})).await;
    stage.writes();
    stage.complete(&object("1")).await;
    stage.complete(&object("2")).await;
    assert!(!stage.writes().iter().any(|write| write.contains("configmaps")));
    assert_eq!(stage.live(&config_map_key("settings")).await.unwrap()["data"]["a"], "of the user");
}
