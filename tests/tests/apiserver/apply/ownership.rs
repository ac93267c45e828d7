//! Field ownership, the removal of fields without an owner, and conflicts.

use serde_json::{Value, json};

use crate::support::{
    Answer, Scope, cases,
    objects::{config_map, entry},
};

cases! {
    "3.07" an_omitted_field_is_removed;
    "3.07" a_field_that_another_applies_stays;
    "3.07" a_field_that_another_updated_stays;
    "3.07" an_empty_parent_is_removed_with_its_last_field;
    "3.07" a_field_that_was_never_owned_is_not_removed;
    "3.07" a_default_comes_back_when_its_field_is_left_out;
    "3.07" a_conflict_names_manager_and_field;
    "3.07" conflicts_with_several_managers_are_listed;
    "3.07" a_conflict_with_an_update_names_its_version;
    "3.07" force_takes_the_field_over;
    "3.07" equal_values_are_shared;
    "3.07" one_manager_is_one_owner_for_all_users;
    "3.07" apply_and_update_of_one_manager_are_two_owners;
    "3.07" an_update_takes_a_field_without_a_conflict;
    "3.07" a_null_does_not_remove_a_field;
    "4" omitted_fields_do_not_remain;
}

async fn apply(scope: &Scope, manager: &str, spec: Value) -> Answer {
    scope.widgets().await.apply("a", manager, &scope.widget("a", spec)).await
}

async fn force(scope: &Scope, manager: &str, spec: Value) -> Value {
    scope.widgets().await.apply("a?force=true", manager, &scope.widget("a", spec)).await.is(200)
}

async fn an_omitted_field_is_removed(scope: &Scope) {
    apply(scope, "one", json!({"color": "red", "limits": {"cpu": "1", "memory": "2"}})).await.is(201);
    let object = apply(scope, "one", json!({"limits": {"cpu": "1"}})).await.is(200);
    assert_eq!(object["spec"], json!({"limits": {"cpu": "1"}, "size": 3}));
    let owned = &entry(&object, "one", "Apply", "").unwrap()["fieldsV1"];
    assert_eq!(owned, &json!({"f:spec": {"f:limits": {"f:cpu": {}}}}));
}

async fn a_field_that_another_applies_stays(scope: &Scope) {
    apply(scope, "one", json!({"color": "red", "nested": {"a": "1"}})).await.is(201);
    apply(scope, "two", json!({"color": "red", "nested": {"b": "2"}})).await.is(200);
    let object = apply(scope, "one", json!({})).await.is(200);
    assert_eq!(object["spec"], json!({"color": "red", "nested": {"b": "2"}, "size": 3}));
    assert_eq!(entry(&object, "one", "Apply", "").unwrap()["fieldsV1"], json!({"f:spec": {}}));
    let mut nothing = scope.widget("a", json!({}));
    nothing.as_object_mut().unwrap().remove("spec");
    let object = scope.widgets().await.apply("a", "one", &nothing).await.is(200);
    assert!(entry(&object, "one", "Apply", "").is_none(), "a manager without fields has no entry: {object}");
    let object = apply(scope, "two", json!({})).await.is(200);
    assert_eq!(object["spec"], json!({"size": 3}));
}

async fn a_field_that_another_updated_stays(scope: &Scope) {
    let widgets = scope.widgets().await;
    apply(scope, "one", json!({"color": "red", "limits": {"cpu": "1"}})).await.is(201);
    widgets.merge("a?fieldManager=two", &json!({"spec": {"limits": {"memory": "2"}}})).await.ok();
    let object = apply(scope, "one", json!({})).await.is(200);
    assert_eq!(object["spec"], json!({"limits": {"memory": "2"}, "size": 3}));
}

async fn an_empty_parent_is_removed_with_its_last_field(scope: &Scope) {
    apply(scope, "one", json!({"nested": {"a": "1"}, "parts": [{"name": "p", "value": "1"}]})).await.is(201);
    let object = apply(scope, "one", json!({"color": "red"})).await.is(200);
    assert_eq!(object["spec"], json!({"color": "red", "size": 3}));
}

async fn a_field_that_was_never_owned_is_not_removed(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"color": "red", "tags": ["x"]}))).await.ok();
    apply(scope, "one", json!({"nested": {"a": "1"}})).await.is(200);
    let object = apply(scope, "one", json!({})).await.is(200);
    assert_eq!(object["spec"], json!({"color": "red", "tags": ["x"], "size": 3}));
}

async fn a_default_comes_back_when_its_field_is_left_out(scope: &Scope) {
    apply(scope, "one", json!({"size": 9})).await.is(201);
    let object = apply(scope, "one", json!({})).await.is(200);
    assert_eq!(object["spec"]["size"], 3);
}

async fn a_conflict_names_manager_and_field(scope: &Scope) {
    apply(scope, "one", json!({"color": "red"})).await.is(201);
    let status = apply(scope, "two", json!({"color": "blue", "size": 4})).await.refused(409, "Conflict");
    assert_eq!(status["message"], r#"Apply failed with 1 conflict: conflict with "one": .spec.color"#);
    assert_eq!(
        status["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.color"}])
    );
    let object = scope.widgets().await.get("a").await.ok();
    assert_eq!(object["spec"], json!({"color": "red", "size": 3}), "nothing of it was written");
}

