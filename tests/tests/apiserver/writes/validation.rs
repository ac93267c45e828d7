//! Unknown and duplicate fields: rejected, reported as warnings or dropped silently, as the client requests.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Scope, cases, http::JSON, objects::config_map};

cases! {
    "3.05" strict_refuses_unknown_fields_of_built_in_kinds;
    "3.05" strict_refuses_unknown_fields_of_custom_kinds;
    "3.05" strict_refuses_repeated_fields;
    "3.05" warn_reports_each_unknown_field_and_accepts_the_object;
    "3.05" warn_is_the_default;
    "3.05" ignore_drops_unknown_fields_silently;
    "3.05" patches_are_checked_like_creates;
    "3.05" applies_are_checked_like_creates;
    "3.05" known_fields_cause_no_warning;
    "3.05" unknown_values_are_refused;
}

fn unknown() -> Value {
    let mut object = config_map("a", json!({"x": "1"}));
    object["spec"] = json!({"x": 1});
    object["metadata"]["colour"] = "red".into();
    object
}

async fn strict_refuses_unknown_fields_of_built_in_kinds(scope: &Scope) {
    let maps = scope.config_maps().await;
    let status = maps.create_with("fieldValidation=Strict", &unknown()).await.refused(400, "BadRequest");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with(r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: "#)
    );
    for field in [r#"unknown field "metadata.colour""#, r#"unknown field "spec""#] {
        assert!(message.contains(field), "{message}");
    }
    assert_eq!(maps.get("a").await.status, 404);
}

async fn strict_refuses_unknown_fields_of_custom_kinds(scope: &Scope) {
    let widgets = scope.widgets().await;
    let object = scope.widget("a", json!({"colour": "red", "parts": [{"name": "p", "weight": 1}]}));
    let status = widgets.create_with("fieldValidation=Strict", &object).await.refused(400, "BadRequest");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with(r#"Widget in version "v1" cannot be handled as a Widget: strict decoding error: "#),
        "{message}"
    );
    for field in [r#"unknown field "spec.colour""#, r#"unknown field "spec.parts[0].weight""#] {
        assert!(message.contains(field), "{message}");
    }
    let known = widgets.create_with("fieldValidation=Strict", &scope.widget("a", json!({}))).await.is(201);
    let mut changed = known;
    changed["spec"]["colour"] = "red".into();
    widgets.put("a?fieldValidation=Strict", &changed).await.refused(400, "BadRequest");
}

async fn repeated(scope: &Scope, validation: &str) -> Answer {
    let maps = scope.config_maps().await;
    let path = maps.path(&format!("?fieldValidation={validation}")).replace("/?", "?");
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}"#;
    scope.http().send(Method::POST, &path, JSON, body.into()).await
}

async fn strict_refuses_repeated_fields(scope: &Scope) {
    let status = repeated(scope, "Strict").await.refused(400, "BadRequest");
    assert!(
        status["message"].as_str().unwrap().contains(r#"strict decoding error: duplicate field "data.x""#),
        "{status}"
    );
    let answer = repeated(scope, "Warn").await;
    assert_eq!(answer.warnings(), [r#"duplicate field "data.x""#]);
    assert_eq!(answer.is(201)["data"]["x"], "2", "the last one counts");
}

async fn warn_reports_each_unknown_field_and_accepts_the_object(scope: &Scope) {
    let answer = scope.config_maps().await.create_with("fieldValidation=Warn", &unknown()).await;
    let mut warnings = answer.warnings();
    warnings.sort_unstable();
    assert_eq!(warnings, [r#"unknown field "metadata.colour""#, r#"unknown field "spec""#]);
    let created = answer.is(201);
    assert_eq!((created.get("spec"), created["metadata"].get("colour")), (None, None));

    let answer =
        scope.widgets().await.create_with("fieldValidation=Warn", &scope.widget("a", json!({"colour": 1}))).await;
    assert_eq!(answer.warnings(), [r#"unknown field "spec.colour""#]);
    assert_eq!(answer.is(201)["spec"].get("colour"), None);
}

async fn warn_is_the_default(scope: &Scope) {
    let answer = scope.config_maps().await.create(&unknown()).await;
    assert_eq!((answer.status, answer.warnings().len()), (201, 2));
}

async fn ignore_drops_unknown_fields_silently(scope: &Scope) {
    let answer = scope.config_maps().await.create_with("fieldValidation=Ignore", &unknown()).await;
    assert_eq!(answer.warnings(), Vec::<String>::new());
    assert_eq!(answer.is(201).get("spec"), None);
    let answer = repeated(scope, "Ignore").await;
    assert_eq!(answer.warnings(), Vec::<String>::new());
    answer.refused(409, "AlreadyExists");
}

async fn patches_are_checked_like_creates(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let patch = json!({"spec": {"colour": "red"}});
    let cause = widgets.merge("a?fieldValidation=Strict", &patch).await.invalid("patch");
    assert!(
        cause["message"].as_str().unwrap().contains(r#"strict decoding error: unknown field "spec.colour""#),
        "{cause}"
    );
    let answer = widgets.merge("a?fieldValidation=Warn", &patch).await;
    assert_eq!((answer.status, answer.warnings()), (200, vec![r#"unknown field "spec.colour""#.to_owned()]));
    let answer = widgets.merge("a?fieldValidation=Ignore", &patch).await;
    assert_eq!((answer.status, answer.warnings().len()), (200, 0));

    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    let patch = json!([{"op": "add", "path": "/spec", "value": {}}]);
    let cause = maps.json_patch("a?fieldValidation=Strict", &patch).await.invalid("patch");
    assert!(cause["message"].as_str().unwrap().contains(r#"unknown field "spec""#), "{cause}");
    assert_eq!(maps.json_patch("a", &patch).await.warnings(), [r#"unknown field "spec""#]);
}

async fn applies_are_checked_like_creates(scope: &Scope) {
    let widgets = scope.widgets().await;
    let object = scope.widget("a", json!({"colour": "red"}));
    let answer = widgets.apply("a?fieldValidation=Strict", "one", &object).await;
    assert!((400..=500).contains(&answer.status), "{} {}", answer.status, answer.text);
    assert!(answer.text.contains("colour"), "{}", answer.text);
    assert_eq!(widgets.get("a").await.status, 404);
}

async fn known_fields_cause_no_warning(scope: &Scope) {
    let answer = scope.widgets().await.create(&scope.widget("a", json!({"size": 2, "limits": {"any": "key"}}))).await;
    assert_eq!((answer.status, answer.warnings()), (201, Vec::<String>::new()));
    let object = crate::support::objects::deployment("web", 1);
    let answer = scope.collection("apps/v1", "deployments").await.create_with("fieldValidation=Strict", &object).await;
    assert_eq!((answer.status, answer.warnings()), (201, Vec::<String>::new()));
}

async fn unknown_values_are_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    let cause = maps.create_with("fieldValidation=Maybe", &config_map("a", json!({}))).await.invalid("fieldValidation");
    assert_eq!(cause["reason"], "FieldValueNotSupported");
}
