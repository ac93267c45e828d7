//! The permissions that whole releases require, and which of them are missing.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue must fail")]

use std::collections::BTreeSet;

use chandler_core::Object;
use chandler_permissions::{
    Account, Escalation, ExistingRoles, Held, Item, Listed, Missing, Parent, PolicyRule, Requirements, RoleKey, Scope,
    Why, kinds, missing, requirements, role::Role, roles, roles::place,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, more: &Value) -> Object {
    let mut value =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    for (field, member) in more.as_object().unwrap() {
        value[field] = member.clone();
    }
    Object::parse(value.to_string().as_bytes(), 0, None).unwrap()
}

fn rbac(kind: &str, namespace: Option<&str>, name: &str, more: &Value) -> Object {
    object(&format!("{RBAC}/v1"), kind, namespace, name, more)
}

fn binding(kind: &str, namespace: Option<&str>, role_kind: &str, role: &str) -> Object {
    rbac(kind, namespace, "b", &json!({"roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role}}))
}

fn required(objects: &[Object], existing: &ExistingRoles) -> Requirements {
    let plurals: Vec<String> = objects.iter().map(|object| kinds::guess(&object.key).plural).collect();
    let items: Vec<Item<'_>> = objects
        .iter()
        .zip(&plurals)
        .map(|(object, plural)| Item { key: &object.key, plural, value: &object.value })
        .collect();
    let parent = Parent { group: "core.rukpak.io", plural: "bundledeployments", name: "shop" };
    requirements(&items, &[], &[], Some(parent), existing)
}

fn requirements_without_parent(objects: &[Object]) -> Requirements {
    let items: Vec<Item<'_>> =
        objects.iter().map(|object| Item { key: &object.key, plural: "configmaps", value: &object.value }).collect();
    requirements(&items, &[], &[], None, &ExistingRoles::default())
}

/// What an account lacks for what the roles and bindings of a release grant, excluding the requests for them.
fn passed_on(objects: &[Object], existing: &ExistingRoles, held: &Held, escalation: Escalation) -> Vec<String> {
    let mut found = missing(&required(objects, existing), held, escalation);
    found.retain(|need| !matches!(need.why, Why::Object(_) | Why::OwnerReference));
    shown(&found)
}

fn shown(missing: &Missing) -> Vec<String> {
    let rules = missing.rules();
    rules.iter().flat_map(|(scope, rules)| rules.iter().map(move |rule| format!("{scope}: {rule}"))).collect()
}

fn rule(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}

fn holding(rules: Value) -> Held {
    Held { cluster: Role::read(&json!({"rules": rules})).rules, ..Held::default() }
}

#[test]
fn a_release_requires_the_requests_of_the_rollout() {
    let objects = [
        object("v1", "ConfigMap", Some("shop"), "a", &json!({})),
        object("v1", "ConfigMap", Some("shop"), "b", &json!({})),
        object("v1", "Secret", Some("shop"), "a", &json!({})),
        object("apps/v1", "Deployment", Some("other"), "d", &json!({})),
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com", &json!({})),
    ];
    let found = missing(&required(&objects, &ExistingRoles::default()), &Held::default(), Escalation::Hold);
    insta::assert_snapshot!(shown(&found).join("\n"), @r#"
    in the whole cluster: {APIGroups:["apiextensions.k8s.io"], Resources:["customresourcedefinitions"], Verbs:["create" "list" "watch"]}
    in the whole cluster: {APIGroups:["apiextensions.k8s.io"], Resources:["customresourcedefinitions"], ResourceNames:["oxen.example.com"], Verbs:["delete" "get" "patch"]}
    in the whole cluster: {APIGroups:["core.rukpak.io"], Resources:["bundledeployments/finalizers"], ResourceNames:["shop"], Verbs:["update"]}
    in namespace other: {APIGroups:["apps"], Resources:["deployments"], Verbs:["create" "list" "watch"]}
    in namespace other: {APIGroups:["apps"], Resources:["deployments"], ResourceNames:["d"], Verbs:["delete" "get" "patch"]}
    in namespace shop: {APIGroups:[""], Resources:["configmaps" "secrets"], Verbs:["create" "list" "watch"]}
    in namespace shop: {APIGroups:[""], Resources:["configmaps"], ResourceNames:["a" "b"], Verbs:["delete" "get" "patch"]}
    in namespace shop: {APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["delete" "get" "patch"]}
    "#);
    insta::assert_snapshot!(found.summary(), @r#"create, list, watch customresourcedefinitions.apiextensions.k8s.io in the whole cluster; delete, get, patch customresourcedefinitions.apiextensions.k8s.io "oxen.example.com" in the whole cluster; update bundledeployments/finalizers.core.rukpak.io "shop" in the whole cluster; create, list, watch deployments.apps in namespace other; delete, get, patch deployments.apps "d" in namespace other; and 3 more"#);
    let reasons = found.reasons(&Scope::Namespace("shop".into()), &found.rules()[&Scope::Namespace("shop".into())][1]);
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    assert_eq!(reasons, ["to install ConfigMap shop/a", "to install ConfigMap shop/b"]);
}

#[test]
fn pruning_requires_less_than_installing() {
    let old = object("v1", "Secret", Some("shop"), "old", &json!({}));
    let stale = [Item { key: &old.key, plural: "secrets", value: &old.value }];
    let listed = [Listed { scope: Scope::Cluster, group: "a.b".into(), plural: "oxen".into() }];
    let required = requirements(&[], &stale, &listed, None, &ExistingRoles::default());
    assert_eq!(
        shown(&missing(&required, &Held::default(), Escalation::Hold)),
        [
            r#"in the whole cluster: {APIGroups:["a.b"], Resources:["oxen"], Verbs:["list"]}"#,
            r#"in namespace shop: {APIGroups:[""], Resources:["secrets"], ResourceNames:["old"], Verbs:["delete" "get"]}"#,
        ]
    );
}

#[test]
fn only_permissions_that_are_not_held_are_missing() {
    let objects = [object("v1", "ConfigMap", Some("shop"), "a", &json!({}))];
    let required = required(&objects, &ExistingRoles::default());
    let mut held = holding(json!([
        {"apiGroups": ["*"], "resources": ["bundledeployments/finalizers"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]));
    let local = Role::read(&json!({"rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"], "resourceNames": ["a", "z"]}]}));
    held.namespaces.insert("shop".into(), local.rules.clone());
    // Permissions in another namespace do not help.
    held.namespaces.insert("other".into(), vec![PolicyRule::everything()]);
    assert_eq!(
        shown(&missing(&required, &held, Escalation::Hold)),
        [
            r#"in namespace shop: {APIGroups:[""], Resources:["configmaps"], Verbs:["create"]}"#,
            r#"in namespace shop: {APIGroups:[""], Resources:["configmaps"], ResourceNames:["a"], Verbs:["delete"]}"#,
        ]
    );
    held.cluster.push(PolicyRule::everything());
    assert!(missing(&required, &held, Escalation::Hold).is_empty());
}

#[test]
fn the_writer_of_a_role_must_hold_its_rules() {
    let role = rbac(
        "ClusterRole",
        None,
        "r",
        &json!({"rules": [
            rule(&["get", "list"], &["pods", "pods/log"]),
            {"nonResourceURLs": ["/metrics", "/healthz"], "verbs": ["get"]},
        ]}),
    );
    let none = ExistingRoles::default();
    let objects = [role];
    let lacks = |rules, escalation| passed_on(&objects, &none, &holding(rules), escalation);
    assert_eq!(
        lacks(json!([rule(&["get"], &["*"])]), Escalation::Hold),
        [
            r#"in the whole cluster: {APIGroups:[""], Resources:["pods" "pods/log"], Verbs:["list"]}"#,
            r#"in the whole cluster: {NonResourceURLs:["/healthz" "/metrics"], Verbs:["get"]}"#,
        ]
    );
    let escalate = r#"in the whole cluster: {APIGroups:["rbac.authorization.k8s.io"], Resources:["clusterroles"], Verbs:["escalate"]}"#;
    assert_eq!(lacks(json!([]), Escalation::Allow), [escalate]);
    let waiver = |names: Value| json!([{"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["escalate"], "resourceNames": names}]);
    assert_eq!(lacks(waiver(json!([])), Escalation::Hold), [""; 0]);
    // The API server does not know the name yet when a role is created.
    assert_eq!(lacks(waiver(json!(["r"])), Escalation::Allow), [escalate]);
    let all = json!([rule(&["*"], &["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    assert_eq!(lacks(all, Escalation::Allow), [""; 0]);
}

#[test]
fn a_role_requires_its_rules_only_in_its_namespace() {
    let objects = [rbac("Role", Some("shop"), "r", &json!({"rules": [rule(&["get"], &["pods"])]}))];
    let mut held = Held::default();
    let none = ExistingRoles::default();
    let lacks = |held: &Held| passed_on(&objects, &none, held, Escalation::Hold);
    assert_eq!(lacks(&held), [r#"in namespace shop: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#]);
    held.namespaces.insert("shop".into(), vec![PolicyRule::everything()]);
    assert_eq!(lacks(&held), [""; 0]);
}

#[test]
fn the_writer_of_a_binding_must_hold_the_rules_of_its_role() {
    let role = |rules: Value| json!({"metadata": {"name": "r"}, "rules": rules});
    let key = |namespace: Option<&str>| RoleKey { namespace: namespace.map(str::to_owned), name: "r".into() };
    let mut existing = ExistingRoles::default();
    existing.insert(key(None), role(json!([rule(&["list"], &["pods"])])));
    existing.insert(key(Some("shop")), role(json!([rule(&["watch"], &["pods"])])));
    let none = ExistingRoles::default();
    let pods =
        |place: &str, verb: &str| format!(r#"{place}: {{APIGroups:[""], Resources:["pods"], Verbs:["{verb}"]}}"#);
    let (wide, local) = ("in the whole cluster", "in namespace shop");
    let bind = |place: &str, resource: &str| {
        format!(r#"{place}: {{APIGroups:["{RBAC}"], Resources:["{resource}"], ResourceNames:["r"], Verbs:["bind"]}}"#)
    };
    let own = || rbac("ClusterRole", None, "r", &json!({"rules": [rule(&["get"], &["pods"])]}));
    let cases = [
        // Objects, existing roles, missing permissions.
        (vec![binding("ClusterRoleBinding", None, "ClusterRole", "r")], &existing, vec![pods(wide, "list")]),
        (vec![binding("RoleBinding", Some("shop"), "ClusterRole", "r")], &existing, vec![pods(local, "list")]),
        (vec![binding("RoleBinding", Some("shop"), "Role", "r")], &existing, vec![pods(local, "watch")]),
        // A Role in another namespace is a different role.
        (
            vec![binding("RoleBinding", Some("other"), "Role", "r")],
            &existing,
            vec![bind("in namespace other", "roles")],
        ),
        (vec![binding("ClusterRoleBinding", None, "ClusterRole", "r")], &none, vec![bind(wide, "clusterroles")]),
        // The role of the release replaces the existing one.
        (vec![own(), binding("RoleBinding", Some("shop"), "ClusterRole", "r")], &existing, vec![pods(wide, "get")]),
    ];
    for (objects, existing, expected) in cases {
        assert_eq!(passed_on(&objects, existing, &Held::default(), Escalation::Hold), expected, "{objects:?}");
    }
    let objects = [binding("ClusterRoleBinding", None, "ClusterRole", "r")];
    assert_eq!(passed_on(&objects, &existing, &Held::default(), Escalation::Allow), [bind(wide, "clusterroles")]);
    let may_bind = holding(
        json!([{"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["r"], "verbs": ["bind"]}]),
    );
    assert_eq!(passed_on(&objects, &existing, &may_bind, Escalation::Hold), [""; 0]);
    assert_eq!(passed_on(&objects, &none, &may_bind, Escalation::Hold), [""; 0]);
}

/// The controller reads the roles that a release binds. Its author need not be allowed to.
#[test]
fn rules_of_roles_of_others_are_listed_only_for_those_who_may_create_the_binding() {
    let key = |namespace: Option<&str>| RoleKey { namespace: namespace.map(str::to_owned), name: "r".into() };
    let rules = json!([rule(&["list"], &["secrets"])]);
    let (own, aggregated) = (
        rbac("Role", Some("shop"), "r", &json!({"rules": rules})),
        rbac(
            "ClusterRole",
            None,
            "r",
            &json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
        ),
    );
    let local = || binding("RoleBinding", Some("shop"), "Role", "r");
    let wide = || binding("RoleBinding", Some("shop"), "ClusterRole", "r");
    let mut existing = ExistingRoles::default();
    existing.insert(key(Some("shop")), json!({"metadata": {"name": "r"}, "rules": rules}));
    let collected = json!({"metadata": {"name": "x", "labels": {"a": "b"}}, "rules": rules});
    existing.insert(RoleKey { namespace: None, name: "x".into() }, collected);
    let mut known = ExistingRoles::default();
    let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    known.insert(key(None), json!({"metadata": {"name": "r", "labels": labels}, "rules": rules}));
    let may_create = holding(json!([{"apiGroups": [RBAC], "resources": ["rolebindings"], "verbs": ["create"]}]));
    for (objects, existing, held, lists) in [
        (vec![local()], &existing, Held::default(), false),
        (vec![local()], &existing, may_create.clone(), true),
        (vec![aggregated.clone(), wide()], &existing, Held::default(), false),
        (vec![own, local()], &existing, Held::default(), true),
        (vec![wide()], &known, Held::default(), true),
    ] {
        let required = required(&objects, existing);
        let mut found = missing(&required, &held, Escalation::Hold);
        assert!(shown(&found).iter().any(|rule| rule.contains("secrets")), "{objects:?}");
        found.conceal(&required);
        let shown = shown(&found);
        assert_eq!(shown.iter().any(|rule| rule.contains("secrets")), lists, "{shown:?}");
        // It stays refused.
        let creates = |rule: &String| rule.contains("rolebindings") && rule.contains("create");
        assert_eq!(shown.iter().any(creates), held == Held::default(), "{shown:?}");
    }
}

#[test]
fn aggregated_roles_require_all_permissions_and_grant_what_they_collect() {
    let whole = || {
        rbac(
            "ClusterRole",
            None,
            "whole",
            &json!({
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "whole"}}]}}),
        )
    };
    let part = |name: &str, verb: &str| json!({"metadata": {"name": name, "labels": {"to": "whole"}}, "rules": [rule(&[verb], &["pods"])]});
    let mut existing = ExistingRoles::default();
    existing.insert(RoleKey { namespace: None, name: "old".into() }, part("old", "list"));
    // The release replaces it.
    existing.insert(RoleKey { namespace: None, name: "new".into() }, part("new", "delete"));
    let new = rbac("ClusterRole", None, "new", &part("new", "watch"));
    let objects = [whole(), new, binding("RoleBinding", Some("shop"), "ClusterRole", "whole")];
    assert_eq!(
        passed_on(&objects, &existing, &Held::default(), Escalation::Hold),
        [
            r#"in the whole cluster: {APIGroups:[""], Resources:["pods"], Verbs:["watch"]}"#.to_owned(),
            format!(
                r#"in the whole cluster: {{APIGroups:["{RBAC}"], Resources:["clusterroles"], Verbs:["escalate"]}}"#
            ),
            r#"in namespace shop: {APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#.to_owned(),
        ]
    );
    let all = Held { cluster: vec![PolicyRule::everything(), PolicyRule::every_path()], ..Held::default() };
    assert_eq!(passed_on(&objects, &existing, &all, Escalation::Hold), [""; 0]);
}

#[test]
fn permissions_in_namespaces_of_the_release_are_granted_in_the_cluster() {
    let objects = [
        object("v1", "Namespace", None, "new", &json!({})),
        object("v1", "ConfigMap", Some("new"), "a", &json!({})),
        object("v1", "ConfigMap", Some("shop"), "b", &json!({})),
    ];
    let found = missing(&required(&objects, &ExistingRoles::default()), &Held::default(), Escalation::Hold);
    let account = Account { namespace: "shop".into(), name: "deployer".into() };
    let rendered = roles(&place(&found.rules(), &BTreeSet::from(["new".to_owned()])), &account, "chandler-shop");
    let lines: Vec<String> = rendered.iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"chandler-shop"},"rules":[{"apiGroups":[""],"resources":["configmaps","namespaces"],"verbs":["create","list","watch"]},{"apiGroups":[""],"resourceNames":["a"],"resources":["configmaps"],"verbs":["delete","get","patch"]},{"apiGroups":[""],"resourceNames":["new"],"resources":["namespaces"],"verbs":["delete","get","patch"]},{"apiGroups":["core.rukpak.io"],"resourceNames":["shop"],"resources":["bundledeployments/finalizers"],"verbs":["update"]}]}
    {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"chandler-shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"chandler-shop"},"subjects":[{"kind":"ServiceAccount","name":"deployer","namespace":"shop"}]}
    {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"chandler-shop","namespace":"shop"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","list","watch"]},{"apiGroups":[""],"resourceNames":["b"],"resources":["configmaps"],"verbs":["delete","get","patch"]}]}
    {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"chandler-shop","namespace":"shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"chandler-shop"},"subjects":[{"kind":"ServiceAccount","name":"deployer","namespace":"shop"}]}
    "#);
}

fn any_object() -> impl Strategy<Value = Object> {
    let words = |all: &'static [&'static str]| prop::sample::subsequence(all, 1..=all.len());
    let namespace = prop_oneof![Just("shop"), Just("other")];
    let rules = (words(&["get", "list", "*"]), words(&["pods", "pods/log", "*/scale", "*"]));
    let rules = rules.prop_map(|(verbs, resources)| json!({"rules": [rule(&verbs, &resources)]}));
    (0..5u8, namespace, "[a-c]", rules).prop_map(|(kind, namespace, name, rules)| match kind {
        0 => object("v1", "ConfigMap", Some(namespace), &name, &json!({})),
        1 => object("v1", "Namespace", None, &name, &json!({})),
        2 => rbac("Role", Some(namespace), &name, &rules),
        3 => rbac("ClusterRole", None, &name, &rules),
        _ => binding("RoleBinding", Some(namespace), "ClusterRole", &name),
    })
}

proptest! {
    #[test]
    fn the_rendered_roles_grant_everything_that_is_missing(
        objects in prop::collection::vec(any_object(), 0..8),
        held in prop::collection::vec(any_object(), 0..3),
        allow in any::<bool>(),
    ) {
        let escalation = if allow { Escalation::Allow } else { Escalation::Hold };
        let required = required(&objects, &ExistingRoles::default());
        let rules = |kind: &str| -> Vec<PolicyRule> {
            let roles = held.iter().filter(|object| object.key.kind == kind);
            roles.flat_map(|role| Role::read(&Value::Object(role.value.clone())).rules).collect()
        };
        let mut held = Held { cluster: rules("ClusterRole"), namespaces: [("shop".to_owned(), rules("Role"))].into() };
        let found = missing(&required, &held, escalation);
        let account = Account { namespace: "shop".into(), name: "deployer".into() };
        for role in roles(&place(&found.rules(), &BTreeSet::new()), &account, "x") {
            let granted = Role::read(&role).rules;
            match role["metadata"]["namespace"].as_str() {
                Some(namespace) => held.namespaces.entry(namespace.to_owned()).or_default().extend(granted),
                None => held.cluster.extend(granted),
            }
        }
        prop_assert_eq!(shown(&missing(&required, &held, escalation)), [""; 0]);
    }
}

#[test]
fn a_summary_is_short_whatever_is_missing() {
    for (count, more) in [(2, None), (3, Some("and 1 more")), (400, Some("and 795 more"))] {
        let objects: Vec<Object> = (0..count)
            .map(|number| object("v1", "ConfigMap", Some(&format!("n{number}")), &"x".repeat(200), &json!({})))
            .collect();
        let required = requirements_without_parent(&objects);
        let summary = missing(&required, &Held::default(), Escalation::Hold).summary();
        assert!(summary.len() < 2000, "{summary}");
        assert_eq!(summary.split("; ").nth(5), more, "{summary}");
    }
}

/// A rule with so many texts in each list, which stands for their product.
fn product(count: usize) -> Value {
    let texts = |letter: char| (0..count).map(|number| format!("{letter}{number}")).collect::<Vec<_>>();
    json!({"apiGroups": texts('g'), "resources": texts('r'), "verbs": texts('v')})
}

#[test]
fn a_role_that_stands_for_a_million_permissions_is_not_split() {
    let wide = Scope::Cluster;
    let objects = [
        rbac("ClusterRole", None, "small", &json!({"rules": [rule(&["get"], &["pods"])]})),
        rbac("ClusterRole", None, "large", &json!({"rules": [product(100)]})),
        binding("ClusterRoleBinding", None, "ClusterRole", "large"),
    ];
    let none = ExistingRoles::default();
    let found = missing(&required(&objects, &none), &Held::default(), Escalation::Hold);
    assert!(found.needs().len() < 100, "{}", found.needs().len());
    let too_much: Vec<String> = found.too_much().into_iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(too_much.join("\n"), @"
    ClusterRole.rbac.authorization.k8s.io large grants so many permissions that they are not compared with the account's (each verb, resource and name counts)
    ClusterRoleBinding.rbac.authorization.k8s.io b grants so many permissions that they are not compared with the account's (each verb, resource and name counts)
    ");
    assert!(found.summary().contains("large grants so many permissions"), "{}", found.summary());
    // The others are compared nevertheless.
    let small = |need: &chandler_permissions::Need| need.rule.resources == ["pods"] && need.scope == wide;
    assert!(found.needs().iter().any(small));
    // Who may grant anything, or holds the rules as a whole, lacks nothing.
    let waivers = json!([
        {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["escalate", "bind"]},
        rule(&["get"], &["pods"]),
    ]);
    assert_eq!(passed_on(&objects, &none, &holding(waivers), Escalation::Hold), [""; 0]);
    let whole = json!([product(100), rule(&["get"], &["pods"])]);
    assert_eq!(passed_on(&objects, &none, &holding(whole), Escalation::Hold), [""; 0]);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    assert_eq!(passed_on(&objects, &none, &holding(all), Escalation::Hold), [""; 0]);
}

#[test]
fn long_texts_count_more_than_short_ones() {
    let long = |letter: char| {
        (0..40).map(|number| format!("{}{number}", letter.to_string().repeat(5_000))).collect::<Vec<_>>()
    };
    let rule = json!({"apiGroups": [""], "resources": long('r'), "verbs": long('v')});
    let objects = [rbac("ClusterRole", None, "long", &json!({"rules": [rule]}))];
    let found = missing(&required(&objects, &ExistingRoles::default()), &Held::default(), Escalation::Hold);
    assert_eq!(found.too_much().len(), 1);
}

#[test]
fn many_bindings_to_one_role_take_the_work_of_one() {
    let mut existing = ExistingRoles::default();
    let admin = json!({"metadata": {"name": "admin"}, "rules": [product(8)]});
    existing.insert(RoleKey { namespace: None, name: "admin".into() }, admin);
    let bindings = |namespace: fn(usize) -> String| -> Vec<Object> {
        let role = json!({"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"}});
        let name = |number: usize| format!("b{number}");
        (0..5_000).map(|number| rbac("RoleBinding", Some(&namespace(number)), &name(number), &role)).collect()
    };
    let one = bindings(|_| "shop".to_owned());
    let granted = |objects: &[Object], held: &Held| {
        let mut found = missing(&required(objects, &existing), held, Escalation::Hold);
        found.retain(|need| !matches!(need.why, Why::Object(_) | Why::OwnerReference));
        found
    };
    let found = granted(&one, &Held::default());
    assert!(found.needs().len() <= 50_000, "{}", found.needs().len());
    assert!(found.too_much().is_empty());
    assert_eq!(found.rules().len(), 1);
    assert_eq!(found.rules().values().flatten().map(PolicyRule::parts).sum::<usize>(), 512);
    // Permissions in the whole cluster are compared once for all namespaces.
    let many = bindings(|number| format!("n{number}"));
    let held = json!(
        (0..8)
            .map(|number| {
                let mut rule = product(8);
                rule["verbs"] = json!([format!("v{number}")]);
                rule
            })
            .collect::<Vec<_>>()
    );
    assert!(granted(&many, &holding(held)).is_empty());
}

#[test]
fn a_bound_role_that_was_too_large_to_read_needs_the_permission_to_bind_it() {
    let mut existing = ExistingRoles::default();
    existing.insert_large(RoleKey { namespace: None, name: "r".into() });
    let objects = [binding("RoleBinding", Some("shop"), "ClusterRole", "r")];
    let found = missing(&required(&objects, &existing), &Held::default(), Escalation::Hold);
    assert_eq!(found.too_much().len(), 1);
    let bind = json!([{"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["r"], "verbs": ["bind"]}]);
    assert_eq!(passed_on(&objects, &existing, &holding(bind), Escalation::Hold), [""; 0]);
}

#[test]
fn aggregated_roles_with_thousands_of_selectors_collect_each_role_once() {
    let whole = |name: &str, selectors: Vec<Value>| {
        rbac("ClusterRole", None, name, &json!({"aggregationRule": {"clusterRoleSelectors": selectors}}))
    };
    let bound = |role: &str| binding("RoleBinding", Some("shop"), "ClusterRole", role);
    let mut existing = ExistingRoles::default();
    for number in 0..300 {
        let role = json!({"metadata": {"name": format!("r{number}")}, "rules": [rule(&["get"], &[format!("p{number}").as_str()])]});
        existing.insert(RoleKey { namespace: None, name: format!("r{number}") }, role);
    }
    let missing_for = |objects: &[Object]| missing(&required(objects, &existing), &Held::default(), Escalation::Hold);
    let all = missing_for(&[whole("all", vec![json!({}); 5_000]), bound("all")]);
    assert!(all.too_much().is_empty());
    assert!(all.needs().iter().any(|need| need.rule.resources == ["p299"]));
    // Selectors that select nothing are compared with each role.
    let none: Vec<Value> = (0..5_000).map(|number| json!({"matchLabels": {"to": number.to_string()}})).collect();
    assert_eq!(missing_for(&[whole("none", none), bound("none")]).too_much().len(), 1);
}
