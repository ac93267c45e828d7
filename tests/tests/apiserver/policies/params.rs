//! The parameters of bindings.

use serde_json::{Value, json};

use super::rules::{Rule, enforce_with};
use crate::support::{Scope, cases, objects::config_map};

cases! {
    "3.23" a_parameter_by_name;
    "3.23" each_selected_parameter_counts;
    "3.23" without_a_parameter_the_action_decides;
    "3.23" a_parameter_of_another_namespace;
    "3.23" a_policy_without_its_kind_denies;
    "3.23" a_binding_without_a_reference_has_no_parameter;
}

/// Secrets may have no more keys than a ConfigMap says.
async fn limited(scope: &Scope, reference: Value) -> Rule<'_> {
    let policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [super::rules::about("", "secrets", &["CREATE"])]},
        "validations": [{
            "expression": "params == null || size(object.data) <= int(params.data.most)",
            "messageExpression": "'more than ' + params.metadata.name + ' of ' + params.kind",
        }],
    });
    enforce_with(scope, policy, json!({"paramRef": reference})).await
}

fn secret(keys: usize) -> Value {
    let data: serde_json::Map<String, Value> = (0..keys).map(|key| (format!("k{key}"), "".into())).collect();
    json!({"metadata": {"generateName": "s-"}, "data": data})
}

fn limit(name: &str, most: u32) -> Value {
    let mut object = config_map(name, json!({"most": most.to_string()}));
    object["metadata"]["labels"] = json!({"limit": "yes"});
    object
}

async fn a_parameter_by_name(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&limit("two", 2)).await.is(201);
    let rule = limited(scope, json!({"name": "two", "parameterNotFoundAction": "Deny"})).await;
    let secrets = scope.secrets().await;
    secrets.create(&secret(2)).await.is(201);
    assert_eq!(rule.denies(secrets.create(&secret(3)).await), "more than two of ConfigMap");
}

async fn each_selected_parameter_counts(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&limit("two", 2)).await.is(201);
    maps.create(&limit("four", 4)).await.is(201);
    maps.create(&config_map("none", json!({"most": "0"}))).await.is(201);
    let selector = json!({"matchLabels": {"limit": "yes"}});
    let rule = limited(scope, json!({"selector": selector, "parameterNotFoundAction": "Deny"})).await;
    let secrets = scope.secrets().await;
    secrets.create(&secret(2)).await.is(201);
    assert_eq!(rule.denies(secrets.create(&secret(3)).await), "more than two of ConfigMap");
}

async fn without_a_parameter_the_action_decides(scope: &Scope) {
    let secrets = scope.secrets().await;
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    for (reference, action) in [
        (json!({"name": "absent"}), "Deny"),
        (json!({"selector": {"matchLabels": {"absent": "yes"}}}), "Deny"),
        (json!({"name": "absent"}), "Allow"),
    ] {
        let mut reference = reference;
        reference["parameterNotFoundAction"] = json!(action);
        let rule = limited(scope, reference).await;
        let answer = secrets.create(&secret(9)).await;
        if action == "Deny" {
            assert_eq!(rule.denies(answer), missing);
        } else {
            answer.is(201);
        }
        rule.end().await;
    }
}

async fn a_parameter_of_another_namespace(scope: &Scope) {
    let other = scope.another_namespace("limits").await;
    let limits = crate::support::Collection::namespaced(scope.http(), "v1", &other, "configmaps");
    limits.create(&limit("one", 1)).await.is(201);
    let reference = json!({"name": "one", "namespace": other, "parameterNotFoundAction": "Deny"});
    let rule = limited(scope, reference).await;
    assert_eq!(rule.denies(scope.secrets().await.create(&secret(2)).await), "more than one of ConfigMap");
}

async fn a_policy_without_its_kind_denies(scope: &Scope) {
    let policy = json!({
        "paramKind": {"apiVersion": "absent.conformance.example.com/v1", "kind": "Limit"},
        "validations": [{"expression": "true"}],
    });
    let name = scope.name("rule");
    let namespace = scope.namespace().await;
    let maps = scope.config_maps().await;
    // The policy cannot be probed as others are: it denies everything for this reason.
    let mut spec = policy;
    spec["matchConstraints"] = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "resourceRules": [super::rules::about("", "configmaps", &["CREATE"])]});
    let bound = json!({"policyName": name, "validationActions": ["Deny"]});
    for (collection, spec) in [(super::rules::POLICIES, spec), (super::rules::BINDINGS, bound)] {
        scope.remove_later(format!("{collection}/{name}"));
        scope.http().post(collection, &scope.mark(json!({"metadata": {"name": name}, "spec": spec}))).await.is(201);
    }
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
    let waiting = async {
        loop {
            tick.tick().await;
            let answer = maps.create_with("dryRun=All", &config_map("a", json!({}))).await;
            if answer.status != 201 {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(crate::support::http::PATIENCE, waiting).await.expect("it is denied");
    let status = answer.refused(422, "Invalid");
    let message = format!(
        "ValidatingAdmissionPolicy '{name}' denied request: failed to configure policy: failed to find resource \
         referenced by paramKind: 'absent.conformance.example.com/v1, Kind=Limit'"
    );
    assert!(status["message"].as_str().unwrap().ends_with(&message), "{status}");
}

async fn a_binding_without_a_reference_has_no_parameter(scope: &Scope) {
    limited(scope, json!(null)).await;
    scope.secrets().await.create(&secret(9)).await.is(201);
}
