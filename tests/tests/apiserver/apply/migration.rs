//! Migration from client-side to server-side apply.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{config_map, entry},
};

cases! {
    "3.09" an_untracked_object_gets_a_before_first_apply_entry;
    "3.09" kubectl_takes_over_from_its_client_side_self;
    "3.09" other_managers_do_not_take_over_from_kubectl;
    "3.09" the_last_applied_configuration_is_kept_up;
    "3.09" a_field_that_client_side_apply_owned_can_be_removed;
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What `kubectl apply` sends: the object with its own JSON in an annotation.
fn client_side(object: &Value) -> Value {
    let mut annotated = object.clone();
    annotated["metadata"]["annotations"] = json!({LAST_APPLIED: format!("{object}\n")});
    annotated
}

async fn an_untracked_object_gets_a_before_first_apply_entry(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({"x": "1"}));
    object["metadata"]["managedFields"] = json!([{}]);
    maps.create(&object).await.ok();
    maps.merge("a", &json!({"metadata": {"managedFields": [{}]}})).await.ok();
    let object = maps.apply("a", "one", &config_map("a", json!({"y": "2"}))).await.is(200);
    assert_eq!(object["data"], json!({"x": "1", "y": "2"}));
    assert!(entry(&object, "before-first-apply", "Update", "").is_some(), "{object}");
    let object = maps.apply("a", "one", &config_map("a", json!({"y": "2", "x": "1"}))).await.is(200);
    assert_eq!(object["data"], json!({"x": "1", "y": "2"}));
}

async fn kubectl_takes_over_from_its_client_side_self(scope: &Scope) {
    let maps = scope.config_maps().await;
    let object = client_side(&config_map("a", json!({"x": "1"})));
    maps.create_with("fieldManager=kubectl-client-side-apply", &object).await.ok();
    let object = maps.apply("a", "kubectl", &config_map("a", json!({"x": "2"}))).await.is(200);
    assert_eq!(object["data"]["x"], "2", "no conflict with what kubectl itself applied before");
    assert!(entry(&object, "kubectl", "Apply", "").is_some());
}

async fn other_managers_do_not_take_over_from_kubectl(scope: &Scope) {
    let maps = scope.config_maps().await;
    let object = client_side(&config_map("a", json!({"x": "1"})));
    maps.create_with("fieldManager=kubectl-client-side-apply", &object).await.ok();
    let status = maps.apply("a", "controller", &config_map("a", json!({"x": "2"}))).await.refused(409, "Conflict");
    assert_eq!(
        status["message"],
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.x"#
    );
    // A field outside of the last applied configuration is a conflict for kubectl, too.
    maps.merge("a?fieldManager=hand", &json!({"data": {"y": "1"}})).await.ok();
    let status =
        maps.apply("a", "kubectl", &config_map("a", json!({"x": "2", "y": "2"}))).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".data.y");
}

async fn the_last_applied_configuration_is_kept_up(scope: &Scope) {
    let maps = scope.config_maps().await;
    let object = client_side(&config_map("a", json!({"x": "1"})));
    maps.create_with("fieldManager=kubectl-client-side-apply", &object).await.ok();
    let object = maps.apply("a", "kubectl", &config_map("a", json!({"x": "2"}))).await.is(200);
    let last: Value = serde_json::from_str(object["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap()).unwrap();
    assert_eq!(last["data"], json!({"x": "2"}), "so that client-side apply can continue");
    let owned = entry(&object, "kubectl", "Apply", "").unwrap()["fieldsV1"].to_string();
    assert!(!owned.contains(LAST_APPLIED), "{owned}");
}

async fn a_field_that_client_side_apply_owned_can_be_removed(scope: &Scope) {
    let maps = scope.config_maps().await;
    let object = client_side(&config_map("a", json!({"x": "1", "y": "1"})));
    let object = maps.create_with("fieldManager=kubectl-client-side-apply", &object).await.ok();
    // The migration that kubectl makes: the entry becomes one of `kubectl` by `Apply`.
    let patch = json!([
        {"op": "test", "path": "/metadata/managedFields/0/manager", "value": "kubectl-client-side-apply"},
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "kubectl"},
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
    ]);
    let object = maps.json_patch("a", &patch).await.is(200);
    assert!(entry(&object, "kubectl", "Apply", "").is_some(), "{object}");
    let object = maps.apply("a", "kubectl", &config_map("a", json!({"x": "1"}))).await.is(200);
    assert_eq!(object["data"], json!({"x": "1"}));
}
