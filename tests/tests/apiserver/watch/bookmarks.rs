//! Bookmarks and streaming lists.

use serde_json::json;

use crate::support::{Scope, cases, objects::version};

cases! {
    "3.11" a_streaming_list_ends_with_an_annotated_bookmark;
    "3.11" an_empty_streaming_list_is_a_bookmark;
    "3.11" a_streaming_list_respects_selectors;
    "3.11" a_streaming_list_needs_its_companion_parameters;
    "3.11" without_initial_events_only_changes_are_sent;
    "3.11" a_watch_resumes_from_a_bookmark;
    "3.11" bookmarks_are_sent_only_on_request;
}

const STREAMING: &str = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";

async fn a_streaming_list_ends_with_an_annotated_bookmark(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("b", json!({}))).await.ok();
    let last = widgets.create(&scope.widget("a", json!({}))).await.ok();
    let mut events = widgets.watch(STREAMING).await;
    let mut initial = events.summaries(2).await;
    initial.sort_unstable();
    assert_eq!(initial, ["ADDED a", "ADDED b"]);
    let bookmark = events.expect().await;
    assert_eq!(bookmark.kind, "BOOKMARK");
    assert_eq!(bookmark.object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(bookmark.object["kind"], "Widget");
    let number = |object| version(object).parse::<u64>().unwrap();
    assert!(number(&bookmark.object) >= number(&last), "{bookmark:?}");
    widgets.create(&scope.widget("c", json!({}))).await.ok();
    let mut next = events.summaries(1).await;
    // Another bookmark may come at any time.
    while next == ["BOOKMARK "] {
        next = events.summaries(1).await;
    }
    assert_eq!(next, ["ADDED c"]);
}

async fn an_empty_streaming_list_is_a_bookmark(scope: &Scope) {
    let secrets = scope.secrets().await;
    let mut events = secrets.watch(&format!("{STREAMING}&resourceVersion=")).await;
    let bookmark = events.expect().await;
    assert_eq!(bookmark.kind, "BOOKMARK");
    assert_eq!(bookmark.object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!((&bookmark.object["kind"], &bookmark.object["apiVersion"]), (&json!("Secret"), &json!("v1")));
}

async fn a_streaming_list_respects_selectors(scope: &Scope) {
    let secrets = scope.secrets().await;
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    secrets.create(&json!({"metadata": {"name": "b", "labels": {"case": "yes"}}})).await.ok();
    let mut events = secrets.watch(&format!("{STREAMING}&labelSelector=case=yes")).await;
    assert_eq!(events.summaries(1).await, ["ADDED b"]);
    assert_eq!(events.expect().await.kind, "BOOKMARK");
}

async fn a_streaming_list_needs_its_companion_parameters(scope: &Scope) {
    let secrets = scope.secrets().await;
    secrets.list("watch=true&sendInitialEvents=true&allowWatchBookmarks=true").await.invalid("resourceVersionMatch");
    secrets
        .list("watch=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
        .await
        .invalid("resourceVersionMatch");
    secrets.list("sendInitialEvents=true&resourceVersionMatch=NotOlderThan").await.invalid("sendInitialEvents");
}

async fn without_initial_events_only_changes_are_sent(scope: &Scope) {
    let secrets = scope.secrets().await;
    let created = secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    let query =
        format!("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={}", version(&created));
    let mut events = secrets.watch(&query).await;
    secrets.create(&json!({"metadata": {"name": "b"}})).await.ok();
    assert_eq!(events.summaries(1).await, ["ADDED b"]);
}

async fn a_watch_resumes_from_a_bookmark(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let mut events = widgets.watch(STREAMING).await;
    events.summaries(1).await;
    let bookmark = events.expect().await;
    drop(events);
    widgets.create(&scope.widget("b", json!({}))).await.ok();
    let mut resumed =
        widgets.watch(&format!("allowWatchBookmarks=true&resourceVersion={}", version(&bookmark.object))).await;
    loop {
        let event = resumed.expect().await;
        if event.kind != "BOOKMARK" {
            assert_eq!(event.summary(), "ADDED b");
            break;
        }
    }
}

async fn bookmarks_are_sent_only_on_request(scope: &Scope) {
    let secrets = scope.secrets().await;
    let mut events = secrets.watch("timeoutSeconds=2").await;
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    assert_eq!(events.summaries(1).await, ["ADDED a"]);
    assert!(events.next().await.is_none());
}
