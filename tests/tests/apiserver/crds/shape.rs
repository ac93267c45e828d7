//! Types, limits, formats.

use serde_json::{Value, json};

use crate::support::{Scope, cases};

cases! {
    "3.18" types_are_checked;
    "3.18" integers_and_numbers;
    "3.18" an_integer_or_a_text;
    "3.18" limits_are_checked;
    "3.18" values_are_enumerated;
    "3.18" formats_are_checked;
    "3.18" logic_is_checked;
    "3.18" additional_properties_are_checked;
    "3.18" the_scale_of_a_custom_object;
    "3.18" unchanged_invalid_fields_are_tolerated;
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Asserts that each good value is accepted, and each bad one rejected because of the field.
async fn check(scope: &Scope, schema: Value, good: &[Value], bad: &[Value]) {
    let things = scope.create_widget_crd(object(json!({"spec": object(json!({"x": schema}))}))).await;
    for value in good {
        let answer = things.create_with("dryRun=All", &scope.own_widget("a", json!({"spec": {"x": value}}))).await;
        assert_eq!(answer.status, 201, "{value}: {}", answer.text);
    }
    for value in bad {
        let status = things.create_with("dryRun=All", &scope.own_widget("a", json!({"spec": {"x": value}}))).await;
        let status = status.refused(422, "Invalid");
        // Some checks name the field only in their message.
        assert!(status["message"].as_str().unwrap_or_default().contains("spec.x"), "{value}: {status}");
    }
}

async fn types_are_checked(scope: &Scope) {
    let widgets = scope.widgets().await;
    for (spec, field, found) in [
        (json!({"size": "3"}), "spec.size", "string"),
        (json!({"color": 3}), "spec.color", "integer"),
        (json!({"tags": "a"}), "spec.tags", "string"),
        (json!({"nested": []}), "spec.nested", "array"),
        (json!({"limits": {"cpu": true}}), "spec.limits.cpu", "boolean"),
    ] {
        let cause = widgets.create(&scope.widget("a", spec)).await.invalid(field);
        assert_eq!(cause["reason"], "FieldValueTypeInvalid");
        let message = cause["message"].as_str().unwrap();
        assert!(message.contains("must be of type") && message.contains(found), "{message}");
    }
}

async fn integers_and_numbers(scope: &Scope) {
    check(
        scope,
        json!({"type": "integer"}),
        &[json!(1), json!(-5), json!(9_007_199_254_740_993_i64)],
        &[json!(1.5), json!("1")],
    )
    .await;
}

async fn an_integer_or_a_text(scope: &Scope) {
    let schema = json!({"x-kubernetes-int-or-string": true});
    check(scope, schema, &[json!(1), json!("50%")], &[json!(true), json!(1.5), json!([]), json!({})]).await;
}

async fn limits_are_checked(scope: &Scope) {
    let schema = json!({"type": "object", "maxProperties": 8, "properties": {
        "number": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 10, "multipleOf": 2},
        "text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-zé]+$"},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        "map": {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}},
    }});
    let good = [json!({"number": 2, "text": "éé", "list": [1], "map": {"a": "b"}}), json!({"number": 10})];
    let bad = [
        json!({"number": 0}),
        json!({"number": 12}),
        json!({"number": 3}),
        json!({"text": "a"}),
        json!({"text": "abcde"}),
        json!({"text": "AB"}),
        json!({"list": []}),
        json!({"list": [1, 2, 3]}),
        json!({"map": {}}),
        json!({"map": {"a": "b", "c": "d"}}),
    ];
    check(scope, schema, &good, &bad).await;
}

