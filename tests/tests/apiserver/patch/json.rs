//! JSON patch and JSON merge patch.

use serde_json::json;

use crate::support::{Scope, cases, objects::config_map};

cases! {
    "3.08" the_six_operations;
    "3.08" a_test_that_fails_stops_everything;
    "3.08" nonexistent_paths_are_refused;
    "3.08" malformed_patches_are_refused;
    "3.08" pointers_are_unescaped;
    "3.08" a_merge_patch_replaces_lists_and_removes_nulls;
    "3.08" a_patch_creates_nothing;
    "3.08" patches_cannot_move_an_object;
}

async fn the_six_operations(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"tags": ["a", "b"], "limits": {"x": "1", "y": "2"}}))).await.ok();
    let patch = json!([
        {"op": "test", "path": "/spec/limits/x", "value": "1"},
        {"op": "add", "path": "/spec/tags/1", "value": "new"},
        {"op": "add", "path": "/spec/tags/-", "value": "last"},
        {"op": "replace", "path": "/spec/limits/x", "value": "3"},
        {"op": "copy", "from": "/spec/limits/x", "path": "/spec/limits/z"},
        {"op": "move", "from": "/spec/limits/y", "path": "/spec/color"},
        {"op": "remove", "path": "/spec/tags/0"},
    ]);
    let object = widgets.json_patch("a", &patch).await.is(200);
    assert_eq!(
        object["spec"],
        json!({"tags": ["new", "b", "last"], "limits": {"x": "3", "z": "3"}, "color": "2", "size": 3})
    );
}

async fn a_test_that_fails_stops_everything(scope: &Scope) {
    let maps = scope.config_maps().await;
    let before = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let patch = json!([
        {"op": "add", "path": "/data/y", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "other"},
    ]);
    maps.json_patch("a", &patch).await.refused(422, "Invalid");
    assert_eq!(maps.get("a").await.ok(), before);
}

async fn nonexistent_paths_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    for operation in [
        json!({"op": "remove", "path": "/data/none"}),
        json!({"op": "add", "path": "/none/x", "value": "1"}),
        json!({"op": "remove", "path": "/metadata/labels/x"}),
    ] {
        let answer = maps.json_patch("a", &json!([operation])).await;
        assert_eq!(answer.status, 422, "{operation}: {}", answer.text);
    }
}

async fn malformed_patches_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    for patch in [json!({"op": "add"}), json!("text"), json!([{"op": "explode", "path": "/data/x"}])] {
        let answer = maps.json_patch("a", &patch).await;
        assert!((400..500).contains(&answer.status), "{patch}: {} {}", answer.status, answer.text);
    }
    for patch in [json!([]), json!("text")] {
        let answer = maps.merge("a", &patch).await;
        assert!((400..500).contains(&answer.status), "{patch}: {} {}", answer.status, answer.text);
    }
    let many: Vec<_> = (0..10_001).map(|_| json!({"op": "test", "path": "/data/x", "value": "1"})).collect();
    maps.json_patch("a", &many.into()).await.refused(413, "RequestEntityTooLarge");
}

async fn pointers_are_unescaped(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"limits": {"a/b~c": "1"}}))).await.ok();
    let patch = json!([{"op": "replace", "path": "/spec/limits/a~1b~0c", "value": "2"}]);
    assert_eq!(widgets.json_patch("a", &patch).await.is(200)["spec"]["limits"], json!({"a/b~c": "2"}));
}

async fn a_merge_patch_replaces_lists_and_removes_nulls(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets
        .create(&scope.widget("a", json!({"parts": [{"name": "p"}, {"name": "q"}], "limits": {"x": "1"}})))
        .await
        .ok();
    let patch = json!({"spec": {"parts": [{"name": "r"}], "limits": {"x": null, "y": {"deep": null}}}});
    widgets.merge("a", &patch).await.invalid("spec.limits.y");
    let patch = json!({"spec": {"parts": [{"name": "r"}], "limits": {"x": null, "y": "2"}, "color": null}});
    let object = widgets.merge("a", &patch).await.is(200);
    assert_eq!(object["spec"], json!({"parts": [{"name": "r", "protocol": "TCP"}], "limits": {"y": "2"}, "size": 3}));
}

async fn a_patch_creates_nothing(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.merge("a", &json!({"data": {}})).await.refused(404, "NotFound");
    maps.json_patch("a", &json!([])).await.refused(404, "NotFound");
    maps.strategic("a", &json!({"data": {}})).await.refused(404, "NotFound");
}

async fn patches_cannot_move_an_object(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    for patch in [
        json!({"metadata": {"name": "b"}}),
        json!({"metadata": {"namespace": "elsewhere"}}),
        json!({"apiVersion": "v2"}),
        json!({"kind": "Secret"}),
        json!({"metadata": {"uid": "another"}}),
    ] {
        let answer = maps.merge("a", &patch).await;
        assert!((400..500).contains(&answer.status), "{patch}: {} {}", answer.status, answer.text);
    }
}
