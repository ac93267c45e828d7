//! Status and spec are written separately, by every verb.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{config_map, entry, ingress},
};

cases! {
    "3.04" a_new_object_has_no_status;
    "3.04" a_replace_writes_either_spec_or_status;
    "3.04" merge_patches_write_either_spec_or_status;
    "3.04" json_patches_write_either_spec_or_status;
    "3.04" strategic_patches_write_either_spec_or_status;
    "3.04" applies_write_either_spec_or_status;
    "3.04" the_status_endpoint_of_custom_objects_keeps_their_metadata;
    "3.04" the_status_endpoint_returns_the_object;
    "3.04" the_status_of_a_missing_object_is_not_found;
    "3.04" kinds_without_status_have_no_such_endpoint;
    "3.04" managers_of_the_status_are_recorded_separately;
    "3.04" an_invalid_status_is_refused;
}

fn done() -> Value {
    json!({"phase": "Done"})
}

async fn a_new_object_has_no_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["status"] = done();
    assert_eq!(widgets.create(&object).await.is(201).get("status"), None);
    object["metadata"]["name"] = "b".into();
    assert_eq!(widgets.apply("b", "one", &object).await.is(201).get("status"), None);

    let mut object = ingress("a");
    object["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let created = scope.ingresses().await.create(&object).await.is(201);
    assert_eq!(created["status"], json!({"loadBalancer": {}}));
}

async fn a_replace_writes_either_spec_or_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = widgets.create(&scope.widget("a", json!({"size": 1}))).await.ok();
    object["spec"]["size"] = 2.into();
    object["status"] = done();
    let mut object = widgets.put("a", &object).await.ok();
    assert_eq!((&object["spec"]["size"], object.get("status")), (&json!(2), None));
    object["spec"]["size"] = 3.into();
    object["status"] = done();
    let mut object = widgets.put("a/status", &object).await.ok();
    assert_eq!((&object["spec"]["size"], &object["status"]), (&json!(2), &done()));
    object.as_object_mut().unwrap().remove("status");
    let object = widgets.put("a", &object).await.ok();
    assert_eq!(object["status"], done(), "what is left out stays");
}

async fn merge_patches_write_either_spec_or_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"size": 1}))).await.ok();
    let both = |size: u32| json!({"spec": {"size": size}, "status": done()});
    let object = widgets.merge("a", &both(2)).await.ok();
    assert_eq!((&object["spec"]["size"], object.get("status")), (&json!(2), None));
    let object = widgets.merge("a/status", &both(3)).await.ok();
    assert_eq!((&object["spec"]["size"], &object["status"]), (&json!(2), &done()));
    let object = widgets.merge("a", &json!({"status": null})).await.ok();
    assert_eq!(object["status"], done());
}

async fn json_patches_write_either_spec_or_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"size": 1}))).await.ok();
    let both = |size: u32| json!([{"op": "replace", "path": "/spec/size", "value": size}, {"op": "add", "path": "/status", "value": done()}]);
    let object = widgets.json_patch("a", &both(2)).await.ok();
    assert_eq!((&object["spec"]["size"], object.get("status")), (&json!(2), None));
    let object = widgets.json_patch("a/status", &both(3)).await.ok();
    assert_eq!((&object["spec"]["size"], &object["status"]), (&json!(2), &done()));
}

async fn strategic_patches_write_either_spec_or_status(scope: &Scope) {
    let ingresses = scope.ingresses().await;
    ingresses.create(&ingress("a")).await.ok();
    let both = |class: &str| {
        json!({"spec": {"ingressClassName": class},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
    };
    let object = ingresses.strategic("a", &both("one")).await.ok();
    assert_eq!((&object["spec"]["ingressClassName"], &object["status"]["loadBalancer"]), (&json!("one"), &json!({})));
    let object = ingresses.strategic("a/status", &both("two")).await.ok();
    assert_eq!(object["spec"]["ingressClassName"], "one");
    assert_eq!(object["status"]["loadBalancer"]["ingress"], json!([{"ip": "192.0.2.1"}]));
}

async fn applies_write_either_spec_or_status(scope: &Scope) {
    let widgets = scope.widgets().await;
    let both = |size: u32| {
        let mut object = scope.widget("a", json!({"size": size}));
        object["status"] = done();
        object
    };
    let object = widgets.apply("a", "one", &both(1)).await.is(201);
    assert_eq!(object.get("status"), None);
    let object = widgets.apply("a/status", "two", &both(2)).await.is(200);
    assert_eq!((&object["spec"]["size"], &object["status"]), (&json!(1), &done()));
    let object = widgets.apply("a", "one", &both(1)).await.ok();
    assert_eq!(object["status"], done(), "the main endpoint neither owns nor removes status");
    let owned = &entry(&object, "one", "Apply", "").unwrap()["fieldsV1"];
    assert_eq!((owned.get("f:status"), owned["f:spec"]["f:size"].is_object()), (None, true));
    let owned = &entry(&object, "two", "Apply", "status").unwrap()["fieldsV1"];
    assert_eq!((owned.get("f:spec"), owned["f:status"]["f:phase"].is_object()), (None, true));
}

async fn the_status_endpoint_of_custom_objects_keeps_their_metadata(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let metadata = json!({"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["example.com/x"]});
    let object = widgets.merge("a/status", &json!({"metadata": metadata, "status": done()})).await.ok();
    for field in ["labels", "annotations", "finalizers"] {
        assert_eq!(object["metadata"].get(field), None, "{field}");
    }
    assert_eq!(object["status"], done());
}

async fn the_status_endpoint_returns_the_object(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"size": 4}))).await.ok();
    assert_eq!(widgets.get("a/status").await.ok(), widgets.get("a").await.ok());
    let ingresses = scope.ingresses().await;
    ingresses.create(&ingress("a")).await.ok();
    assert_eq!(ingresses.get("a/status").await.ok(), ingresses.get("a").await.ok());
}

async fn the_status_of_a_missing_object_is_not_found(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object = scope.widget("a", json!({}));
    object["status"] = done();
    widgets.get("a/status").await.refused(404, "NotFound");
    widgets.merge("a/status", &json!({"status": done()})).await.refused(404, "NotFound");
    widgets.apply("a/status", "one", &object).await.refused(404, "NotFound");
    object["metadata"]["resourceVersion"] = "1".into();
    widgets.put("a/status", &object).await.refused(404, "NotFound");
}

async fn kinds_without_status_have_no_such_endpoint(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    assert_eq!(maps.get("a/status").await.status, 404);
    assert_eq!(maps.merge("a/status", &json!({})).await.status, 404);
}

async fn managers_of_the_status_are_recorded_separately(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create_with("fieldManager=one", &scope.widget("a", json!({"size": 1}))).await.ok();
    let object = widgets.merge("a/status?fieldManager=one", &json!({"status": done()})).await.ok();
    let main = entry(&object, "one", "Update", "").expect("an entry for the object");
    let status = entry(&object, "one", "Update", "status").expect("an entry for the status");
    assert_eq!(status["fieldsV1"], json!({"f:status": {".": {}, "f:phase": {}}}));
    assert_eq!(main["fieldsV1"].get("f:status"), None);
    assert!(status["time"].is_string() && status["fieldsType"] == "FieldsV1");
}

async fn an_invalid_status_is_refused(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    widgets.merge("a/status", &json!({"status": {"phase": 1}})).await.invalid("status.phase");
}
