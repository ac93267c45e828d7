//! Time and identity from outside: the same seed, clock and requests give the same bytes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::time::Duration;

use chandler_devcluster::{Clock, DevCluster, Options};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use time::macros::datetime;

use crate::common::{self, APPLY, CONFIG_MAPS, MERGE, config_map, get, ok, until, watch};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// A cluster whose own controllers have finished their initial work.
async fn cluster(clock: &Clock, seed: u64) -> DevCluster {
    let options = Options {
        clock: clock.clone(),
        seed: Some(seed),
        workloads: false,
        established_delay: Duration::ZERO,
        ..Options::default()
    };
    let cluster = common::start(options).await;
    for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        for object in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let path = format!("/api/v1/namespaces/{namespace}/{object}");
            until(&cluster.client(), &path, |status, _| status == 200).await;
        }
    }
    cluster
}

fn clock() -> Clock {
    Clock::manual(datetime!(2026-01-02 03:04:05 UTC))
}

async fn bytes(client: &Client, path: &str, accept: &str) -> String {
    let request = http::Request::get(path).header(http::header::ACCEPT, accept);
    let response = client.send(request.body(kube::client::Body::empty()).unwrap()).await.unwrap();
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Sends requests of many kinds and returns all visible results.
async fn session(seed: u64) -> Vec<String> {
    let clock = clock();
    let cluster = cluster(&clock, seed).await;
    let client = cluster.client();
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({"x": "1"}))).await;
    for _ in 0..2 {
        let generated = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "made-"}});
        ok(&client, "POST", "/api/v1/namespaces/default/secrets", "", generated).await;
    }
    clock.advance(Duration::from_mins(90));
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"y": "2"}})).await;
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}},
    });
    ok(&client, "PATCH", &format!("{DEPLOYMENTS}/web?fieldManager=tester"), APPLY, deployment).await;
    ok(&client, "POST", common::CRDS, "", common::widgets()).await;
    until(&client, common::WIDGETS, |status, _| status == 200).await;
    ok(&client, "POST", common::WIDGETS, "", common::widget("one", &json!({"size": 2}))).await;
    // Deleted with a finalizer, and deleted and created again.
    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    ok(&client, "POST", CONFIG_MAPS, "", held).await;
    clock.advance(Duration::from_secs(30));
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/held"), "", Value::Null).await;
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/a"), "", Value::Null).await;
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({"x": "3"}))).await;
    let crd = format!("{}/widgets.example.com", common::CRDS);
    until(&client, &crd, |_, crd| {
        crd["status"]["conditions"].as_array().is_some_and(|conditions| conditions.len() == 2)
    })
    .await;
    let mut shown = Vec::new();
    for path in [
        &format!("{CONFIG_MAPS}/a"),
        &format!("{CONFIG_MAPS}/held"),
        "/api/v1/namespaces/default/secrets",
        &format!("{DEPLOYMENTS}/web"),
        common::WIDGETS,
        &crd,
        "/api/v1/namespaces",
    ] {
        for accept in ["application/json", TABLE] {
            shown.push(bytes(&client, path, accept).await);
        }
    }
    shown
}

#[tokio::test]
async fn the_same_seed_clock_and_requests_give_the_same_bytes() {
    let (first, second, other) = (session(1).await, session(1).await, session(2).await);
    assert_eq!(first, second);
    for (first, other) in first.iter().zip(&other) {
        let uid = |text: &str| serde_json::from_str::<Value>(text).unwrap()["metadata"]["uid"].clone();
        assert!(uid(first) != uid(other) || uid(first).is_null());
    }
}

#[tokio::test]
async fn written_times_come_from_the_clock() {
    let clock = clock();
    let cluster = cluster(&clock, 7).await;
    let client = cluster.client();
    let mut map = config_map("a", &json!({"x": "1"}));
    map["metadata"]["finalizers"] = json!(["example.com/hold"]);
    ok(&client, "POST", CONFIG_MAPS, "", map).await;
    clock.advance(Duration::from_mins(3));
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a?fieldManager=second"), MERGE, json!({"data": {"y": "2"}})).await;
    clock.advance(Duration::from_secs(1));
    let mut deleted = ok(&client, "DELETE", &format!("{CONFIG_MAPS}/a"), "", Value::Null).await;
    deleted["metadata"]["resourceVersion"] = json!("-");
    insta::assert_json_snapshot!(deleted, @r#"
    {
      "apiVersion": "v1",
      "data": {
        "x": "1",
        "y": "2"
      },
      "kind": "ConfigMap",
      "metadata": {
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionGracePeriodSeconds": 0,
        "deletionTimestamp": "2026-01-02T03:07:06Z",
        "finalizers": [
          "example.com/hold"
        ],
        "managedFields": [
          {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
              "f:data": {
                ".": {},
                "f:x": {}
              },
              "f:metadata": {
                "f:finalizers": {
                  ".": {},
                  "v:\"example.com/hold\"": {}
                }
              }
            },
            "manager": "unknown",
            "operation": "Update",
            "time": "2026-01-02T03:04:05Z"
          },
          {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
              "f:data": {
                "f:y": {}
              }
            },
            "manager": "second",
            "operation": "Update",
            "time": "2026-01-02T03:07:05Z"
          }
        ],
        "name": "a",
        "namespace": "default",
        "resourceVersion": "-",
        "uid": "02bf78fb-4169-4e8a-bade-64ae96b6ec3c"
      }
    }
    "#);
    clock.advance(Duration::from_hours(50));
    let table: Value = serde_json::from_str(&bytes(&client, &format!("{CONFIG_MAPS}/a"), TABLE).await).unwrap();
    assert_eq!(table["rows"][0]["cells"], json!(["a", 2, "2d2h"]));
}

#[tokio::test]
async fn watches_end_and_bookmark_by_the_clock() {
    let clock = clock();
    let cluster = cluster(&clock, 7).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion={}",
        cluster.revision()
    );
    let client = cluster.client();
    let mut events = watch(&client, &path).await;
    // The timeout starts when the request arrives, and a first event shows that it has.
    ok(&client, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    clock.advance(Duration::from_mins(1));
    assert_eq!(events.summary(1).await, ["BOOKMARK -"]);
    clock.advance(Duration::from_mins(4));
    while let Some(event) = events.next().await {
        assert_eq!(event["type"], "BOOKMARK");
    }
}

#[tokio::test]
async fn a_crd_is_established_when_the_clock_says_so() {
    let clock = clock();
    let (almost, second) = (Duration::from_secs(3599), Duration::from_secs(1));
    let delay = almost + second;
    let cluster = common::start(Options { clock: clock.clone(), established_delay: delay, ..Options::default() }).await;
    let client = cluster.client();
    ok(&client, "POST", common::CRDS, "", common::widgets()).await;
    let path = format!("{}/widgets.example.com", common::CRDS);
    let accepted = until(&client, &path, |_, crd| crd["status"]["conditions"][0]["type"] == "NamesAccepted").await;
    assert_eq!(accepted["status"]["conditions"][0]["lastTransitionTime"], "2026-01-02T03:04:05Z");
    clock.advance(almost);
    assert_eq!(get(&client, common::WIDGETS).await.0, 404);
    clock.advance(second);
    until(&client, common::WIDGETS, |status, _| status == 200).await;
}
