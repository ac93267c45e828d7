//! Which requests policies are about.

use serde_json::{Value, json};

use super::*;
use crate::policies::admit;

#[test]
fn match_conditions_limit_a_policy() {
    let policy = |conditions: &[&str], failure: &str| {
        let conditions: Vec<Value> = conditions.iter().map(|text| json!({"name": text, "expression": text})).collect();
        let policy =
            json!({"failurePolicy": failure, "matchConditions": conditions, "validations": [{"expression": "false"}]});
        set(policy, json!({}))
    };
    let error = "expression 'object.a' resulted in error: no such key: a";
    for (conditions, message) in [
        (&["true"][..], "failed expression: false"),
        (&["true", "object.spec.size == 2"], ""),
        (&["object.a == 1", "false"], ""),
    ] {
        assert_eq!(create(1).denied(&policy(conditions, "Fail")), message, "{conditions:?}");
    }
    let (one, two) =
        (policy(&["dyn(object.a) == 1", "true"], "Fail"), policy(&["object.a == 1", "object.a == 2"], "Fail"));
    assert_eq!(create(1).denied(&one), error.replace("'object.a'", "'dyn(object.a) == 1'"));
    let both = format!(
        "[{}, {}]",
        error.replace("'object.a'", "'object.a == 1'"),
        error.replace("'object.a'", "'object.a == 2'")
    );
    assert_eq!(create(1).denied(&two), both);
    assert_eq!(create(1).ask(&policy(&["object.a == 1"], "Ignore")), Admission::default());
}

#[test]
fn rules_select_requests() {
    let rule = |change: Value| {
        let mut rule = json!({"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["toys"]});
        merge(&mut rule, change);
        rule
    };
    let fits = |constraints: Value, asked: &Asked| {
        let mut policy = json!({"matchConstraints": {"resourceRules": [rule(json!({}))], "matchPolicy": "Exact"}, "validations": [{"expression": "false"}]});
        merge(&mut policy["matchConstraints"], constraints.clone());
        let by_policy = !asked.denied(&set(policy.clone(), json!({}))).is_empty();
        // A binding has the same fields.
        let all = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]});
        let limits = policy["matchConstraints"].take();
        policy["matchConstraints"] = all;
        let by_binding = !asked.denied(&set(policy, json!({"matchResources": limits}))).is_empty();
        assert_eq!(by_policy, by_binding, "{constraints}");
        by_policy
    };
    let asked = create(1);
    for (change, expected) in [
        (json!({}), true),
        (json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}), true),
        (json!({"apiGroups": ["apps"]}), false),
        (json!({"apiVersions": ["v2"]}), false),
        (json!({"operations": ["UPDATE", "DELETE", "CONNECT"]}), false),
        (json!({"resources": ["toys/status", "*/scale"]}), false),
        (json!({"resources": ["toys/*"]}), true),
        (json!({"resources": ["*/*"]}), true),
        (json!({"resourceNames": ["bear"]}), true),
        (json!({"resourceNames": ["bull"]}), false),
        (json!({"scope": "Namespaced"}), true),
        (json!({"scope": "Cluster"}), false),
        (json!({"scope": "*"}), true),
    ] {
        assert_eq!(fits(json!({"resourceRules": [rule(change.clone())]}), &asked), expected, "{change}");
        let excluded = json!({"excludeResourceRules": [rule(change.clone())]});
        assert_eq!(fits(excluded, &asked), !expected, "{change}");
    }
    let status = Asked { subresource: "status", ..create(1) };
    for (resource, expected) in [
        ("toys", false),
        ("*", false),
        ("toys/status", true),
        ("*/status", true),
        ("toys/*", true),
        ("toys/scale", false),
    ] {
        assert_eq!(
            fits(json!({"resourceRules": [rule(json!({"resources": [resource]}))]}), &status),
            expected,
            "{resource}"
        );
    }
    for (constraints, expected) in [
        (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), true),
        (json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), false),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}),
            false,
        ),
        (json!({"objectSelector": {"matchLabels": {"soft": "yes"}}}), true),
        (json!({"objectSelector": {"matchExpressions": [{"key": "soft", "operator": "DoesNotExist"}]}}), false),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "soft", "operator": "In", "values": ["no", "yes"]}]}}),
            true,
        ),
    ] {
        assert_eq!(fits(constraints.clone(), &asked), expected, "{constraints}");
    }
    let cluster_scoped = Asked { namespace: "", ..create(1) };
    assert!(fits(json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), &cluster_scoped));
    let relabelled = Asked { operation: Operation::Update, object: Some(json!({})), old: Some(toy(1)), ..create(1) };
    let update = rule(json!({"operations": ["UPDATE"]}));
    assert!(fits(json!({"objectSelector": {"matchLabels": {"soft": "yes"}}, "resourceRules": [update]}), &relabelled));
}

#[test]
fn other_versions_are_converted() {
    let v2 = Asked { version: "v2", object: Some(json!({"apiVersion": "example.com/v2", "spec": {}})), ..create(1) };
    let converted = "object.apiVersion == 'example.com/v1' && request.kind.version == 'v1' && request.requestKind.version == 'v2' \
        && request.resource.version == 'v1' && request.requestResource.version == 'v2'";
    assert_eq!(v2.denied(&holds(converted)), "");
    assert_eq!(v2.denied(&holds("false")), "failed expression: false");
    let mut exact = json!({"validations": [{"expression": "false"}], "matchConstraints": {"matchPolicy": "Exact", "resourceRules": []}});
    exact["matchConstraints"]["resourceRules"] =
        json!([{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["toys"]}]);
    assert_eq!(v2.denied(&set(exact, json!({}))), "");
}

#[test]
fn policies_are_not_about_policies_and_reviews() {
    let mut set = holds("false");
    set.put_policy(&json!({"metadata": {"name": "rule"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]},
        "validations": [{"expression": "false"}]}}));
    let user = User::new("jane", &[]);
    let object = json!({});
    for (group, plural, exempt) in [
        ("admissionregistration.k8s.io", "validatingadmissionpolicies", true),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", true),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", false),
        ("authorization.k8s.io", "subjectaccessreviews", true),
        ("authentication.k8s.io", "tokenreviews", true),
        ("", "configmaps", false),
    ] {
        let attributes = Attributes {
            operation: Operation::Create,
            kind: GroupVersionKind::new(group, "v1", "K"),
            resource: Resource::new(group, "v1", plural),
            subresource: "",
            namespace: "",
            name: "a",
            object: Some(&object),
            old_object: None,
            user: &user,
            dry_run: false,
            options: Value::Null,
        };
        assert_eq!(admit(&set, &attributes, &cluster()).denial.is_none(), exempt, "{plural}");
    }
}
