//! `metadata.managedFields`: the content of the entries, and clearing them.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{config_map, entry, pod_template},
};

cases! {
    "3.07" an_entry_has_manager_operation_time_and_fields;
    "3.07" paths_are_written_by_key_value_and_name;
    "3.07" identity_fields_have_no_owner;
    "3.07" the_manager_defaults_to_the_user_agent;
    "3.07" a_list_of_one_empty_entry_clears;
    "3.07" an_empty_list_clears;
    "3.07" after_clearing_the_first_apply_adds_a_before_first_apply_entry;
    "3.07" ownership_can_be_handed_over;
    "3.07" without_entries_updates_are_not_tracked;
    "3.07" malformed_entries_are_refused;
    "3.07" many_updaters_are_merged_into_one;
}

async fn an_entry_has_manager_operation_time_and_fields(scope: &Scope) {
    let maps = scope.config_maps().await;
    let object = maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(201);
    let mut entries = object["metadata"]["managedFields"].clone();
    let time = entries[0].as_object_mut().unwrap().remove("time").unwrap();
    assert_eq!(
        entries,
        json!([{"manager": "one", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:x": {}}}}])
    );
    let time = time.as_str().unwrap();
    assert!(time.len() == "2006-01-02T15:04:05Z".len() && time.ends_with('Z'), "{time}");

    let object = maps.create_with("fieldManager=hand", &config_map("b", json!({"x": "1"}))).await.ok();
    assert_eq!(entry(&object, "hand", "Update", "").unwrap()["fieldsV1"], json!({"f:data": {".": {}, "f:x": {}}}));
}

async fn paths_are_written_by_key_value_and_name(scope: &Scope) {
    let spec = json!({"tags": ["x"], "steps": ["s"], "parts": [{"name": "p", "value": "1"}],
        "ports": [{"port": 80}], "selector": {"a": "b"}, "limits": {"cpu": "1"}});
    let object = scope.widgets().await.apply("a", "one", &scope.widget("a", spec)).await.is(201);
    let owned = &entry(&object, "one", "Apply", "").unwrap()["fieldsV1"]["f:spec"];
    assert_eq!(
        owned,
        &json!({
            "f:tags": {"v:\"x\"": {}},
            "f:steps": {},
            "f:parts": {"k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:value": {}}},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:selector": {},
            "f:limits": {"f:cpu": {}},
        })
    );
    let containers = json!([{"name": "c", "image": "a:1", "ports": [{"containerPort": 80}],
        "env": [{"name": "E", "value": "1"}]}]);
    let object = scope.pod_templates().await.apply("a", "one", &pod_template("a", containers)).await.is(201);
    let owned = &entry(&object, "one", "Apply", "").unwrap()["fieldsV1"]["f:template"]["f:spec"]["f:containers"];
    assert_eq!(
        owned,
        &json!({"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            "f:env": {"k:{\"name\":\"E\"}": {".": {}, "f:name": {}, "f:value": {}}}}})
    );
}

async fn identity_fields_have_no_owner(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = config_map("a", json!({}));
    object["metadata"]["labels"] = json!({"x": "y"});
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let object = maps.apply("a", "one", &object).await.is(201);
    assert_eq!(
        entry(&object, "one", "Apply", "").unwrap()["fieldsV1"],
        json!({"f:metadata": {"f:labels": {"f:x": {}}, "f:finalizers": {"v:\"example.com/hold\"": {}}}, "f:data": {}}),
    );
    maps.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn the_manager_defaults_to_the_user_agent(scope: &Scope) {
    let maps = scope.config_maps().await.through(&scope.http().with("user-agent", "some-tool/v1.2 (linux) extra"));
    let object = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    assert!(entry(&object, "some-tool", "Update", "").is_some(), "{object}");
}

async fn cleared(scope: &Scope, cleared: Value) -> Value {
    let maps = scope.config_maps().await;
    maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(201);
    let object = maps.merge("a?fieldManager=hand", &json!({"metadata": {"managedFields": cleared}})).await.ok();
    assert_eq!(object["metadata"].get("managedFields"), None, "{object}");
    object
}

async fn a_list_of_one_empty_entry_clears(scope: &Scope) {
    let mut object = cleared(scope, json!([{}])).await;
    object["metadata"]["managedFields"] = json!([{}]);
    object["data"]["y"] = "2".into();
    let object = scope.config_maps().await.put("a?fieldManager=hand", &object).await.ok();
    assert_eq!(object["data"], json!({"x": "1", "y": "2"}));
}

async fn an_empty_list_clears(scope: &Scope) {
    cleared(scope, json!([])).await;
}

async fn after_clearing_the_first_apply_adds_a_before_first_apply_entry(scope: &Scope) {
    cleared(scope, json!([{}])).await;
    let maps = scope.config_maps().await;
    let status = maps.apply("a", "two", &config_map("a", json!({"x": "2"}))).await.refused(409, "Conflict");
    assert_eq!(
        status["message"],
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x"#
    );
    let object = maps.apply("a", "two", &config_map("a", json!({"x": "1", "y": "2"}))).await.is(200);
    assert!(entry(&object, "before-first-apply", "Update", "").is_some(), "{object}");
}

async fn ownership_can_be_handed_over(scope: &Scope) {
    let maps = scope.config_maps().await;
    let mut object = maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(201);
    object["metadata"]["managedFields"][0]["manager"] = "two".into();
    let object = maps.put("a?fieldManager=hand", &object).await.ok();
    assert!(entry(&object, "two", "Apply", "").is_some() && entry(&object, "one", "Apply", "").is_none(), "{object}");
    maps.apply("a", "two", &config_map("a", json!({"x": "2"}))).await.is(200);
}

async fn without_entries_updates_are_not_tracked(scope: &Scope) {
    cleared(scope, json!([{}])).await;
    let maps = scope.config_maps().await;
    let object = maps.merge("a?fieldManager=hand", &json!({"data": {"y": "2"}})).await.ok();
    assert_eq!(object["metadata"].get("managedFields"), None, "until something is applied");
    let object = maps.apply("a", "two", &config_map("a", json!({"z": "3"}))).await.is(200);
    let former = &entry(&object, "before-first-apply", "Update", "").unwrap()["fieldsV1"];
    assert_eq!(former, &json!({"f:data": {".": {}, "f:x": {}, "f:y": {}}}));
}

async fn malformed_entries_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let before = maps.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(201);
    let mut object = before.clone();
    object["metadata"]["managedFields"][0]["fieldsV1"] = json!({"wrong": {}});
    let now = maps.put("a?fieldManager=hand", &object).await.ok();
    assert_eq!(now["metadata"]["managedFields"], before["metadata"]["managedFields"]);
    let mut object = before.clone();
    object["metadata"]["managedFields"][0]["operation"] = "Other".into();
    let now = maps.put("a?fieldManager=hand", &object).await.ok();
    assert_eq!(now["metadata"]["managedFields"], before["metadata"]["managedFields"]);
}

async fn many_updaters_are_merged_into_one(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create_with("fieldManager=first", &config_map("a", json!({"x": "1"}))).await.ok();
    for index in 0..14 {
        let patch = json!({"data": {(format!("key-{index}")): "x"}});
        maps.merge(&format!("a?fieldManager=updater-{index:02}"), &patch).await.ok();
    }
    // Entries of the same second have no order by age, so only their count is certain.
    let object = maps.get("a").await.ok();
    let updaters = object["metadata"]["managedFields"].as_array().unwrap().len();
    assert!(updaters <= 10, "{updaters} entries");
    assert!(entry(&object, "ancient-changes", "Update", "").is_some(), "{object}");
}
