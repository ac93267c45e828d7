//! What expressions see.

use serde_json::{Value, json};

use super::rules::{about, enforce, enforce_with};
use crate::{
    access::users::{grant, rule as permission, user, user_with},
    support::{Scope, cases, objects::config_map},
};

cases! {
    "3.23" the_object_before_and_after;
    "3.23" the_request;
    "3.23" a_generated_name_is_known;
    "3.23" the_options_of_a_request;
    "3.23" the_namespace;
    "3.23" composed_variables_are_lazy;
    "3.23" the_authorizer_decides_for_the_user;
    "3.23" the_authorizer_decides_for_accounts_and_paths;
    "3.23" the_language;
}

/// A validation that shows the value of an expression.
fn shows(text: &str) -> Value {
    json!([{"expression": "request.name == 'policy-probe'", "messageExpression": text}])
}

async fn the_object_before_and_after(scope: &Scope) {
    let text = "(object == null ? 'none' : object.data.a) + ' ' + (oldObject == null ? 'none' : oldObject.data.a) + ' ' \
        + request.operation";
    let policy = json!({
        "matchConstraints": {"resourceRules": [about("", "configmaps", &["*"])]},
        "validations": [{"expression": "request.name == 'policy-probe' || request.dryRun == false",
            "messageExpression": text}],
    });
    let rule = enforce_with(scope, policy, json!({})).await;
    let maps = scope.config_maps().await;
    let map = config_map("a", json!({"a": "1"}));
    assert_eq!(rule.denies(maps.create_with("dryRun=All", &map).await), "1 none CREATE");
    maps.create(&map).await.is(201);
    assert_eq!(rule.denies(maps.merge("a?dryRun=All", &json!({"data": {"a": "2"}})).await), "2 1 UPDATE");
    assert_eq!(rule.denies(maps.delete("a?dryRun=All").await), "none 1 DELETE");
    let changed = json!([{"expression": "object.metadata.uid != '' && object.metadata.creationTimestamp != ''"}]);
    rule.end().await;
    enforce(scope, changed).await;
    maps.create(&config_map("b", json!({}))).await.is(201);
}

async fn the_request(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (name, http) = user_with(scope, json!([permission(&["create"], &["configmaps"])])).await;
    let http = http.with("impersonate-group", "crew").with("impersonate-extra-team", "a");
    let text = "request.name + ' ' + request.namespace + ' ' + request.operation + ' ' + request.kind.kind + ' ' \
        + request.resource.resource + ' ' + (has(request.subResource) ? 'sub' : 'whole') + ' ' \
        + request.userInfo.username + ' ' + ('crew' in request.userInfo.groups ? 'true' : 'false') + ' ' \
        + request.userInfo.extra['team'][0] + ' ' + (request.dryRun ? 'dry' : 'wet')";
    let rule = enforce(scope, shows(text)).await;
    let maps = scope.config_maps().await.through(&http);
    let answer = maps.create(&config_map("a", json!({}))).await;
    let expected = format!("a {namespace} CREATE ConfigMap configmaps whole {name} true a wet");
    assert_eq!(rule.denies(answer), expected);
}

async fn a_generated_name_is_known(scope: &Scope) {
    let policy = json!([
        {"expression": "request.name == object.metadata.name && request.name.size() > 9", "message": "too short"},
    ]);
    let rule = enforce(scope, policy).await;
    let maps = scope.config_maps().await;
    maps.create(&json!({"metadata": {"generateName": "generated-"}})).await.is(201);
    let answer = maps.create(&json!({"metadata": {"generateName": "g-"}})).await;
    let status = answer.clone().refused(422, "Invalid");
    assert!(status["details"]["name"].as_str().unwrap().starts_with("g-"), "{status}");
    assert_eq!(rule.denies(answer), "too short");
}

async fn the_options_of_a_request(scope: &Scope) {
    let text = "request.options.kind + ' ' + request.options.apiVersion + ' ' \
        + (has(request.options.fieldManager) ? request.options.fieldManager : '-') + ' ' \
        + (has(request.options.dryRun) ? request.options.dryRun[0] : '-')";
    let rule = enforce(scope, shows(text)).await;
    let maps = scope.config_maps().await;
    let map = config_map("a", json!({}));
    let answer = maps.create_with("dryRun=All&fieldManager=me", &map).await;
    assert_eq!(rule.denies(answer), "CreateOptions meta.k8s.io/v1 me All");
    assert_eq!(rule.denies(maps.apply("a", "me", &map).await), "CreateOptions meta.k8s.io/v1 me -");
}

async fn the_namespace(scope: &Scope) {
    let namespace = scope.namespace().await;
    let text = "namespaceObject.metadata.name + ' ' + namespaceObject.metadata.labels['kubernetes.io/metadata.name'] + ' ' \
        + namespaceObject.status.phase";
    let rule = enforce(scope, shows(text)).await;
    let answer = scope.config_maps().await.create(&config_map("a", json!({}))).await;
    assert_eq!(rule.denies(answer), format!("{namespace} {namespace} Active"));
}

