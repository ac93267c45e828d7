//! Which policies and bindings are accepted.

use serde_json::{Value, json};

use super::rules::{BINDINGS, POLICIES, about};
use crate::support::{Answer, Scope, cases};

cases! {
    "3.23" invalid_policies_are_refused;
    "3.23" invalid_expressions_are_refused;
    "3.23" invalid_bindings_are_refused;
    "3.23" defaults_are_filled_in;
}

async fn policy(scope: &Scope, change: Value) -> Answer {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [about("nothing.example.com", "nothing", &["CREATE"])]},
        "validations": [{"expression": "true"}],
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let object = scope.mark(json!({"metadata": {"name": scope.name("rule")}, "spec": spec}));
    scope.http().post(&format!("{POLICIES}?dryRun=All"), &object).await
}

async fn invalid_policies_are_refused(scope: &Scope) {
    let mut wrong = about("", "configmaps", &["READ"]);
    policy(scope, json!({"matchConstraints": {"resourceRules": [wrong.clone()]}}))
        .await
        .invalid("spec.matchConstraints.resourceRules[0].operations[0]");
    wrong["operations"] = json!([]);
    policy(scope, json!({"matchConstraints": {"resourceRules": [wrong]}}))
        .await
        .invalid("spec.matchConstraints.resourceRules[0].operations");
    for (change, field) in [
        (json!({"matchConstraints": null}), "spec.matchConstraints"),
        (json!({"matchConstraints": {"resourceRules": []}}), "spec.matchConstraints.resourceRules"),
        (json!({"failurePolicy": "Maybe"}), "spec.failurePolicy"),
        (json!({"validations": []}), "spec.validations"),
        (json!({"validations": [{"expression": ""}]}), "spec.validations[0].expression"),
        (json!({"validations": [{"expression": "true", "reason": "NotFound"}]}), "spec.validations[0].reason"),
        (json!({"validations": [{"expression": "true", "message": "a\nb"}]}), "spec.validations[0].message"),
        (json!({"variables": [{"name": "a-b", "expression": "1"}]}), "spec.variables[0].name"),
        (json!({"matchConditions": [{"name": "", "expression": "true"}]}), "spec.matchConditions[0].name"),
        (json!({"paramKind": {"apiVersion": "v1", "kind": ""}}), "spec.paramKind.kind"),
        (json!({"auditAnnotations": [{"key": "a b", "valueExpression": "'a'"}]}), "spec.auditAnnotations[0].key"),
    ] {
        policy(scope, change).await.invalid(field);
    }
    policy(scope, json!({})).await.is(201);
}

async fn invalid_expressions_are_refused(scope: &Scope) {
    let validation = |text: &str| json!({"validations": [{"expression": text}]});
    for (change, field, message) in [
        (validation("object >"), "spec.validations[0].expression", "compilation failed"),
        (validation("objekt.a == 1"), "spec.validations[0].expression", "undeclared reference to 'objekt'"),
        (validation("object.a.frobnicate()"), "spec.validations[0].expression", "undeclared reference to 'frobnicate'"),
        (validation("params.a == 1"), "spec.validations[0].expression", "undeclared reference to 'params'"),
        (validation("request.uzer == ''"), "spec.validations[0].expression", "undefined field 'uzer'"),
        (validation("'a'"), "spec.validations[0].expression", "must evaluate to bool"),
        (validation("object.a"), "spec.validations[0].expression", "must evaluate to bool"),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "1"}]}),
            "spec.validations[0].messageExpression",
            "must evaluate to string",
        ),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}]}),
            "spec.validations[0].messageExpression",
            "undeclared reference to 'authorizer'",
        ),
        (
            json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}),
            "spec.variables[0].expression",
            "undefined field 'b'",
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "variables.a"}]}),
            "spec.matchConditions[0].expression",
            "undeclared reference to 'variables'",
        ),
        (
            json!({"auditAnnotations": [{"key": "a", "valueExpression": "1"}]}),
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of",
        ),
    ] {
        let cause = policy(scope, change.clone()).await.invalid(field);
        assert!(cause["message"].as_str().unwrap().contains(message), "{change}: {cause}");
    }
    let params = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "params.a == 1"}]});
    policy(scope, params).await.is(201);
}

async fn invalid_bindings_are_refused(scope: &Scope) {
    let binding = async |change: Value| {
        let mut spec = json!({"policyName": "nothing", "validationActions": ["Deny"]});
        for (field, value) in change.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let object = scope.mark(json!({"metadata": {"name": scope.name("rule")}, "spec": spec}));
        scope.http().post(&format!("{BINDINGS}?dryRun=All"), &object).await
    };
    for (change, field) in [
        (json!({"policyName": ""}), "spec.policyName"),
        (json!({"validationActions": []}), "spec.validationActions"),
        (json!({"validationActions": ["Deny", "Warn"]}), "spec.validationActions"),
        (json!({"validationActions": ["Refuse"]}), "spec.validationActions[0]"),
        (json!({"paramRef": {"parameterNotFoundAction": "Deny"}}), "spec.paramRef"),
        (json!({"paramRef": {"name": "a"}}), "spec.paramRef.parameterNotFoundAction"),
        (json!({"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}}), "spec.paramRef.name"),
    ] {
        binding(change).await.invalid(field);
    }
    binding(json!({})).await.is(201);
}

async fn defaults_are_filled_in(scope: &Scope) {
    let created = policy(scope, json!({})).await.is(201);
    assert_eq!(created["spec"]["failurePolicy"], "Fail");
    let constraints = &created["spec"]["matchConstraints"];
    assert_eq!(constraints["matchPolicy"], "Equivalent");
    assert_eq!((&constraints["namespaceSelector"], &constraints["objectSelector"]), (&json!({}), &json!({})));
    assert_eq!(constraints["resourceRules"][0]["scope"], "*");
}
