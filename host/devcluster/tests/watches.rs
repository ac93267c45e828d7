//! Lists at revisions, pages, watches.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::collections::BTreeMap;

use chandler_devcluster::{Options, store::Limits};
use serde_json::{Value, json};

use crate::common::{CONFIG_MAPS, MERGE, config_map, get, ok, quiet, send, start, until, watch, without_retries};

const SELECTED: &str = "labelSelector=kind%3Dtest";

fn labelled(name: &str) -> Value {
    let mut object = config_map(name, &json!({}));
    object["metadata"]["labels"] = json!({"kind": "test"});
    object
}

async fn create(client: &kube::Client, name: &str) -> Value {
    ok(client, "POST", CONFIG_MAPS, "", labelled(name)).await
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

#[tokio::test]
async fn pages_show_one_moment() {
    let cluster = quiet().await;
    let client = cluster.client();
    for name in ["a", "b", "c", "d", "e"] {
        create(&client, name).await;
    }
    let first = ok(&client, "GET", &format!("{CONFIG_MAPS}?limit=2&{SELECTED}"), "", Value::Null).await;
    assert_eq!(names(&first), ["a", "b"]);
    // Changes between pages are not visible.
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/d"), "", Value::Null).await;
    create(&client, "bb").await;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let second =
        ok(&client, "GET", &format!("{CONFIG_MAPS}?limit=2&{SELECTED}&continue={token}"), "", Value::Null).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third =
        ok(&client, "GET", &format!("{CONFIG_MAPS}?limit=2&{SELECTED}&continue={token}"), "", Value::Null).await;
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third["metadata"].get("continue"), None);

    cluster.compact();
    let expired = get(&client, &format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!((expired.0, &expired.1["reason"]), (410, &json!("Expired")));
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}?continue=nonsense")).await.0, 400);
}

#[tokio::test]
async fn remaining_items_are_counted_without_a_selector() {
    let cluster = quiet().await;
    let client = cluster.client();
    let list = ok(&client, "GET", "/api/v1/namespaces?limit=1", "", Value::Null).await;
    assert_eq!(list["metadata"]["remainingItemCount"], 3);
}

