//! What policies decide.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_validation_that_does_not_hold_denies() {
    let small = set(
        json!({"validations": [
            {"expression": "object.spec.size < 5", "message": " too large ", "reason": "Forbidden"},
            {"expression": "object.spec.size < 3", "messageExpression": "'size ' + string(object.spec.size)"},
            {"expression": " object.spec.size < 2 "},
            {"expression": "object.spec.size < 1", "messageExpression": "'a\\nb'", "message": "instead"},
            {"expression": "object.spec.size >= 0", "messageExpression": "object.missing + 'x'"},
        ]}),
        json!({}),
    );
    for (size, message) in
        [(0, ""), (1, "instead"), (2, "failed expression: object.spec.size < 2"), (4, "size 4"), (5, "too large")]
    {
        assert_eq!(create(size).denied(&small), message, "{size}");
    }
    let denial = create(5).ask(&small).denial.unwrap();
    assert_eq!(denial.message, "ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: too large");
    assert_eq!(denial.reason, "Forbidden");
    assert_eq!(create(4).ask(&small).denial.unwrap().reason, "Invalid");
}

#[test]
fn variables_have_their_values() {
    for expression in [
        "object.spec.size == 1 && oldObject == null && object.apiVersion == 'example.com/v1'",
        "request.operation == 'CREATE' && request.name == 'bear' && request.namespace == 'shop' && request.dryRun",
        "request.kind == {'group': 'example.com', 'version': 'v1', 'kind': 'Toy'} && request.requestKind == request.kind",
        "request.resource.resource == 'toys' && request.requestResource.version == 'v1' && !has(request.subResource)",
        "request.userInfo.username == 'jane' && request.userInfo.groups == ['crew'] && !has(request.userInfo.uid)",
        "request.options.kind == 'CreateOptions'",
        "namespaceObject.metadata.labels.team == 'a' && namespaceObject.status.phase == 'Active'",
        "!has(namespaceObject.metadata.managedFields)",
        "!authorizer.requestResource.check('create').allowed()",
        "authorizer.requestResource.check('create').reason() == 'jane create'",
        "authorizer.serviceAccount('shop', 'robot').group('').resource('pods').namespace('shop').name('a').check('get').allowed()",
        "!authorizer.group('').resource('pods').subresource('log').check('get').errored()",
        "authorizer.path('/healthz').check('get').error() == ''",
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list').reason() == 'jane list'",
    ] {
        assert_eq!(create(1).denied(&holds(expression)), "", "{expression}");
    }
    let boss = Asked { user: "boss", ..create(1) };
    assert_eq!(boss.denied(&holds("authorizer.requestResource.check('create').allowed()")), "");
    let update = Asked { operation: Operation::Update, old: Some(toy(2)), ..create(1) };
    assert_eq!(update.denied(&holds("oldObject.spec.size == 2 && request.operation == 'UPDATE'")), "");
    let delete = Asked { operation: Operation::Delete, object: None, old: Some(toy(2)), ..create(1) };
    assert_eq!(delete.denied(&holds("object == null && oldObject.spec.size == 2")), "");
    let cluster_scoped = Asked { namespace: "", ..create(1) };
    assert_eq!(cluster_scoped.denied(&holds("namespaceObject == null && !has(request.namespace)")), "");
}

#[test]
fn errors_are_decided_by_the_failure_policy() {
    for (expression, message) in [
        ("object.spec.color == 'red'", "expression 'object.spec.color == 'red'' resulted in error: no such key: color"),
        (
            "authorizer.path(' ').check('get').allowed()",
            "expression 'authorizer.path(' ').check('get').allowed()' resulted in error: path must not be empty",
        ),
        (
            "authorizer.serviceAccount('A', 'b').path('/').check('get').allowed()",
            "expression 'authorizer.serviceAccount('A', 'b').path('/').check('get').allowed()' resulted in error: Invalid service account namespace",
        ),
        (
            "object >",
            "compilation error: compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'",
        ),
        (
            "[1, 2, 3].all(x, authorizer.path('/').check('get').allowed() || true)",
            "expression '[1, 2, 3].all(x, authorizer.path('/').check('get').allowed() || true)' resulted in error: operation cancelled: actual cost limit exceeded",
        ),
    ] {
        let denied = create(1).denied(&holds(expression));
        assert!(denied.starts_with(message), "{denied}");
        let ignored = set(json!({"failurePolicy": "Ignore", "validations": [{"expression": expression}]}), json!({}));
        assert_eq!(create(1).ask(&ignored), Admission::default(), "{expression}");
    }
    let ignored = set(json!({"failurePolicy": "Ignore", "validations": [{"expression": "false"}]}), json!({}));
    assert_eq!(create(1).denied(&ignored), "failed expression: false");
}

#[test]
fn variables_are_lazy_and_composed() {
    let policy = |validations: Value| {
        let variables = json!([
            {"name": "size", "expression": "object.spec.size"}, {"name": "twice", "expression": "variables.size * 2"},
            {"name": "broken", "expression": "object.spec.color"},
        ]);
        set(json!({"variables": variables, "validations": validations}), json!({}))
    };
    assert_eq!(
        create(2).denied(&policy(json!([{"expression": "variables.twice == 4 || variables.broken == ''"}]))),
        ""
    );
    let broken = policy(json!([{"expression": "variables.broken == 'red'"}]));
    let message = "expression 'variables.broken == 'red'' resulted in error: composited variable \"broken\" fails to evaluate: no such key: color";
    assert_eq!(create(2).denied(&broken), message);
    let message = policy(json!([{"expression": "false", "messageExpression": "'twice ' + string(variables.twice)"}]));
    assert_eq!(create(2).denied(&message), "twice 4");
    let authorized = set(
        json!({"variables": [{"name": "may", "expression": "authorizer.path('/').check('get').allowed()"}],
            "validations": [{"expression": "false", "messageExpression": "string(variables.may)", "message": "plain"}]}),
        json!({}),
    );
    assert_eq!(create(2).denied(&authorized), "plain", "messages cannot ask the authorizer");
}

