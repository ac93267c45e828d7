//! Selectors, in lists and watches.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    events::Event,
    objects::{names, version},
};

cases! {
    "3.12" the_operators_of_label_selectors;
    "3.12" malformed_selectors_are_refused;
    "3.12" an_object_that_leaves_a_selector_is_sent_as_deleted;
    "3.12" an_object_that_enters_a_selector_is_sent_as_added;
    "3.12" unselected_objects_send_no_events;
    "3.12" fields_of_metadata_select;
    "3.12" fields_of_built_in_kinds_select;
    "3.12" selectable_fields_of_custom_kinds;
    "3.12" a_change_of_a_selectable_field_is_sent_as_added_or_deleted;
    "3.12" unsupported_field_selectors_are_refused;
}

async fn the_operators_of_label_selectors(scope: &Scope) {
    let secrets = scope.secrets().await;
    for (name, labels) in [
        ("a", json!({"app": "web", "tier": "front"})),
        ("b", json!({"app": "web", "tier": "back"})),
        ("c", json!({"app": "db", "size": "10"})),
        ("d", json!({})),
    ] {
        secrets.create(&json!({"metadata": {"name": name, "labels": labels}})).await.ok();
    }
    for (selector, expected) in [
        ("app=web", vec!["a", "b"]),
        ("app==web", vec!["a", "b"]),
        ("app!=web", vec!["c", "d"]),
        ("app", vec!["a", "b", "c"]),
        ("!app", vec!["d"]),
        ("app in (web, db)", vec!["a", "b", "c"]),
        ("app notin (web)", vec!["c", "d"]),
        ("app=web,tier=front", vec!["a"]),
        ("app=web,tier notin (front),tier", vec!["b"]),
        ("size>5", vec!["c"]),
        ("size<5", vec![]),
        ("", vec!["a", "b", "c", "d"]),
    ] {
        let list =
            secrets.list(&format!("labelSelector={}", selector.replace('<', "%3C").replace('>', "%3E"))).await.ok();
        assert_eq!(names(&list), expected, "{selector}");
    }
}

async fn malformed_selectors_are_refused(scope: &Scope) {
    let secrets = scope.secrets().await;
    for selector in [
        "labelSelector=a in b",
        "labelSelector=,",
        "labelSelector=-a-",
        "labelSelector=a=b c",
        "fieldSelector=metadata.name",
    ] {
        secrets.list(selector).await.refused(400, "BadRequest");
    }
}

async fn an_object_that_leaves_a_selector_is_sent_as_deleted(scope: &Scope) {
    let secrets = scope.secrets().await;
    let created = secrets.create(&json!({"metadata": {"name": "a", "labels": {"case": "yes"}}})).await.ok();
    let mut events = secrets.watch(&format!("labelSelector=case=yes&resourceVersion={}", version(&created))).await;
    let patch = json!({"metadata": {"labels": {"case": "no"}}, "stringData": {"x": "1"}});
    let changed = secrets.merge("a", &patch).await.ok();
    let left = events.expect().await;
    assert_eq!(left.summary(), "DELETED a");
    assert_eq!(left.object["metadata"]["labels"], json!({"case": "yes"}), "the last state that was selected");
    assert_eq!(left.object.get("data"), None);
    assert_eq!(version(&left.object), version(&changed), "with the version of the change");
}

async fn an_object_that_enters_a_selector_is_sent_as_added(scope: &Scope) {
    let secrets = scope.secrets().await;
    let created = secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    let mut events = secrets.watch(&format!("labelSelector=case=yes&resourceVersion={}", version(&created))).await;
    secrets.merge("a", &json!({"stringData": {"x": "1"}})).await.ok();
    secrets.merge("a", &json!({"metadata": {"labels": {"case": "yes"}}})).await.ok();
    secrets.merge("a", &json!({"stringData": {"x": "2"}})).await.ok();
    secrets.merge("a", &json!({"metadata": {"labels": {"case": null}}})).await.ok();
    secrets.delete("a").await.ok();
    secrets.create(&json!({"metadata": {"name": "marker", "labels": {"case": "yes"}}})).await.ok();
    let summaries: Vec<String> = events.before("marker").await.iter().map(Event::summary).collect();
    assert_eq!(summaries, ["ADDED a", "MODIFIED a", "DELETED a"]);
}

