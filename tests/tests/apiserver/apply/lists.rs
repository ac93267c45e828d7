//! Types of lists and maps in the schema of a custom kind.

use serde_json::{Value, json};

use crate::support::{Scope, cases};

cases! {
    "3.08" a_set_is_shared_by_value;
    "3.08" a_set_holds_no_value_twice;
    "3.08" a_keyed_list_is_shared_by_item;
    "3.08" a_key_of_several_fields_takes_defaults;
    "3.08" items_with_one_key_are_refused;
    "3.08" an_item_without_its_key_is_refused;
    "3.08" an_atomic_list_is_owned_as_a_whole;
    "3.08" a_granular_map_is_shared_by_key;
    "3.08" an_atomic_map_is_owned_as_a_whole;
    "3.08" an_atomic_object_is_owned_as_a_whole;
    "3.08" the_order_of_items_follows_the_applier;
    "4" lists_without_a_schema_type_are_not_guessed;
}

async fn apply(scope: &Scope, manager: &str, spec: Value) -> Value {
    scope.widgets().await.apply("a", manager, &scope.widget("a", spec)).await.ok()["spec"].clone()
}

async fn conflict(scope: &Scope, manager: &str, spec: Value) -> String {
    let status = scope.widgets().await.apply("a", manager, &scope.widget("a", spec)).await.refused(409, "Conflict");
    status["details"]["causes"][0]["field"].as_str().unwrap().to_owned()
}

async fn a_set_is_shared_by_value(scope: &Scope) {
    apply(scope, "one", json!({"tags": ["a", "b"]})).await;
    let spec = apply(scope, "two", json!({"tags": ["b", "c"]})).await;
    assert_eq!(spec["tags"], json!(["a", "b", "c"]));
    let spec = apply(scope, "one", json!({"tags": ["a"]})).await;
    assert_eq!(spec["tags"], json!(["a", "b", "c"]), "two still wants b");
    let spec = apply(scope, "two", json!({"tags": ["c"]})).await;
    assert_eq!(spec["tags"], json!(["a", "c"]));
    let spec = apply(scope, "one", json!({})).await;
    assert_eq!(spec["tags"], json!(["c"]));
}

async fn a_set_holds_no_value_twice(scope: &Scope) {
    let widgets = scope.widgets().await;
    let object = scope.widget("a", json!({"tags": ["a", "a"]}));
    let answer = widgets.apply("a", "one", &object).await;
    assert!(
        (400..=500).contains(&answer.status) && answer.text.contains("duplicate"),
        "{} {}",
        answer.status,
        answer.text
    );
    let cause = widgets.create(&object).await.invalid("spec.tags[1]");
    assert_eq!(cause["reason"], "FieldValueDuplicate");
}

async fn a_keyed_list_is_shared_by_item(scope: &Scope) {
    apply(scope, "one", json!({"parts": [{"name": "p", "value": "1"}, {"name": "q", "value": "1"}]})).await;
    let spec = apply(scope, "two", json!({"parts": [{"name": "p", "port": 80}, {"name": "r", "value": "2"}]})).await;
    let part = |spec: &Value, name: &str| {
        let parts = spec["parts"].as_array().unwrap();
        parts.iter().find(|part| part["name"] == name).cloned()
    };
    assert_eq!(part(&spec, "p"), Some(json!({"name": "p", "value": "1", "port": 80, "protocol": "TCP"})));
    assert_eq!(spec["parts"].as_array().unwrap().len(), 3);
    assert_eq!(
        conflict(scope, "two", json!({"parts": [{"name": "q", "value": "9"}]})).await,
        r#".spec.parts[name="q"].value"#
    );
    let spec = apply(scope, "one", json!({"parts": []})).await;
    assert_eq!(part(&spec, "q"), None);
    assert_eq!(part(&spec, "p"), Some(json!({"name": "p", "port": 80, "protocol": "TCP"})));
}

