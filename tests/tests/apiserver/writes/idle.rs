//! A write without changes does not count as a write: the version stays, and watches get no event.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    objects::{config_map, ingress, labelled, pod_template, version},
};

cases! {
    "3.02" idle_updates_and_patches_of_built_in_objects;
    "3.02" idle_updates_and_patches_of_custom_objects;
    "3.02" idle_applies;
    "3.02" idle_applies_with_server_defaults;
    "3.02" idle_applies_of_status;
    "3.02" another_spelling_of_a_value_is_idle;
    "3.02" a_second_delete_of_a_terminating_object_is_idle;
    "4" a_second_reconcile_writes_nothing;
}

const SELECTED: &str = "labelSelector=case=yes";

/// Asserts that these writes changed nothing: a watch shows that the next real write is the first event.
async fn assert_idle(collection: &Collection, before: &Value, answers: Vec<(&str, crate::support::Answer)>) {
    for (what, answer) in answers {
        let answered = answer.is(200);
        assert_eq!(version(&answered), version(before), "{what}");
        assert_eq!(answered["metadata"]["managedFields"], before["metadata"]["managedFields"], "{what}");
    }
    let name = before["metadata"]["name"].as_str().unwrap();
    assert_eq!(&collection.get(name).await.ok(), before);
    let mut events = collection.watch(&format!("{SELECTED}&resourceVersion={}", version(before))).await;
    collection.merge(name, &json!({"metadata": {"annotations": {"marker": "1"}}})).await.ok();
    let event = events.expect().await;
    assert_eq!(event.object["metadata"]["annotations"]["marker"], "1", "an idle write sent a watch event: {event:?}");
}

fn selected(object: Value) -> Value {
    labelled(object, json!({"case": "yes"}))
}

async fn idle_updates_and_patches_of_built_in_objects(scope: &Scope) {
    let maps = scope.config_maps().await;
    let before = maps.create(&selected(config_map("a", json!({"x": "1"})))).await.ok();
    let mut unversioned = before.clone();
    unversioned["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let answers = vec![
        ("put", maps.put("a", &before).await),
        ("put without version", maps.put("a", &unversioned).await),
        ("merge patch", maps.merge("a", &json!({"data": {"x": "1", "none": null}})).await),
        ("empty merge patch", maps.merge("a", &json!({})).await),
        ("strategic merge patch", maps.strategic("a", &json!({"data": {"x": "1"}})).await),
        ("json patch", maps.json_patch("a", &json!([{"op": "replace", "path": "/data/x", "value": "1"}])).await),
        ("empty json patch", maps.json_patch("a", &json!([])).await),
        ("as another manager", maps.merge("a?fieldManager=other", &json!({"data": {"x": "1"}})).await),
    ];
    assert_idle(&maps, &before, answers).await;
}

async fn idle_updates_and_patches_of_custom_objects(scope: &Scope) {
    let widgets = scope.widgets().await;
    let before = widgets.create(&selected(scope.widget("a", json!({"color": "red"})))).await.ok();
    let mut unpruned = before.clone();
    unpruned["spec"]["unknown"] = 1.into();
    let mut undefaulted = before.clone();
    undefaulted["spec"].as_object_mut().unwrap().remove("size");
    let answers = vec![
        ("put", widgets.put("a", &before).await),
        ("put with what is pruned", widgets.put("a", &unpruned).await),
        ("put without what is defaulted", widgets.put("a", &undefaulted).await),
        ("merge patch", widgets.merge("a", &json!({"spec": {"color": "red"}})).await),
        ("merge patch of the default away", widgets.merge("a", &json!({"spec": {"size": null}})).await),
        ("json patch", widgets.json_patch("a", &json!([{"op": "test", "path": "/spec/color", "value": "red"}])).await),
    ];
    assert_idle(&widgets, &before, answers).await;
}

async fn idle_applies(scope: &Scope) {
    let maps = scope.config_maps().await;
    let applied = selected(config_map("a", json!({"x": "1"})));
    let before = maps.apply("a", "one", &applied).await.is(201);
    let answers = vec![
        ("again", maps.apply("a", "one", &applied).await),
        ("with force", maps.apply("a?force=true", "one", &applied).await),
    ];
    assert_idle(&maps, &before, answers).await;
}

async fn idle_applies_with_server_defaults(scope: &Scope) {
    let templates = scope.pod_templates().await;
    let containers = json!([{"name": "c", "image": "a:1", "ports": [{"containerPort": 80}],
        "resources": {"requests": {"memory": "1024Mi"}}}]);
    let applied = selected(pod_template("a", containers));
    let before = templates.apply("a", "one", &applied).await.is(201);
    assert_eq!(before["template"]["spec"]["containers"][0]["ports"][0]["protocol"], "TCP", "a default was set");
    let answers = vec![("again", templates.apply("a", "one", &applied).await)];
    assert_idle(&templates, &before, answers).await;

    let widgets = scope.widgets().await;
    let applied = selected(scope.widget("a", json!({"parts": [{"name": "p"}], "tags": ["b", "a"]})));
    let before = widgets.apply("a", "one", &applied).await.is(201);
    let answers = vec![("again", widgets.apply("a", "one", &applied).await)];
    assert_idle(&widgets, &before, answers).await;
}

async fn idle_applies_of_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&selected(scope.widget("a", json!({})))).await.ok();
    let mut applied = scope.widget("a", json!({}));
    applied.as_object_mut().unwrap().remove("spec");
    applied["status"] = json!({"phase": "Done", "conditions": [{"type": "Ready", "status": "True"}]});
    let before = widgets.apply("a/status", "one", &applied).await.is(200);
    let answers = vec![
        ("apply", widgets.apply("a/status", "one", &applied).await),
        ("merge patch", widgets.merge("a/status", &json!({"status": {"phase": "Done"}})).await),
        ("put", widgets.put("a/status", &before).await),
    ];
    assert_idle(&widgets, &before, answers).await;
}

async fn another_spelling_of_a_value_is_idle(scope: &Scope) {
    let ingresses = scope.ingresses().await;
    let before = ingresses.create(&selected(ingress("a"))).await.ok();
    let explicit = json!({"metadata": {"annotations": {}}, "spec": {"rules": null, "tls": []}});
    let answers = vec![("empty maps and lists", ingresses.merge("a", &explicit).await)];
    assert_idle(&ingresses, &before, answers).await;
}

async fn a_second_delete_of_a_terminating_object_is_idle(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = selected(config_map("a", json!({})));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    maps.create(&object).await.ok();
    let first = maps.delete("a").await.is(200);
    let second = maps.delete("a").await.is(200);
    assert_eq!(version(&first), version(&second));
    maps.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn a_second_reconcile_writes_nothing(scope: &Scope) {
    // As controllers do on each reconcile: apply the desired objects, then write the observed state to the status.
    let widgets = scope.widgets().await;
    let wanted = selected(scope.widget("a", json!({"size": 5, "ports": [{"port": 80}]})));
    let reconcile = || async {
        let applied = widgets.apply("a?force=true", "controller", &wanted).await.ok();
        let mut status = scope.widget("a", json!({}));
        status.as_object_mut().unwrap().remove("spec");
        status["status"] = json!({"phase": "Ready", "replicas": applied["spec"]["size"]});
        widgets.apply("a/status?force=true", "controller", &status).await.ok()
    };
    let first = reconcile().await;
    let second = reconcile().await;
    assert_eq!(first, second);
}