async fn unselected_objects_send_no_events(scope: &Scope) {
    let secrets = scope.secrets().await;
    let from = version(&secrets.list("").await.ok()).to_owned();
    let mut events = secrets.watch(&format!("labelSelector=case=yes&resourceVersion={from}")).await;
    secrets.create(&json!({"metadata": {"name": "a", "labels": {"case": "no"}}})).await.ok();
    secrets.merge("a", &json!({"metadata": {"labels": {"case": "never"}}})).await.ok();
    secrets.delete("a").await.ok();
    secrets.create(&json!({"metadata": {"name": "marker", "labels": {"case": "yes"}}})).await.ok();
    assert!(events.before("marker").await.is_empty());
}

async fn fields_of_metadata_select(scope: &Scope) {
    let widgets = scope.widgets().await;
    for name in ["a", "b"] {
        widgets.create(&scope.widget(name, json!({}))).await.ok();
    }
    let namespace = scope.namespace().await;
    for (selector, expected) in [
        ("metadata.name=a".to_owned(), vec!["a"]),
        ("metadata.name!=a".to_owned(), vec!["b"]),
        (format!("metadata.namespace={namespace}"), vec!["a", "b"]),
        ("metadata.namespace=elsewhere".to_owned(), vec![]),
        (format!("metadata.name=a,metadata.namespace={namespace}"), vec!["a"]),
    ] {
        assert_eq!(names(&widgets.list(&format!("fieldSelector={selector}")).await.ok()), expected, "{selector}");
    }
}

async fn fields_of_built_in_kinds_select(scope: &Scope) {
    let secrets = scope.secrets().await;
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    secrets.create(&json!({"metadata": {"name": "b"}, "type": "example.com/x"})).await.ok();
    assert_eq!(names(&secrets.list("fieldSelector=type=example.com/x").await.ok()), ["b"]);
    assert_eq!(names(&secrets.list("fieldSelector=type!=example.com/x").await.ok()), ["a"]);
    let namespaces = scope.http().get("/api/v1/namespaces?fieldSelector=status.phase=Active").await.ok();
    assert!(names(&namespaces).contains(&scope.namespace().await));
}

fn colored(scope: &Scope, name: &str, color: &str) -> Value {
    scope.widget(name, json!({"color": color}))
}

async fn selectable_fields_of_custom_kinds(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&colored(scope, "a", "red")).await.ok();
    widgets.create(&colored(scope, "b", "blue")).await.ok();
    widgets.create(&scope.widget("c", json!({}))).await.ok();
    assert_eq!(names(&widgets.list("fieldSelector=spec.color=red").await.ok()), ["a"]);
    assert_eq!(names(&widgets.list("fieldSelector=spec.color!=red").await.ok()), ["b", "c"]);
    assert_eq!(names(&widgets.list("fieldSelector=spec.color=").await.ok()), ["c"], "absent is empty");
    widgets.delete_all("fieldSelector=spec.color=red").await.ok();
    assert_eq!(names(&widgets.list("").await.ok()), ["b", "c"]);
}

async fn a_change_of_a_selectable_field_is_sent_as_added_or_deleted(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&colored(scope, "a", "red")).await.ok();
    let mut events =
        widgets.watch(&format!("fieldSelector=spec.color=blue&resourceVersion={}", version(&created))).await;
    for color in ["blue", "green"] {
        widgets.merge("a", &json!({"spec": {"color": color}})).await.ok();
    }
    assert_eq!(events.summaries(2).await, ["ADDED a", "DELETED a"]);
}

async fn unsupported_field_selectors_are_refused(scope: &Scope) {
    let widgets = scope.widgets().await;
    let status = widgets.list("fieldSelector=spec.size=3").await.refused(400, "BadRequest");
    assert!(status["message"].as_str().unwrap().contains("field label not supported: spec.size"), "{status}");
    let secrets = scope.secrets().await;
    let status = secrets.list("fieldSelector=data.x=1").await.refused(400, "BadRequest");
    assert!(status["message"].as_str().unwrap().contains("field label not supported: data.x"), "{status}");
}