#[test]
fn each_parameter_is_evaluated() {
    let bound = |reference: Value| {
        set(
            json!({
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "validations": [{"expression": "params == null || object.spec.size <= int(params.data.most)",
                    "messageExpression": "params == null ? 'none' : 'more than ' + params.metadata.name"}],
            }),
            json!({"paramRef": reference}),
        )
    };
    for (reference, size, message) in [
        (json!({"name": "small", "parameterNotFoundAction": "Deny"}), 1, ""),
        (json!({"name": "small", "parameterNotFoundAction": "Deny"}), 2, "more than small"),
        (json!({"selector": {}, "parameterNotFoundAction": "Deny"}), 2, "more than small"),
        (json!({"selector": {"matchLabels": {"size": "large"}}, "parameterNotFoundAction": "Deny"}), 2, ""),
        (json!({"name": "other", "namespace": "yard", "parameterNotFoundAction": "Deny"}), 7, "more than other"),
        (json!({"name": "other", "parameterNotFoundAction": "Allow"}), 7, ""),
        (json!({"selector": {"matchLabels": {"size": "none"}}, "parameterNotFoundAction": "Allow"}), 7, ""),
        (json!(null), 7, ""),
    ] {
        assert_eq!(create(size).denied(&bound(reference.clone())), message, "{reference} {size}");
    }
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    for reference in [json!({"name": "other"}), json!({"selector": {"matchLabels": {"size": "none"}}})] {
        let mut reference = reference;
        reference["parameterNotFoundAction"] = json!("Deny");
        assert_eq!(create(1).denied(&bound(reference)), missing);
    }
    let elsewhere = Asked { namespace: "", ..create(1) };
    let message = "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
    assert_eq!(elsewhere.denied(&bound(json!({"name": "small", "parameterNotFoundAction": "Allow"}))), message);
    let unknown = set(
        json!({"paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"}, "validations": [{"expression": "true"}]}),
        json!({}),
    );
    let message = "ValidatingAdmissionPolicy 'rule' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'";
    assert_eq!(create(1).denied(&unknown), message);
}

#[test]
fn actions_say_what_follows() {
    let with = |actions: Value| {
        let validations = json!([{"expression": "object.spec.size < 1", "message": "large"}, {"expression": "object.spec.size < 1", "message": "large"}]);
        set(json!({"validations": validations}), json!({"validationActions": actions}))
    };
    let warned = create(1).ask(&with(json!(["Warn", "Audit"])));
    assert_eq!(warned.denial, None);
    let warning = "Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'bound': large";
    assert_eq!(warned.warnings, [warning], "each once");
    assert_eq!(create(1).ask(&with(json!(["Audit"]))), Admission::default());
    assert!(create(1).ask(&with(json!(["Deny", "Audit"]))).denial.is_some());
}

#[test]
fn errors_of_annotations_deny() {
    let with = |expression: &str, failure: &str| {
        let annotations = json!([{"key": "k", "valueExpression": expression}]);
        set(json!({"failurePolicy": failure, "auditAnnotations": annotations}), json!({"validationActions": ["Audit"]}))
    };
    assert_eq!(create(1).ask(&with("'size ' + string(object.spec.size)", "Fail")), Admission::default());
    assert_eq!(create(1).ask(&with("null", "Fail")), Admission::default());
    let denied = create(1).denied(&with("'a' + object.missing", "Fail"));
    assert_eq!(denied, "expression ''a' + object.missing' resulted in error: no such key: missing");
    assert_eq!(create(1).ask(&with("'a' + object.missing", "Ignore")), Admission::default());
}

#[test]
fn policies_change_and_end() {
    let mut set = holds("false");
    assert!(!set.is_empty());
    let spec = |expression: &str| {
        let resource_rules =
            json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]);
        json!({"metadata": {"name": "rule"}, "spec": {"matchConstraints": {"resourceRules": resource_rules}, "validations": [{"expression": expression}]}})
    };
    set.put_policy(&spec("true"));
    assert_eq!(create(1).denied(&set), "");
    let compiled = |set: &PolicySet| {
        let (policy, _) = set.bound().next().unwrap();
        std::ptr::from_ref(policy.compiled(policy.spec.as_ref().unwrap()))
    };
    let before = compiled(&set);
    set.put_policy(&spec("true"));
    assert_eq!(compiled(&set), before, "what says the same is not compiled again");
    set.put_policy(&json!({"metadata": {"name": "rule"}, "spec": {"validations": 1}}));
    assert!(create(1).denied(&set).contains("failed to configure policy"));
    set.put_policy(&spec("true"));
    set.put_binding(&json!({"metadata": {"name": "bound"}, "spec": {"policyName": "rule", "validationActions": 1}}));
    assert!(create(1).denied(&set).contains("failed to configure binding"));
    set.remove_binding(&json!({"metadata": {"name": "bound"}}));
    assert!(set.is_empty());
}
