//! Policies about requests, with a cluster in memory.

use std::collections::BTreeMap;

use chandler_devcluster_access::{Attributes as Access, Decision, User};
use chandler_devcluster_schema::GroupVersionKind;
use serde_json::{Value, json};

use super::{
    Admission, Attributes, Cluster, Operation, ParamScope, PolicySet, Resource, admission::admit_within, admit,
    evaluation::Budget,
};

/// A cluster of ConfigMaps and Namespaces, in which the user `boss` may do everything.
#[derive(Default)]
struct Fake {
    namespaces: BTreeMap<String, Value>,
    config_maps: Vec<Value>,
}

impl Cluster for Fake {
    fn namespace(&self, name: &str) -> Option<Value> {
        self.namespaces.get(name).cloned()
    }

    fn equivalents(&self, resource: &Resource, _: &str) -> Vec<(Resource, GroupVersionKind)> {
        let versions = ["v1", "v2"].map(|version| {
            let kind = GroupVersionKind::new("example.com", version, "Toy");
            (Resource::new("example.com", version, "toys"), kind)
        });
        if resource.plural == "toys" { versions.to_vec() } else { Vec::new() }
    }

    fn convert(&self, object: &Value, resource: &Resource, _: &str) -> Option<Value> {
        let mut object = object.clone();
        object["apiVersion"] = format!("{}/{}", resource.group, resource.version).into();
        Some(object)
    }

    fn scope(&self, kind: &GroupVersionKind) -> Option<ParamScope> {
        (kind.kind == "ConfigMap").then_some(ParamScope::Namespaced)
    }

    fn object(&self, _: &GroupVersionKind, namespace: &str, name: &str) -> Option<Value> {
        let named =
            |object: &&Value| object["metadata"]["namespace"] == namespace && object["metadata"]["name"] == name;
        self.config_maps.iter().find(named).cloned()
    }

    fn objects(&self, _: &GroupVersionKind, namespace: Option<&str>, each: &mut dyn FnMut(&Value) -> bool) {
        for object in &self.config_maps {
            if namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace) && !each(object) {
                return;
            }
        }
    }

    fn authorize(&self, user: &User, access: &Access) -> Decision {
        let verb = match access {
            Access::Resource(resource) => resource.verb.as_str(),
            Access::NonResource(path) => path.verb.as_str(),
        };
        let account = user.name == "system:serviceaccount:shop:robot" && verb == "get";
        Decision { allowed: user.name == "boss" || account, reason: format!("{} {verb}", user.name) }
    }
}

fn cluster() -> Fake {
    let namespace = |name: &str, labels: Value| {
        let object = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "managedFields": []}, "status": {"phase": "Active"}});
        (name.to_owned(), object)
    };
    let map = |namespace: &str, name: &str, most: u64| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"most": most.to_string()},
            "metadata": {"namespace": namespace, "name": name, "labels": {"size": name}}})
    };
    Fake {
        namespaces: BTreeMap::from([namespace("shop", json!({"team": "a"})), namespace("yard", json!({}))]),
        config_maps: vec![map("shop", "small", 1), map("shop", "large", 10), map("yard", "other", 5)],
    }
}

/// A policy about toys of version v1, and its binding; with these members of their specifications.
fn set(policy: Value, binding: Value) -> PolicySet {
    let mut set = PolicySet::default();
    let mut object = json!({"metadata": {"name": "rule"}, "spec": {"matchConstraints": {
        "matchPolicy": "Equivalent",
        "resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["toys"]}],
    }}});
    merge(&mut object["spec"], policy);
    let mut bound =
        json!({"metadata": {"name": "bound"}, "spec": {"policyName": "rule", "validationActions": ["Deny"]}});
    merge(&mut bound["spec"], binding);
    set.put_policy(&object);
    set.put_binding(&bound);
    set
}

fn merge(into: &mut Value, from: Value) {
    for (field, value) in from.as_object().unwrap() {
        into[field] = value.clone();
    }
}

struct Asked {
    operation: Operation,
    version: &'static str,
    subresource: &'static str,
    namespace: &'static str,
    user: &'static str,
    object: Option<Value>,
    old: Option<Value>,
}

