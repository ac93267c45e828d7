//! Create, update, patch, apply, delete: what they change, what they reject, and what they leave unchanged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use serde_json::{Value, json};

use crate::common::{self, APPLY, CONFIG_MAPS, JSON_PATCH, MERGE, config_map, get, ok, quiet, send, until};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    })
}

#[tokio::test]
async fn the_server_sets_identity_and_refuses_invalid_objects() {
    let cluster = quiet().await;
    let client = cluster.client();
    let created = ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({"x": "1"}))).await;
    assert!(created["metadata"]["uid"].is_string() && created["metadata"]["creationTimestamp"].is_string());
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"].get("generation"), None, "config maps have no generation");

    let again = send(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    assert_eq!((again.0, &again.1["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(again.1["details"], json!({"name": "a", "kind": "configmaps"}));

    let missing = get(&client, &format!("{CONFIG_MAPS}/nope")).await;
    assert_eq!((missing.0, &missing.1["reason"]), (404, &json!("NotFound")));
    assert_eq!(missing.1["message"], r#"configmaps "nope" not found"#);

    let other_kind = send(&client, "POST", CONFIG_MAPS, "", json!({"apiVersion": "v1", "kind": "Secret"})).await;
    assert_eq!(other_kind.0, 400);
    let no_name = send(&client, "POST", CONFIG_MAPS, "", json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    assert_eq!((no_name.0, &no_name.1["reason"]), (422, &json!("Invalid")));
    assert_eq!(no_name.1["details"]["causes"][0]["field"], "metadata.name");
    let bad_name = send(&client, "POST", CONFIG_MAPS, "", config_map("Not A Name", &json!({}))).await;
    assert_eq!(bad_name.0, 422);
    let versioned = json!({"metadata": {"name": "b", "resourceVersion": "1"}});
    assert_eq!(send(&client, "POST", CONFIG_MAPS, "", versioned).await.0, 400);
    assert_eq!(
        send(&client, "POST", "/api/v1/namespaces/none/configmaps", "", config_map("a", &json!({}))).await.0,
        404
    );
    assert_eq!(send(&client, "POST", CONFIG_MAPS, "text/plain", config_map("c", &json!({}))).await.0, 415);
    assert_eq!(get(&client, "/apis/example.com/v1/things").await.0, 404);
    assert_eq!(get(&client, "/openapi/v2").await.0, 404);
}

#[tokio::test]
async fn generated_names_differ() {
    let cluster = quiet().await;
    let client = cluster.client();
    let body = json!({"metadata": {"generateName": "a-"}});
    let first = ok(&client, "POST", CONFIG_MAPS, "", body.clone()).await;
    let second = ok(&client, "POST", CONFIG_MAPS, "", body).await;
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
    assert!(first["metadata"]["name"].as_str().unwrap().starts_with("a-"));
}

#[tokio::test]
async fn an_update_needs_the_current_version_and_changes_only_mutable_fields() {
    let cluster = quiet().await;
    let client = cluster.client();
    let created = ok(&client, "POST", DEPLOYMENTS, "", deployment()).await;
    assert_eq!(created["metadata"]["generation"], 1);
    let path = format!("{DEPLOYMENTS}/web");

    let mut update = created.clone();
    update["spec"]["replicas"] = 2.into();
    update["status"] = json!({"replicas": 7});
    update["metadata"]["uid"] = "".into();
    let updated = ok(&client, "PUT", &path, "", update.clone()).await;
    assert_eq!((&updated["metadata"]["generation"], &updated["spec"]["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(updated["status"], created["status"], "the main endpoint does not write status");
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);

    let stale = send(&client, "PUT", &path, "", update).await;
    assert_eq!((stale.0, &stale.1["reason"]), (409, &json!("Conflict")));

    let mut status = updated.clone();
    status["spec"]["replicas"] = 9.into();
    status["metadata"]["labels"] = json!({"x": "y"});
    status["status"] = json!({"replicas": 2, "observedGeneration": 2});
    let written = ok(&client, "PUT", &format!("{path}/status"), "", status).await;
    assert_eq!((&written["spec"]["replicas"], &written["status"]["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(written["metadata"]["generation"], 2, "status does not count");
    assert_eq!(written["metadata"].get("labels"), None);

    let mut other = ok(&client, "GET", &path, "", Value::Null).await;
    other["metadata"]["uid"] = "another".into();
    assert_eq!(send(&client, "PUT", &path, "", other).await.0, 409);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_write() {
    let cluster = quiet().await;
    let client = cluster.client();
    let path = format!("{DEPLOYMENTS}/web");
    let apply = format!("{path}?fieldManager=test");
    let first = ok(&client, "PATCH", &apply, APPLY, deployment()).await;
    let revision = cluster.revision();

    let second = ok(&client, "PATCH", &apply, APPLY, deployment()).await;
    assert_eq!(second, first);
    ok(&client, "PUT", &path, "", first.clone()).await;
    ok(&client, "PATCH", &path, MERGE, json!({"spec": {"replicas": 1}})).await;
    ok(&client, "PATCH", &path, JSON_PATCH, json!([{"op": "replace", "path": "/spec/replicas", "value": 1}])).await;
    assert_eq!(cluster.revision(), revision, "nothing was written");
    ok(&client, "PATCH", &path, MERGE, json!({"spec": {"replicas": 2}})).await;
    assert_eq!(cluster.revision(), revision + 1);
}

#[tokio::test]
async fn apply_removes_omitted_fields_and_reports_conflicts() {
    let cluster = quiet().await;
    let client = cluster.client();
    let path = format!("{CONFIG_MAPS}/a");
    let apply = |manager: &str| format!("{path}?fieldManager={manager}");
    let (status, _) = send(&client, "PATCH", &apply("one"), APPLY, config_map("a", &json!({"x": "1", "y": "2"}))).await;
    assert_eq!(status, 201);
    ok(&client, "PATCH", &apply("two"), APPLY, config_map("a", &json!({"z": "3"}))).await;
    let merged = ok(&client, "PATCH", &apply("one"), APPLY, config_map("a", &json!({"x": "1"}))).await;
    assert_eq!(merged["data"], json!({"x": "1", "z": "3"}));

    let conflict = send(&client, "PATCH", &apply("two"), APPLY, config_map("a", &json!({"x": "2", "z": "3"}))).await;
    assert_eq!((conflict.0, &conflict.1["reason"]), (409, &json!("Conflict")));
    assert_eq!(conflict.1["details"]["causes"][0]["field"], ".data.x");
    assert_eq!(conflict.1["message"], r#"Apply failed with 1 conflict: conflict with "one": .data.x"#);
    let forced =
        ok(&client, "PATCH", &format!("{}&force=true", apply("two")), APPLY, config_map("a", &json!({"x": "2"}))).await;
    assert_eq!(forced["data"], json!({"x": "2"}));

    let anonymous = send(&client, "PATCH", &path, APPLY, config_map("a", &json!({}))).await;
    assert_eq!(anonymous.0, 422);
}

#[tokio::test]
async fn lists_of_containers_merge_by_name() {
    let cluster = quiet().await;
    let client = cluster.client();
    let path = format!("{DEPLOYMENTS}/web");
    ok(&client, "PATCH", &format!("{path}?fieldManager=one"), APPLY, deployment()).await;
    let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "template": {"spec": {"containers": [{"name": "sidecar", "image": "envoy"}]}}}});
    let merged = ok(&client, "PATCH", &format!("{path}?fieldManager=two"), APPLY, sidecar).await;
    let names = |object: &Value| -> Vec<String> {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&merged).len(), 2);
    let newer = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}});
    let patched = ok(&client, "PATCH", &path, "application/strategic-merge-patch+json", newer).await;
    assert_eq!(names(&patched).len(), 2);
}

#[tokio::test]
async fn dry_runs_write_nothing() {
    let cluster = quiet().await;
    let client = cluster.client();
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({"x": "1"}))).await;
    until(&client, "/api/v1/namespaces/kube-system/serviceaccounts/default", |status, _| status == 200).await;
    let revision = cluster.revision();
    let path = format!("{CONFIG_MAPS}/a");
    let created = ok(&client, "POST", &format!("{CONFIG_MAPS}?dryRun=All"), "", config_map("b", &json!({}))).await;
    assert!(created["metadata"]["uid"].is_string());
    assert_eq!(created["metadata"].get("resourceVersion"), None);
    let patched = ok(&client, "PATCH", &format!("{path}?dryRun=All"), MERGE, json!({"data": {"x": "2"}})).await;
    assert_eq!(patched["data"]["x"], "2");
    ok(
        &client,
        "PATCH",
        &format!("{path}?dryRun=All&fieldManager=a&force=true"),
        APPLY,
        config_map("a", &json!({"x": "3"})),
    )
    .await;
    ok(&client, "DELETE", &path, "", json!({"dryRun": ["All"]})).await;
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}?dryRun=All"), "", Value::Null).await;
    assert_eq!(send(&client, "DELETE", &format!("{path}?dryRun=Some"), "", Value::Null).await.0, 422);
    assert_eq!(cluster.revision(), revision);
    assert_eq!(get(&client, &path).await.1["data"]["x"], "1");
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_of_or_dropped() {
    let cluster = quiet().await;
    let client = cluster.client();
    let mut object = config_map("a", &json!({}));
    object["spec"] = json!({"x": 1});
    let strict = send(&client, "POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), "", object.clone()).await;
    assert_eq!(strict.0, 400);
    assert!(
        strict.1["message"].as_str().unwrap().contains(r#"strict decoding error: unknown field "spec""#),
        "{}",
        strict.1
    );

    for (validation, warned) in [("Warn", true), ("Ignore", false)] {
        let uri = format!("{CONFIG_MAPS}?dryRun=All&fieldValidation={validation}");
        let request = http::Request::post(uri).body(serde_json::to_vec(&object).unwrap().into()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 201);
        assert_eq!(response.headers().contains_key("warning"), warned, "{validation}");
    }
}

#[tokio::test]
async fn preconditions_guard_deletes() {
    let cluster = quiet().await;
    let client = cluster.client();
    let created = ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    let path = format!("{CONFIG_MAPS}/a");
    for preconditions in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let refused = send(&client, "DELETE", &path, "", json!({"preconditions": preconditions})).await;
        assert_eq!((refused.0, &refused.1["reason"]), (409, &json!("Conflict")));
    }
    let options = json!({"preconditions": {"uid": created["metadata"]["uid"]}});
    let deleted = ok(&client, "DELETE", &path, "", options).await;
    assert_eq!((&deleted["status"], &deleted["details"]["uid"]), (&json!("Success"), &created["metadata"]["uid"]));
    assert_eq!(send(&client, "DELETE", &path, "", Value::Null).await.0, 404);
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let cluster = quiet().await;
    let client = cluster.client();
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = config_map(name, &json!({}));
        object["metadata"]["labels"] = json!({"app": app});
        ok(&client, "POST", CONFIG_MAPS, "", object).await;
    }
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}?labelSelector=app%3Dx"), "", Value::Null).await;
    let left = ok(&client, "GET", &format!("{CONFIG_MAPS}?labelSelector=app"), "", Value::Null).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
    assert_eq!(left["items"][0]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_deployment_is_scaled_through_its_subresource() {
    let cluster = quiet().await;
    let client = cluster.client();
    ok(&client, "POST", DEPLOYMENTS, "", deployment()).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = ok(&client, "GET", &path, "", Value::Null).await;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    ok(&client, "PATCH", &path, MERGE, json!({"spec": {"replicas": 4}})).await;
    let scaled = ok(&client, "GET", &format!("{DEPLOYMENTS}/web"), "", Value::Null).await;
    assert_eq!((&scaled["spec"]["replicas"], &scaled["metadata"]["generation"]), (&json!(4), &json!(2)));
}

#[tokio::test]
async fn requests_without_a_token_are_refused() {
    let cluster = quiet().await;
    let mut config = common::config(&cluster).await;
    config.auth_info.token = None;
    let stranger = kube::Client::try_from(config).unwrap();
    assert_eq!(get(&stranger, CONFIG_MAPS).await.0, 403);
    assert_eq!(get(&stranger, "/api").await.0, 403);
    assert_eq!(get(&stranger, "/version").await.0, 200);
}

#[tokio::test]
async fn bodies_are_limited() {
    let cluster = quiet().await;
    let client = cluster.client();
    let large = config_map("a", &json!({"x": "y".repeat(4 << 20)}));
    assert_eq!(send(&client, "POST", CONFIG_MAPS, "", large).await.0, 413);
}

#[tokio::test]
async fn only_loopback_addresses_are_served_without_a_token() {
    let options = chandler_devcluster::Options { bind: ([0, 0, 0, 0], 0).into(), ..Default::default() };
    let refused = chandler_devcluster::DevCluster::start(options).await;
    assert!(matches!(refused, Err(chandler_devcluster::StartError::NotLoopback(_))));
}