#[tokio::test]
async fn lists_honour_resource_versions() {
    let cluster = quiet().await;
    let client = cluster.client();
    let a = create(&client, "a").await;
    create(&client, "b").await;
    let list = |parameters: String| {
        let client = client.clone();
        async move { get(&client, &format!("{CONFIG_MAPS}?{SELECTED}&{parameters}")).await }
    };
    assert_eq!(names(&list("resourceVersion=0".into()).await.1), ["a", "b"]);
    assert_eq!(names(&list(format!("resourceVersion={}", version(&a))).await.1), ["a", "b"]);
    let exact = list(format!("resourceVersion={}&resourceVersionMatch=Exact", version(&a))).await;
    assert_eq!((names(&exact.1), version(&exact.1)), (vec!["a"], version(&a)));
    let future = get(&without_retries(&cluster).await, &format!("{CONFIG_MAPS}?resourceVersion=1000000")).await;
    assert_eq!(future.0, 504);
    assert_eq!(future.1["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(list("resourceVersion=x".into()).await.0, 400);
    assert_eq!(list("resourceVersionMatch=Exact".into()).await.0, 422);
    cluster.compact();
    assert_eq!(list(format!("resourceVersion={}&resourceVersionMatch=Exact", version(&a))).await.0, 410);
}

#[tokio::test]
async fn a_watch_delivers_every_change_once_and_in_order() {
    let cluster = quiet().await;
    let client = cluster.client();
    let list = ok(&client, "GET", CONFIG_MAPS, "", Value::Null).await;
    let from = version(&list).to_owned();
    create(&client, "a").await;
    let mut events = watch(&client, &format!("{CONFIG_MAPS}?watch=true&{SELECTED}&resourceVersion={from}")).await;
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    ok(&client, "PATCH", &format!("{CONFIG_MAPS}/a"), MERGE, json!({"data": {"x": "1"}})).await;
    ok(&client, "DELETE", &format!("{CONFIG_MAPS}/a"), "", Value::Null).await;
    create(&client, "b").await;
    assert_eq!(events.summary(4).await, ["ADDED a", "MODIFIED a", "DELETED a", "ADDED b"]);
}

#[tokio::test]
async fn changes_across_a_selector_are_sent_as_added_or_deleted() {
    let cluster = quiet().await;
    let client = cluster.client();
    create(&client, "a").await;
    let mut events = watch(&client, &format!("{CONFIG_MAPS}?watch=true&{SELECTED}")).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    let path = format!("{CONFIG_MAPS}/a");
    ok(&client, "PATCH", &path, MERGE, json!({"data": {"x": "1"}, "metadata": {"labels": {"kind": "other"}}})).await;
    let left = events.next().await.unwrap();
    assert_eq!((&left["type"], &left["object"]["metadata"]["labels"]["kind"]), (&json!("DELETED"), &json!("test")));
    assert_eq!(left["object"]["data"].get("x"), None, "the last state that was selected");
    ok(&client, "PATCH", &path, MERGE, json!({"metadata": {"labels": {"kind": "test"}}})).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);

    let mut named = watch(&client, &format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    create(&client, "c").await;
    create(&client, "b").await;
    assert_eq!(named.summary(1).await, ["ADDED b"]);
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}?fieldSelector=data.x%3D1")).await.0, 400);
}

#[tokio::test]
async fn streaming_lists_end_with_an_annotated_bookmark() {
    let cluster = quiet().await;
    let client = cluster.client();
    create(&client, "a").await;
    let parameters = format!(
        "watch=true&{SELECTED}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let mut events = watch(&client, &format!("{CONFIG_MAPS}?{parameters}")).await;
    assert_eq!(events.summary(1).await, ["ADDED a"]);
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(version(&bookmark["object"]), cluster.revision().to_string());
    create(&client, "b").await;
    assert_eq!(events.summary(1).await, ["ADDED b"]);
    assert_eq!(get(&client, &format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=true")).await.0, 422);
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout_with_a_bookmark_to_resume_from() {
    let cluster = quiet().await;
    let client = cluster.client();
    let from = cluster.revision();
    let parameters = format!("watch=true&resourceVersion={from}&timeoutSeconds=1&allowWatchBookmarks=true&{SELECTED}");
    let mut events = watch(&client, &format!("{CONFIG_MAPS}?{parameters}")).await;
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert!(version(&bookmark["object"]).parse::<u64>().unwrap() >= from);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_watch_from_compacted_history_gets_410_at_the_start() {
    let cluster = quiet().await;
    let client = cluster.client();
    let a = create(&client, "a").await;
    create(&client, "b").await;
    cluster.compact();
    let (status, expired) = get(&client, &format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", version(&a))).await;
    assert_eq!((status, &expired["reason"]), (410, &json!("Expired")));
}

#[tokio::test]
async fn a_reader_that_falls_behind_gets_an_error_event() {
    let history = Limits { revisions: 4, bytes: usize::MAX, ..Limits::default() };
    let cluster = start(Options { workloads: false, history, ..Options::default() }).await;
    let client = cluster.client();
    until(&client, "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt", |status, _| status == 200).await;
    let mut events = watch(&client, "/api/v1/configmaps?watch=true").await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    // More than the socket buffers hold, so that the server must wait for this reader.
    let filling = "x".repeat(200 << 10);
    for index in 0..60 {
        ok(&client, "POST", CONFIG_MAPS, "", config_map(&format!("c{index}"), &json!({"x": filling}))).await;
    }
    let mut last = Value::Null;
    while let Some(event) = events.next().await {
        last = event;
    }
    assert_eq!(last["type"], "ERROR");
    assert_eq!((&last["object"]["code"], &last["object"]["reason"]), (&json!(410), &json!("Expired")));
}

#[tokio::test]
async fn tables_are_rendered_for_lists_and_watches() {
    let cluster = quiet().await;
    let client = cluster.client();
    create(&client, "a").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let request = |path: String| http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    let table: Value = client.request(request(format!("{CONFIG_MAPS}?{SELECTED}"))).await.unwrap();
    assert_eq!(table["kind"], "Table");
    let headings: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(headings, ["Name", "Data", "Age"]);
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn items_of_built_in_lists_carry_no_type() {
    let cluster = quiet().await;
    let client = cluster.client();
    let list = ok(&client, "GET", "/api/v1/namespaces", "", Value::Null).await;
    assert_eq!(list["kind"], "NamespaceList");
    assert_eq!(list["items"][0].get("kind"), None);
}

/// A random mixture of writes; replaying the watch from any list yields the state of the last list.
#[tokio::test]
async fn replaying_a_watch_yields_the_list() {
    let cluster = quiet().await;
    let client = cluster.client();
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut lists = Vec::new();
    for step in 0..120 {
        let name = format!("c{}", random(6));
        let path = format!("{CONFIG_MAPS}/{name}");
        match random(4) {
            0 => drop(send(&client, "DELETE", &path, "", Value::Null).await),
            1 => drop(send(&client, "PATCH", &path, MERGE, json!({"data": {"step": step.to_string()}})).await),
            2 => drop(
                send(
                    &client,
                    "PATCH",
                    &path,
                    MERGE,
                    json!({"metadata": {"labels": {"kind": (if random(2) == 0 {"test"} else {"other"})}}}),
                )
                .await,
            ),
            _ => drop(send(&client, "POST", CONFIG_MAPS, "", labelled(&name)).await),
        }
        if random(10) == 0 {
            lists.push(ok(&client, "GET", &format!("{CONFIG_MAPS}?{SELECTED}"), "", Value::Null).await);
        }
    }
    // The last event that every replay must see.
    create(&client, "zz-end").await;
    let end = ok(&client, "GET", &format!("{CONFIG_MAPS}?{SELECTED}"), "", Value::Null).await;
    let state = |list: &Value| -> BTreeMap<String, Value> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item["metadata"].clone())).collect()
    };
    for list in lists {
        let mut replayed = state(&list);
        let mut events =
            watch(&client, &format!("{CONFIG_MAPS}?watch=true&{SELECTED}&resourceVersion={}", version(&list))).await;
        while !replayed.contains_key("zz-end") {
            let event = events.next().await.unwrap();
            let metadata = event["object"]["metadata"].clone();
            let name = metadata["name"].as_str().unwrap().to_owned();
            if event["type"] == "DELETED" {
                assert!(replayed.remove(&name).is_some(), "{name} was deleted but not there");
            } else {
                assert_eq!(replayed.insert(name, metadata).is_none(), event["type"] == "ADDED");
            }
        }
        assert_eq!(replayed, state(&end));
    }
}