fn toy(size: u64) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Toy", "spec": {"size": size},
        "metadata": {"name": "bear", "namespace": "shop", "labels": {"soft": "yes"}}})
}

fn create(size: u64) -> Asked {
    Asked {
        operation: Operation::Create,
        version: "v1",
        subresource: "",
        namespace: "shop",
        user: "jane",
        object: Some(toy(size)),
        old: None,
    }
}

impl Asked {
    fn ask(&self, set: &PolicySet) -> Admission {
        self.ask_within(Budget::default(), set)
    }

    fn ask_within(&self, budget: Budget, set: &PolicySet) -> Admission {
        let user = User::new(self.user, &["crew"]);
        let attributes = Attributes {
            operation: self.operation,
            kind: GroupVersionKind::new("example.com", self.version, "Toy"),
            resource: Resource::new("example.com", self.version, "toys"),
            subresource: self.subresource,
            namespace: self.namespace,
            name: "bear",
            object: self.object.as_ref(),
            old_object: self.old.as_ref(),
            user: &user,
            dry_run: true,
            options: json!({"kind": "CreateOptions"}),
        };
        admit_within(budget, set, &attributes, &cluster())
    }

    /// The message of the denial without its head; empty if the request is allowed.
    fn denied(&self, set: &PolicySet) -> String {
        let message = self.ask(set).denial.map(|denial| denial.message).unwrap_or_default();
        let head = "ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: ";
        message.strip_prefix(head).map(str::to_owned).unwrap_or(message)
    }
}

fn holds(expression: &str) -> PolicySet {
    set(json!({"validations": [{"expression": expression}]}), json!({}))
}

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
        // A binding says the same in the same way.
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
    set.remove_binding(&json!({"metadata": {"name": "bound"}}));
    assert!(set.is_empty());
}

#[test]
fn a_request_costs_no_more_than_its_budget() {
    let cubic = "range.all(a, range.all(b, range.all(c, a + b + c >= 0)))".replace("range", "object.spec.list");
    let mut object = toy(1);
    object["spec"]["list"] = json!((0..10).collect::<Vec<_>>());
    let asked = Asked { object: Some(object), ..create(1) };
    let validations: Vec<Value> = (0..10).map(|_| json!({"expression": cubic})).collect();
    let set = set(json!({"validations": validations}), json!({}));
    let denied = |budget: u64| asked.ask_within(Budget::new(budget), &set).denial.map(|denial| denial.message);
    assert_eq!(denied(1_000_000), None);
    let message = denied(50_000).unwrap();
    assert!(
        message
            .ends_with("validation failed due to running out of cost budget, no further validation rules will be run")
    );
    let ignored = self::set(json!({"failurePolicy": "Ignore", "validations": [{"expression": cubic}]}), json!({}));
    assert_eq!(asked.ask_within(Budget::new(100), &ignored), Admission::default());
}

#[test]
fn an_object_cannot_make_an_expression_expensive() {
    let mut object = toy(1);
    object["spec"]["list"] = json!((0..1000).collect::<Vec<_>>());
    let asked = Asked { object: Some(object), ..create(1) };
    let expensive = holds("object.spec.list.all(a, object.spec.list.all(b, object.spec.list.all(c, a + b + c >= 0)))");
    assert!(asked.denied(&expensive).ends_with("operation cancelled: actual cost limit exceeded"));
}

#[test]
fn deep_expressions_take_no_stack_of_ours() {
    let deep = format!("{}1 > 0", "1 + ".repeat(400));
    let variables: Vec<Value> = (0..9)
        .map(|index| {
            let before = if index == 0 { "1".to_owned() } else { format!("variables.v{}", index - 1) };
            json!({"name": format!("v{index}"), "expression": format!("{}{before}", "1 + ".repeat(400))})
        })
        .collect();
    let policy =
        json!({"variables": variables, "validations": [{"expression": "variables.v8 > 0"}, {"expression": deep}]});
    assert_eq!(create(1).denied(&set(policy, json!({}))), "");
}
