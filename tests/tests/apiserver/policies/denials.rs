//! What a response to a denied request says.

use serde_json::{Value, json};

use super::rules::{enforce, enforce_with};
use crate::support::{Scope, cases, objects::config_map};

cases! {
    "3.23" a_denial_names_policy_binding_and_reason;
    "3.23" messages_come_from_expressions_or_texts;
    "3.23" the_first_validation_that_fails_is_reported;
    "3.23" errors_are_decided_by_the_failure_policy;
    "3.23" warnings_do_not_deny;
    "3.23" nothing_is_seen_of_audits;
    "3.23" all_is_allowed_when_a_binding_ends;
    "3.23" what_costs_too_much_is_denied;
}

fn tall(name: &str, height: &str) -> Value {
    config_map(name, json!({"height": height}))
}

async fn a_denial_names_policy_binding_and_reason(scope: &Scope) {
    let reasons = [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)];
    let validation = |reason: &str| json!({"expression": format!("request.name != '{}'", reason.to_lowercase()), "message": "no", "reason": reason});
    let rule = enforce(scope, reasons.iter().map(|(reason, _)| validation(reason)).collect()).await;
    let maps = scope.config_maps().await;
    for (reason, code) in reasons {
        let name = reason.to_lowercase();
        let status = maps.create(&config_map(&name, json!({}))).await.refused(code, reason);
        let why = format!("ValidatingAdmissionPolicy '{}' with binding '{}' denied request: no", rule.name, rule.name);
        assert_eq!(status["message"], format!("configmaps \"{name}\" is forbidden: {why}"));
        let details = json!({"name": name, "kind": "configmaps", "causes": [{"message": why}]});
        assert_eq!(status["details"], details);
    }
    maps.create(&config_map("other", json!({}))).await.is(201);
}

async fn messages_come_from_expressions_or_texts(scope: &Scope) {
    let height = |limit: u32| format!("!has(object.data.height) || int(object.data.height) < {limit}");
    let rule = enforce(
        scope,
        json!([
            {"expression": height(50), "messageExpression": "'height ' + object.data.height", "message": "unused"},
            {"expression": height(40), "messageExpression": "'a\\nb'", "message": " a text "},
            {"expression": height(30), "messageExpression": "'  '", "message": "another text"},
            {"expression": height(20), "messageExpression": "string(object.data.missing)", "message": "a third text"},
            {"expression": height(10)},
        ]),
    )
    .await;
    let maps = scope.config_maps().await;
    let expression = format!("failed expression: {}", height(10));
    for (height, message) in
        [("50", "height 50"), ("40", "a text"), ("30", "another text"), ("20", "a third text"), ("10", &expression)]
    {
        assert_eq!(rule.denies(maps.create(&tall("a", height)).await), message);
    }
    maps.create(&tall("a", "9")).await.is(201);
}

async fn the_first_validation_that_fails_is_reported(scope: &Scope) {
    let rule = enforce(
        scope,
        json!([
            {"expression": "object.data.a == 'x'", "message": "first", "reason": "Forbidden"},
            {"expression": "object.data.b == 'x'", "message": "second"},
        ]),
    )
    .await;
    let maps = scope.config_maps().await;
    assert_eq!(rule.denies(maps.create(&config_map("a", json!({"a": "", "b": ""}))).await), "first");
    assert_eq!(rule.denies(maps.create(&config_map("a", json!({"a": "x", "b": ""}))).await), "second");
    maps.create(&config_map("a", json!({"a": "x", "b": "x"}))).await.is(201);
}

async fn errors_are_decided_by_the_failure_policy(scope: &Scope) {
    let maps = scope.config_maps().await;
    for (failure, denied) in [("Fail", true), ("Ignore", false)] {
        let policy = json!({"failurePolicy": failure, "validations": [
            {"expression": "request.name != 'error' || object.data.missing == ''"},
            {"expression": "request.name != 'false'", "message": "false"},
        ]});
        let rule = enforce_with(scope, policy, json!({})).await;
        let answer = maps.create_with("dryRun=All", &config_map("error", json!({"a": "b"}))).await;
        if denied {
            let error = "expression 'request.name != 'error' || object.data.missing == ''' resulted in error: no such key: missing";
            answer.clone().refused(422, "Invalid");
            assert_eq!(rule.denies(answer), error);
        } else {
            answer.is(201);
        }
        assert_eq!(rule.denies(maps.create(&config_map("false", json!({}))).await), "false");
        rule.end().await;
    }
}

async fn warnings_do_not_deny(scope: &Scope) {
    let policy = json!({"validations": [{"expression": "object.data.a == 'x'", "message": "a is \"not\" x"}]});
    let rule = enforce_with(scope, policy, json!({"validationActions": ["Warn", "Audit"]})).await;
    let maps = scope.config_maps().await;
    let answer = maps.create(&config_map("a", json!({"a": "y"}))).await;
    let name = &rule.name;
    let warning =
        format!("Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': a is \"not\" x");
    assert_eq!(answer.warnings(), [warning.as_str()]);
    answer.is(201);
    let none: [&str; 0] = [];
    assert_eq!(maps.merge("a", &json!({"data": {"a": "x"}})).await.warnings(), none);
    let answer = maps.merge("a", &json!({"data": {"a": "y"}})).await;
    assert_eq!(answer.warnings(), [warning.as_str()]);
}

async fn nothing_is_seen_of_audits(scope: &Scope) {
    let policy = json!({
        "validations": [{"expression": "request.name == ''", "message": "seen"}],
        "auditAnnotations": [{"key": "name", "valueExpression": "'name ' + request.name"}],
    });
    enforce_with(scope, policy, json!({"validationActions": ["Audit"]})).await;
    let answer = scope.config_maps().await.create(&config_map("a", json!({}))).await;
    let none: [&str; 0] = [];
    assert_eq!(answer.warnings(), none);
    answer.is(201);
}

async fn all_is_allowed_when_a_binding_ends(scope: &Scope) {
    let rule = enforce(scope, json!([{"expression": "false", "message": "no"}])).await;
    let maps = scope.config_maps().await;
    assert_eq!(rule.denies(maps.create(&config_map("a", json!({}))).await), "no");
    rule.end().await;
    maps.create(&config_map("a", json!({}))).await.is(201);
}

async fn what_costs_too_much_is_denied(scope: &Scope) {
    let every = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))";
    let rule = enforce(scope, json!([{"expression": format!("!has(object.data) || {every}")}])).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("small", json!({"a": "1", "b": "2"}))).await.is(201);
    let many: serde_json::Map<String, Value> = (0..300).map(|index| (format!("key{index}"), "".into())).collect();
    let denied = rule.denies(maps.create(&config_map("large", many.into())).await);
    assert!(denied.ends_with("operation cancelled: actual cost limit exceeded"), "{denied}");
}