async fn composed_variables_are_lazy(scope: &Scope) {
    let policy = json!({
        "variables": [
            {"name": "height", "expression": "int(object.data.height)"},
            {"name": "twice", "expression": "variables.height * 2"},
            {"name": "broken", "expression": "object.data.missing"},
        ],
        "validations": [{
            "expression": "variables.twice < 10 || variables.broken == ''",
            "messageExpression": "'twice is ' + string(variables.twice)",
        }, {"expression": "variables.twice < 8", "messageExpression": "'twice is ' + string(variables.twice)"}],
    });
    // The probe has no height, and so is denied by an error.
    let rule = enforce_with(scope, policy, json!({})).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({"height": "3"}))).await.is(201);
    assert_eq!(rule.denies(maps.create(&config_map("b", json!({"height": "4"}))).await), "twice is 8");
    let denied = rule.denies(maps.create(&config_map("c", json!({"height": "5"}))).await);
    let error = "composited variable \"broken\" fails to evaluate: no such key: missing";
    assert!(denied.ends_with(error), "{denied}");
}

async fn the_authorizer_decides_for_the_user(scope: &Scope) {
    let may_approve =
        json!({"apiGroups": ["example.com"], "resources": ["plans", "plans/parts"], "verbs": ["approve"]});
    let rules = json!([permission(&["create"], &["configmaps"]), may_approve]);
    let (_, boss) = user_with(scope, rules).await;
    let clerk = user(scope, &scope.name("clerk"));
    grant(scope, &scope.name("clerk"), json!([permission(&["create"], &["configmaps"])])).await;
    let check = |part: &str| {
        let start = "authorizer.group('example.com').resource('plans')";
        json!({"expression": format!("request.name == 'policy-probe' || {start}{part}.allowed()"), "reason": "Forbidden"})
    };
    let here = ".namespace(request.namespace).check('approve')";
    let maps = scope.config_maps().await;
    for (part, denied) in [
        (here.to_owned(), false),
        (format!(".subresource('parts'){here}"), false),
        (format!(".subresource('other'){here}"), true),
        (format!(".name('any'){here}"), false),
        (".check('approve')".to_owned(), true),
        (".namespace(request.namespace).check('reject')".to_owned(), true),
    ] {
        let rule = enforce(scope, json!([check(&part)])).await;
        let map = config_map("a", json!({}));
        let answer = maps.through(&boss).create_with("dryRun=All", &map).await;
        if denied {
            answer.refused(403, "Forbidden");
        } else {
            answer.is(201);
        }
        maps.through(&clerk).create_with("dryRun=All", &map).await.refused(403, "Forbidden");
        rule.end().await;
    }
    let own = "authorizer.requestResource.check('delete').allowed()";
    let rule = enforce(scope, json!([{"expression": own, "message": "may not delete"}])).await;
    assert_eq!(rule.denies(maps.through(&boss).create(&config_map("a", json!({}))).await), "may not delete");
    maps.create(&config_map("a", json!({}))).await.is(201);
}

async fn the_authorizer_decides_for_accounts_and_paths(scope: &Scope) {
    let namespace = scope.namespace().await;
    let account = format!("system:serviceaccount:{namespace}:robot");
    grant(scope, &account, json!([permission(&["get"], &["secrets"])])).await;
    let may = |verb: &str| {
        format!(
            "authorizer.serviceAccount(request.namespace, 'robot').group('').resource('secrets')\
             .namespace(request.namespace).check('{verb}').allowed()"
        )
    };
    // A decision costs more than a third of what an expression may cost.
    let validations = [
        may("get"),
        format!("!{}", may("list")),
        "authorizer.path('/nowhere').check('get').allowed()".to_owned(),
        "!authorizer.path('/nowhere').check('get').errored()".to_owned(),
        "authorizer.path('/nowhere').check('get').error() == ''".to_owned(),
    ];
    let validations: Vec<Value> = validations.iter().map(|text| json!({"expression": text})).collect();
    let rule = enforce(scope, validations.into()).await;
    scope.config_maps().await.create(&config_map("a", json!({}))).await.is(201);
    rule.end().await;
    let rule = enforce(scope, json!([{"expression": format!("({0}) && ({0}) && ({0})", may("get"))}])).await;
    let denied = rule.denies(scope.config_maps().await.create(&config_map("b", json!({}))).await);
    assert!(denied.ends_with("operation cancelled: actual cost limit exceeded"), "{denied}");
}

async fn the_language(scope: &Scope) {
    let expressions = [
        "object.?data.?missing.orValue('none') == 'none' && object.data[?'list'].hasValue()",
        "object.data.list.split(',').all(each, each.matches('^[a-c]$')) && !('x' in object.data)",
        "object.data.list.split(',').map(each, each + '!').join('') == 'a!b!c!'",
        "object.data.list.split(',').exists(each, each == 'b') || object.data.missing == ''",
        "has(object.data) && !has(object.data.missing) && oldObject == null",
        "quantity(object.data.size).isGreaterThan(quantity('1Mi')) && isQuantity('1Gi')",
        "semver(object.data.version).major() == 1 && isSemver(object.data.version)",
        "sets.contains(['a', 'b'], ['a']) && [1, 2].sum() == 3 && 'aXb'.lowerAscii() == 'axb'",
        "duration('1h') > duration('59m') && timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')",
        "type(object.data.list) == string && dyn(1) == 1.0 && size('ä') == 1 && !!true",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.1') && isURL('https://example.com')",
    ];
    let validations: Vec<Value> = expressions.iter().map(|text| json!({"expression": text})).collect();
    enforce(scope, validations.into()).await;
    let data = json!({"list": "a,b,c", "size": "1Gi", "version": "1.2.3"});
    scope.config_maps().await.create(&config_map("a", data)).await.is(201);
}