async fn conflicts_with_several_managers_are_listed(scope: &Scope) {
    apply(scope, "one", json!({"color": "red", "parts": [{"name": "p", "value": "1"}]})).await.is(201);
    apply(scope, "two", json!({"limits": {"cpu": "1"}})).await.is(200);
    let wanted = json!({"color": "blue", "parts": [{"name": "p", "value": "2"}], "limits": {"cpu": "2"}});
    let status = apply(scope, "three", wanted).await.refused(409, "Conflict");
    assert_eq!(
        status["message"],
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.parts[name=\"p\"].value\n\
         conflicts with \"two\":\n- .spec.limits.cpu"
    );
    let mut fields: Vec<&str> =
        status["details"]["causes"].as_array().unwrap().iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    fields.sort_unstable();
    assert_eq!(fields, [".spec.color", ".spec.limits.cpu", ".spec.parts[name=\"p\"].value"]);
}

async fn a_conflict_with_an_update_names_its_version(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create_with("fieldManager=hand", &scope.widget("a", json!({"color": "red"}))).await.ok();
    let status = apply(scope, "one", json!({"color": "blue"})).await.refused(409, "Conflict");
    let group = scope.server().shared_group();
    assert_eq!(
        status["message"],
        format!("Apply failed with 1 conflict: conflict with \"hand\" using {group}/v1: .spec.color")
    );
}

async fn force_takes_the_field_over(scope: &Scope) {
    apply(scope, "one", json!({"color": "red", "size": 4})).await.is(201);
    let object = force(scope, "two", json!({"color": "blue"})).await;
    assert_eq!(object["spec"]["color"], "blue");
    let owned =
        |object: &Value, manager: &str| entry(object, manager, "Apply", "").map(|entry| entry["fieldsV1"].clone());
    assert_eq!(owned(&object, "one"), Some(json!({"f:spec": {"f:size": {}}})));
    assert_eq!(owned(&object, "two"), Some(json!({"f:spec": {"f:color": {}}})));
    apply(scope, "one", json!({"color": "red", "size": 4})).await.refused(409, "Conflict");
    let object = apply(scope, "one", json!({"size": 4})).await.is(200);
    assert_eq!(object["spec"]["color"], "blue", "what was lost is not removed");
}

async fn equal_values_are_shared(scope: &Scope) {
    apply(scope, "one", json!({"color": "red"})).await.is(201);
    let object = apply(scope, "two", json!({"color": "red"})).await.is(200);
    for manager in ["one", "two"] {
        let owned = &entry(&object, manager, "Apply", "").unwrap()["fieldsV1"];
        assert_eq!(owned, &json!({"f:spec": {"f:color": {}}}), "{manager}");
    }
    let status = apply(scope, "two", json!({"color": "blue"})).await.refused(409, "Conflict");
    assert!(status["message"].as_str().unwrap().contains(r#"conflict with "one": .spec.color"#));
}

async fn one_manager_is_one_owner_for_all_users(scope: &Scope) {
    let widgets = scope.widgets().await;
    let other_agent = widgets.through(&scope.http().with("user-agent", "another/1"));
    apply(scope, "one", json!({"color": "red"})).await.is(201);
    let object = other_agent.apply("a", "one", &scope.widget("a", json!({"color": "blue"}))).await.is(200);
    assert_eq!(
        object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["manager"] == "one")
            .count(),
        1
    );
}

async fn apply_and_update_of_one_manager_are_two_owners(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create_with("fieldManager=one", &scope.widget("a", json!({"color": "red"}))).await.ok();
    let object = apply(scope, "one", json!({"color": "red"})).await.is(200);
    assert!(entry(&object, "one", "Update", "").is_some() && entry(&object, "one", "Apply", "").is_some(), "{object}");
    apply(scope, "one", json!({"color": "blue"})).await.refused(409, "Conflict");
}

async fn an_update_takes_a_field_without_a_conflict(scope: &Scope) {
    let widgets = scope.widgets().await;
    apply(scope, "one", json!({"color": "red", "size": 4})).await.is(201);
    let object = widgets.merge("a?fieldManager=hand", &json!({"spec": {"color": "blue"}})).await.ok();
    assert_eq!(entry(&object, "one", "Apply", "").unwrap()["fieldsV1"], json!({"f:spec": {"f:size": {}}}));
    assert_eq!(entry(&object, "hand", "Update", "").unwrap()["fieldsV1"], json!({"f:spec": {"f:color": {}}}));
    let object = widgets.merge("a?fieldManager=hand", &json!({"spec": {"color": null}})).await.ok();
    assert!(entry(&object, "hand", "Update", "").is_none(), "{object}");
}

async fn a_null_does_not_remove_a_field(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let applied = config_map("a", Value::Null);
    assert_eq!(maps.apply("a", "one", &applied).await.ok()["data"], json!({"x": "1"}));
}

async fn omitted_fields_do_not_remain(scope: &Scope) {
    // As JSON merge patch would have it, the second apply would change nothing.
    let maps = scope.config_maps().await;
    maps.apply("a", "one", &config_map("a", json!({"x": "1", "y": "2"}))).await.is(201);
    let object = maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(200);
    assert_eq!(object["data"], json!({"x": "1"}));
    let object =
        maps.apply("a", "one", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).await.ok();
    assert_eq!(object.get("data"), None);
}
