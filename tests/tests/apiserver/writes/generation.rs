//! `generation` counts changes of the specification.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{config_map, ingress, pod_template},
};

cases! {
    "3.03" custom_objects_count_changes_of_their_specification;
    "3.03" built_in_objects_count_changes_of_their_specification;
    "3.03" without_a_status_subresource_everything_but_metadata_counts;
    "3.03" clients_cannot_set_it;
    "3.03" objects_without_a_spec_have_no_generation;
    "3.03" a_pending_deletion_increments_it;
    "3.03" an_apply_increments_it_like_any_write;
}

fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"].as_u64().unwrap_or_default()
}

async fn custom_objects_count_changes_of_their_specification(scope: &Scope) {
    let widgets = scope.widgets().await;
    assert_eq!(generation(&widgets.create(&scope.widget("a", json!({}))).await.ok()), 1);
    let steps = [
        ("a", json!({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}), 1),
        ("a", json!({"metadata": {"finalizers": ["example.com/x"]}}), 1),
        ("a", json!({"spec": {"size": 9}}), 2),
        ("a", json!({"spec": {"size": 9}}), 2),
        ("a/status", json!({"status": {"phase": "Done"}}), 2),
        ("a", json!({"status": {"phase": "Ignored"}}), 2),
        ("a", json!({"spec": {"unknown": "pruned"}}), 2),
        ("a", json!({"spec": {"color": "red"}, "metadata": {"labels": {"x": "z"}}}), 3),
        ("a", json!({"metadata": {"finalizers": null}}), 3),
    ];
    for (path, patch, expected) in steps {
        let patched = widgets.merge(path, &patch).await.ok();
        assert_eq!(generation(&patched), expected, "after {patch} to {path}");
    }
    widgets.merge("a/scale", &json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!(generation(&widgets.get("a").await.ok()), 4, "the scale is part of the specification");
}

async fn built_in_objects_count_changes_of_their_specification(scope: &Scope) {
    let ingresses = scope.ingresses().await;
    assert_eq!(generation(&ingresses.create(&ingress("a")).await.ok()), 1);
    let steps = [
        ("a", json!({"metadata": {"labels": {"x": "y"}}}), 1),
        ("a", json!({"spec": {"ingressClassName": "x"}}), 2),
        ("a/status", json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}), 2),
        ("a", json!({"spec": {"ingressClassName": "x"}}), 2),
    ];
    for (path, patch, expected) in steps {
        assert_eq!(generation(&ingresses.merge(path, &patch).await.ok()), expected, "after {patch} to {path}");
    }
    let templates = scope.pod_templates().await;
    let created = templates.create(&pod_template("a", json!([{"name": "c", "image": "a:1"}]))).await.ok();
    let image = json!({"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}});
    assert_eq!(generation(&templates.strategic("a", &image).await.ok()), generation(&created) + 1);
}

async fn without_a_status_subresource_everything_but_metadata_counts(scope: &Scope) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut crd = crate::support::objects::crd(&scope.group(), open);
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    scope.create_crd(&crd).await;
    let things = scope.collection(&format!("{}/v1", scope.group()), "widgets").await;
    let object = scope.own_widget("a", json!({"status": {"phase": "New"}, "other": 1}));
    let created = things.create(&object).await.ok();
    assert_eq!((generation(&created), &created["status"]["phase"]), (1, &json!("New")));
    let steps = [
        (json!({"metadata": {"labels": {"x": "y"}}}), 1),
        (json!({"status": {"phase": "Done"}}), 2),
        (json!({"other": 2}), 3),
        (json!({"spec": {"x": 1}}), 4),
    ];
    for (patch, expected) in steps {
        assert_eq!(generation(&things.merge("a", &patch).await.ok()), expected, "after {patch}");
    }
    assert_eq!(things.get("a/status").await.status, 404);
}

async fn clients_cannot_set_it(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["metadata"]["generation"] = 7.into();
    assert_eq!(generation(&widgets.create(&object).await.ok()), 1);
    assert_eq!(generation(&widgets.merge("a", &json!({"metadata": {"generation": 9}})).await.ok()), 1);
}

async fn objects_without_a_spec_have_no_generation(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    assert_eq!(created["metadata"].get("generation"), None);
    let patched = maps.merge("a", &json!({"data": {"x": "2"}})).await.ok();
    assert_eq!(patched["metadata"].get("generation"), None);
}

async fn a_pending_deletion_increments_it(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    widgets.create(&object).await.ok();
    let waiting = widgets.delete("a").await.is(200);
    assert_eq!(generation(&waiting), 2);
    widgets.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn an_apply_increments_it_like_any_write(scope: &Scope) {
    let widgets = scope.widgets().await;
    let apply = |spec: Value| {
        let (widgets, object) = (widgets.clone(), scope.widget("a", spec));
        async move { generation(&widgets.apply("a", "one", &object).await.ok()) }
    };
    assert_eq!(apply(json!({"color": "red"})).await, 1);
    assert_eq!(apply(json!({"color": "red"})).await, 1);
    assert_eq!(apply(json!({"color": "blue"})).await, 2);
    assert_eq!(apply(json!({})).await, 3, "a removal is a change");
}