async fn values_are_enumerated(scope: &Scope) {
    let schema = json!({"type": "string", "enum": ["red", "blue"]});
    check(scope, schema, &[json!("red")], &[json!("green"), json!("")]).await;
    let namespace = scope.namespace().await;
    let path = format!("/apis/{}/v1/namespaces/{namespace}/widgets", scope.group());
    let cause =
        scope.http().post(&path, &scope.own_widget("a", json!({"spec": {"x": "green"}}))).await.invalid("spec.x");
    assert_eq!(cause["reason"], "FieldValueNotSupported");
    let message = cause["message"].as_str().unwrap();
    assert!(message.starts_with(r#"Unsupported value: "green": supported values: "#), "{message}");
    assert!(message.contains(r#""red""#) && message.contains(r#""blue""#), "{message}");
}

async fn formats_are_checked(scope: &Scope) {
    let fields = json!({
        "time": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "id": {"type": "string", "format": "uuid"}, "four": {"type": "string", "format": "ipv4"},
        "range": {"type": "string", "format": "cidr"}, "bytes": {"type": "string", "format": "byte"},
        "other": {"type": "string", "format": "of-nobody"}, "small": {"type": "integer", "format": "int32"},
    });
    let good = [
        json!({"time": "2026-01-01T00:00:00Z"}),
        json!({"time": "2026-01-01T00:00:00.5+02:00"}),
        json!({"day": "2026-01-01"}),
        json!({"id": "5a4e1ea9-0000-4000-8000-000000000000"}),
        json!({"four": "192.0.2.1"}),
        json!({"range": "192.0.2.0/24"}),
        json!({"bytes": "YQ=="}),
        json!({"other": "anything"}),
        json!({"small": 2_147_483_647}),
    ];
    let bad = [
        json!({"time": "yesterday"}),
        json!({"day": "2026-13-01"}),
        json!({"id": "5a4e"}),
        json!({"four": "192.0.2"}),
        json!({"range": "192.0.2.0/33"}),
        json!({"small": 2_147_483_648_i64}),
    ];
    check(scope, object(fields), &good, &bad).await;
}

async fn logic_is_checked(scope: &Scope) {
    let schema = json!({"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"properties": {"a": {"enum": ["never"]}}, "required": ["a"]},
        "allOf": [{"properties": {"c": {"maximum": 5}}}],
    });
    let bad = [json!({}), json!({"a": "1", "b": "1"}), json!({"a": "never"}), json!({"a": "1", "c": 6})];
    check(scope, schema, &[json!({"a": "1"}), json!({"b": "1", "c": 5})], &bad).await;
}

async fn additional_properties_are_checked(scope: &Scope) {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}});
    check(scope, schema, &[json!({}), json!({"a": 1, "b": 2})], &[json!({"a": 0}), json!({"a": "1"})]).await;
}

async fn the_scale_of_a_custom_object(scope: &Scope) {
    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({"replicas": 2}))).await.ok();
    widgets.merge("a/status", &json!({"status": {"replicas": 1, "selector": "app=a"}})).await.ok();
    let scale = widgets.get("a/scale").await.ok();
    assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
    assert_eq!(
        (&scale["spec"], &scale["status"]),
        (&json!({"replicas": 2}), &json!({"replicas": 1, "selector": "app=a"}))
    );
    assert_eq!(scale["metadata"]["uid"], created["metadata"]["uid"]);
    let mut changed = scale.clone();
    changed["spec"]["replicas"] = 7.into();
    assert_eq!(widgets.put("a/scale", &changed).await.ok()["spec"]["replicas"], 7);
    assert_eq!(widgets.get("a").await.ok()["spec"]["replicas"], 7);
    widgets.put("a/scale", &scale).await.refused(409, "Conflict");
}

async fn unchanged_invalid_fields_are_tolerated(scope: &Scope) {
    // Ratcheting: a value that was valid once, and is unchanged, does not block other changes.
    let fields = object(json!({"old": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
        "other": {"type": "string"}}));
    let things = scope.create_widget_crd(object(json!({"spec": fields}))).await;
    things.create(&scope.own_widget("a", json!({"spec": {"old": "LONG", "list": ["LONG"], "other": "x"}}))).await.ok();
    let crd = format!("{}/widgets.{}", crate::support::objects::CRDS, scope.group());
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/old/maxLength";
    let stricter = json!([{"op": "add", "path": path, "value": 2}]);
    scope.http().patch(&crd, crate::support::JSON_PATCH, &stricter).await.ok();
    let probe = scope.own_widget("probe", json!({"spec": {"old": "LONG"}}));
    things.until_refused(&probe).await;
    things.merge("a", &json!({"spec": {"other": "y"}})).await.is(200);
    things.merge("a", &json!({"spec": {"old": "OTHER"}})).await.invalid("spec.old");
    things.merge("a", &json!({"spec": {"old": "ok"}})).await.is(200);
}