async fn a_key_of_several_fields_takes_defaults(scope: &Scope) {
    apply(scope, "one", json!({"ports": [{"port": 53, "name": "dns"}]})).await;
    let spec = apply(scope, "two", json!({"ports": [{"port": 53, "protocol": "UDP", "name": "dns-udp"}]})).await;
    assert_eq!(spec["ports"].as_array().unwrap().len(), 2, "{spec}");
    let field = conflict(scope, "two", json!({"ports": [{"port": 53, "protocol": "TCP", "name": "other"}]})).await;
    assert_eq!(field, r#".spec.ports[port=53,protocol="TCP"].name"#);
}

async fn items_with_one_key_are_refused(scope: &Scope) {
    let widgets = scope.widgets().await;
    let object = scope.widget("a", json!({"parts": [{"name": "p"}, {"name": "p", "port": 1}]}));
    let answer = widgets.apply("a", "one", &object).await;
    assert!(
        (400..=500).contains(&answer.status) && answer.text.contains("duplicate"),
        "{} {}",
        answer.status,
        answer.text
    );
    let cause = widgets.create(&object).await.invalid("spec.parts[1]");
    assert_eq!(cause["reason"], "FieldValueDuplicate");
}

async fn an_item_without_its_key_is_refused(scope: &Scope) {
    let widgets = scope.widgets().await;
    let answer = widgets.apply("a", "one", &scope.widget("a", json!({"parts": [{"value": "1"}]}))).await;
    assert!((400..=500).contains(&answer.status), "{} {}", answer.status, answer.text);
    assert_eq!(widgets.get("a").await.status, 404);
}

async fn an_atomic_list_is_owned_as_a_whole(scope: &Scope) {
    apply(scope, "one", json!({"steps": ["a", "b"]})).await;
    assert_eq!(conflict(scope, "two", json!({"steps": ["c"]})).await, ".spec.steps");
    let spec = apply(scope, "one", json!({"steps": ["c"]})).await;
    assert_eq!(spec["steps"], json!(["c"]));
}

async fn a_granular_map_is_shared_by_key(scope: &Scope) {
    apply(scope, "one", json!({"limits": {"cpu": "1", "memory": "1"}})).await;
    let spec = apply(scope, "two", json!({"limits": {"disk": "1"}})).await;
    assert_eq!(spec["limits"], json!({"cpu": "1", "memory": "1", "disk": "1"}));
    assert_eq!(conflict(scope, "two", json!({"limits": {"cpu": "2", "disk": "1"}})).await, ".spec.limits.cpu");
    let spec = apply(scope, "one", json!({"limits": {"cpu": "1"}})).await;
    assert_eq!(spec["limits"], json!({"cpu": "1", "disk": "1"}));
}

async fn an_atomic_map_is_owned_as_a_whole(scope: &Scope) {
    apply(scope, "one", json!({"selector": {"a": "1"}})).await;
    assert_eq!(conflict(scope, "two", json!({"selector": {"b": "2"}})).await, ".spec.selector");
    let spec = apply(scope, "one", json!({"selector": {"b": "2"}})).await;
    assert_eq!(spec["selector"], json!({"b": "2"}));
}

async fn an_atomic_object_is_owned_as_a_whole(scope: &Scope) {
    apply(scope, "one", json!({"whole": {"a": "1"}, "nested": {"a": "1"}})).await;
    assert_eq!(conflict(scope, "two", json!({"whole": {"b": "2"}})).await, ".spec.whole");
    let spec = apply(scope, "two", json!({"nested": {"b": "2"}})).await;
    assert_eq!(spec["nested"], json!({"a": "1", "b": "2"}));
}

async fn the_order_of_items_follows_the_applier(scope: &Scope) {
    apply(scope, "one", json!({"tags": ["a", "b", "c"]})).await;
    let spec = apply(scope, "one", json!({"tags": ["c", "a", "d", "b"]})).await;
    assert_eq!(spec["tags"], json!(["c", "a", "d", "b"]));
}

async fn lists_without_a_schema_type_are_not_guessed(scope: &Scope) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let things = scope.create_widget_crd(open).await;
    let with = |items: Value| scope.own_widget("a", json!({"spec": {"items": items}}));
    things.apply("a", "one", &with(json!([{"name": "a"}]))).await.is(201);
    let status = things.apply("a", "two", &with(json!([{"name": "b"}]))).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".spec.items");
}
