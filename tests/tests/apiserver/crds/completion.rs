//! Pruning and defaulting.

use serde_json::{Value, json};

use crate::support::{
    Collection, JSON_PATCH, Scope, cases,
    objects::{CRDS, version},
};

cases! {
    "3.18" unknown_fields_are_pruned;
    "3.18" preserved_unknown_fields_are_not_pruned;
    "3.18" embedded_objects_are_checked_and_pruned;
    "3.18" pruning_can_resume_below_a_preserving_node;
    "3.18" defaults_are_set_on_writes;
    "3.18" defaults_are_set_on_reads;
    "3.18" defaults_apply_where_the_parent_exists;
    "3.18" nulls_are_pruned_replaced_or_kept;
    "3.18" a_required_field_with_a_default_may_be_left_out;
    "3.18" field_names_are_case_sensitive;
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

async fn stored(scope: &Scope, things: &Collection, spec: Value) -> Value {
    things.create(&scope.own_widget("a", json!({"spec": spec}))).await.is(201)["spec"].clone()
}

async fn unknown_fields_are_pruned(scope: &Scope) {
    let widgets = scope.widgets().await;
    let mut object =
        scope.widget("a", json!({"unknown": 1, "nested": {"a": "1", "z": "2"}, "parts": [{"name": "p", "weight": 1}]}));
    object["other"] = json!({"x": 1});
    let created = widgets.create(&object).await.is(201);
    assert_eq!(created.get("other"), None);
    assert_eq!(created["spec"], json!({"nested": {"a": "1"}, "parts": [{"name": "p", "protocol": "TCP"}], "size": 3}));
    assert_eq!(widgets.get("a").await.ok(), created);
}

async fn preserved_unknown_fields_are_not_pruned(scope: &Scope) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"known": {"type": "integer"}}});
    let things = scope
        .create_widget_crd(object(json!({"spec": object(json!({"open": open, "shut": {"type": "object"}}))})))
        .await;
    let spec = stored(scope, &things, json!({"open": {"any": {"thing": [1]}, "known": 2}, "shut": {"x": 1}})).await;
    assert_eq!(spec, json!({"open": {"any": {"thing": [1]}, "known": 2}, "shut": {}}));
    let wrong = scope.own_widget("b", json!({"spec": {"open": {"known": "text"}}}));
    things.create(&wrong).await.invalid("spec.open.known");
}

async fn embedded_objects_are_checked_and_pruned(scope: &Scope) {
    let template =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let things = scope.create_widget_crd(object(json!({"spec": object(json!({"template": template}))}))).await;
    let embedded = |template: Value| scope.own_widget("a", json!({"spec": {"template": template}}));
    things.create(&embedded(json!({"data": {}}))).await.invalid("spec.template.apiVersion");
    let good = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"x": "1"}});
    let created = things.create(&embedded(good.clone())).await.is(201);
    assert_eq!(created["spec"]["template"], good);
}

async fn pruning_can_resume_below_a_preserving_node(scope: &Scope) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"shut": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    let things = scope.create_widget_crd(object(json!({"spec": open}))).await;
    let spec = stored(scope, &things, json!({"any": 1, "shut": {"a": "1", "b": "2"}})).await;
    assert_eq!(spec, json!({"any": 1, "shut": {"a": "1"}}));
}

async fn defaults_are_set_on_writes(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({"ports": [{"port": 80}]}))).await.is(201);
    assert_eq!(created["spec"], json!({"ports": [{"port": 80, "protocol": "TCP"}], "size": 3}));
    let changed = widgets.json_patch("a", &json!([{"op": "remove", "path": "/spec/size"}])).await.ok();
    assert_eq!((&changed["spec"]["size"], version(&changed)), (&json!(3), version(&created)));
    let without = json!({"apiVersion": created["apiVersion"], "kind": "Widget", "metadata": {"name": "b"}});
    let without = widgets.create(&without).await.is(201);
    assert_eq!(without.get("spec"), None, "a default does not make its parent");
}

async fn defaults_are_set_on_reads(scope: &Scope) {
    let things = scope.create_widget_crd(object(json!({"spec": object(json!({"size": {"type": "integer"}}))}))).await;
    let created = things.create(&scope.own_widget("a", json!({"spec": {}}))).await.is(201);
    let crd = format!("{CRDS}/widgets.{}", scope.group());
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/default";
    scope.http().patch(&crd, JSON_PATCH, &json!([{"op": "add", "path": path, "value": 7}])).await.ok();
    let read = things.until("a", "completed by the default", |object| object["spec"]["size"] == 7).await;
    assert_eq!(version(&read), version(&created), "nothing was written");
    assert_eq!(things.list("").await.ok()["items"][0]["spec"]["size"], 7);
    let mut events = things.watch("").await;
    assert_eq!(events.expect().await.object["spec"]["size"], 7);
}

async fn defaults_apply_where_the_parent_exists(scope: &Scope) {
    let inner = object(json!({"x": {"type": "integer", "default": 1}}));
    let made = json!({"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 1}}});
    let each = json!({"type": "object", "additionalProperties": inner});
    let things = scope
        .create_widget_crd(object(json!({"spec": object(json!({"absent": inner, "made": made, "each": each}))})))
        .await;
    let spec = stored(scope, &things, json!({"each": {"k": {}}})).await;
    assert_eq!(spec, json!({"made": {"x": 1}, "each": {"k": {"x": 1}}}));
}

async fn nulls_are_pruned_replaced_or_kept(scope: &Scope) {
    let fields = object(json!({
        "plain": {"type": "string"},
        "nullable": {"type": "string", "nullable": true},
        "defaulted": {"type": "string", "default": "x"},
        "both": {"type": "string", "nullable": true, "default": "x"},
    }));
    let things = scope.create_widget_crd(object(json!({"spec": fields}))).await;
    let spec = stored(scope, &things, json!({"plain": null, "nullable": null, "defaulted": null, "both": null})).await;
    assert_eq!(spec, json!({"nullable": null, "defaulted": "x", "both": null}));
}

async fn a_required_field_with_a_default_may_be_left_out(scope: &Scope) {
    let mut fields = object(json!({"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}));
    fields["required"] = json!(["a", "b"]);
    let things = scope.create_widget_crd(object(json!({"spec": fields}))).await;
    things.create(&scope.own_widget("a", json!({"spec": {}}))).await.invalid("spec.b");
    assert_eq!(stored(scope, &things, json!({"b": "y"})).await, json!({"a": "x", "b": "y"}));
}

async fn field_names_are_case_sensitive(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({"Color": "red"}))).await.is(201);
    assert_eq!(created["spec"], json!({"size": 3}));
}
