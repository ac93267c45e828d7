//! Decisions over a whole policy: authorization, escalation, the bootstrap policy.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot continue fails"
)]

use chandler_devcluster_apimachinery::access::{
    Attributes, NonResourceAttributes, Policies, PolicySet, User, aggregation, authorize,
    authorize::rules_for,
    bootstrap,
    escalation::{EscalationError, Place, confirm_binding, confirm_role},
    policy::{Role, RoleRef},
    user::{AUTHENTICATED, MASTERS},
};
use serde_json::{Value, json};

use super::common::{binding, policy, role, rule, wants};

fn shop() -> PolicySet {
    policy(
        &[
            role("shop", "reader", &["get list | core | pods"]),
            role("", "nodes", &["get | core | nodes"]),
            role("", "logs", &["get | core | pods/log | web"]),
        ],
        &[
            binding("shop", "readers", ("Role", "reader"), &["User:jane", "Group:crew", "ServiceAccount:robot"]),
            binding("shop", "logs", ("ClusterRole", "logs"), &["ServiceAccount:tools/robot"]),
            binding("", "nodes", ("ClusterRole", "nodes"), &["Group:crew"]),
            binding("", "broken", ("ClusterRole", "absent"), &["User:jane"]),
            binding("", "unqualified", ("ClusterRole", "nodes"), &["ServiceAccount:robot"]),
        ],
    )
}

#[test]
fn bindings_hold_in_their_namespace_and_for_their_subjects() {
    let policy = shop();
    let jane = User::new("jane", &[]);
    let crew = User::new("joe", &["crew"]);
    let robot = User::service_account("shop", "robot", "1");
    let tool = User::service_account("tools", "robot", "2");
    let by = |text: &str| Some(format!("RBAC: allowed by {text}"));
    let readers = r#"RoleBinding "readers/shop" of Role "reader" to"#;
    let cases = [
        (&jane, wants("shop", "list core pods"), by(&format!(r#"{readers} User "jane""#))),
        (&crew, wants("shop", "get core pods a"), by(&format!(r#"{readers} Group "crew""#))),
        (&robot, wants("shop", "get core pods a"), by(&format!(r#"{readers} ServiceAccount "robot/shop""#))),
        (&tool, wants("shop", "get core pods a"), None),
        (
            &tool,
            wants("shop", "get core pods/log web"),
            by(r#"RoleBinding "logs/shop" of ClusterRole "logs" to ServiceAccount "robot/tools""#),
        ),
        (&tool, wants("shop", "get core pods/log db"), None),
        (&tool, wants("tools", "get core pods/log web"), None),
        (&jane, wants("", "list core pods"), None),
        (&jane, wants("other", "list core pods"), None),
        (
            &crew,
            wants("", "get core nodes n"),
            by(r#"ClusterRoleBinding "nodes" of ClusterRole "nodes" to Group "crew""#),
        ),
        (
            &crew,
            wants("other", "get core nodes n"),
            by(r#"ClusterRoleBinding "nodes" of ClusterRole "nodes" to Group "crew""#),
        ),
        (&robot, wants("", "get core nodes n"), None),
    ];
    for (user, wanted, expected) in cases {
        let decision = authorize(&policy, user, &wanted);
        assert_eq!(decision.allowed, expected.is_some(), "{} {wanted:?}", user.name);
        if let Some(reason) = expected {
            assert_eq!(decision.reason, reason);
        }
    }
    // A missing role is reported, and does not hide other rules.
    let refused = authorize(&policy, &jane, &wants("shop", "delete core pods a"));
    assert_eq!(refused.reason, r#"RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found"#);
    let rules = rules_for(&policy, &jane, "shop");
    assert_eq!((rules.rules.len(), rules.errors.is_some()), (1, true));
    assert!(authorize(&policy, &User::new("x", &[MASTERS]), &wants("", "anything x y")).allowed);
}

fn escalation(policy: &PolicySet, user: &User, rules: &[&str]) -> Result<(), EscalationError> {
    let place = Place { resource: "roles", namespace: "shop", name: "" };
    confirm_role(policy, user, place, &Role::read(&role("shop", "new", rules)), None)
}

#[test]
fn users_cannot_grant_permissions_they_lack() {
    let policy = shop();
    let crew = User::new("joe", &["crew", AUTHENTICATED]);
    escalation(&policy, &crew, &["list | core | pods", "get | core | nodes"]).unwrap();
    let refused = escalation(
        &policy,
        &crew,
        &["get list watch delete | core | pods", "* | apps | deployments | a b", "get | core | nodes"],
    );
    insta::assert_snapshot!(refused.unwrap_err(), @r#"
    user "joe" (groups=["crew" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}
    {APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], Verbs:["*"]}
    {APIGroups:["apps"], Resources:["deployments"], ResourceNames:["b"], Verbs:["*"]}
    "#);
    let jane = User::new("jane", &[]);
    insta::assert_snapshot!(escalation(&policy, &jane, &["get | core | nodes"]).unwrap_err(), @r#"
    user "jane" (groups=[]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["nodes"], Verbs:["get"]}; resolution errors: [clusterrole.rbac.authorization.k8s.io "absent" not found]
    "#);
    escalation(&policy, &User::new("x", &[MASTERS]), &["* | * | *"]).unwrap();
}

#[test]
fn users_who_may_escalate_or_bind_can_grant_more() {
    let rbac = "rbac.authorization.k8s.io";
    let policy = policy(
        &[
            role("", "root", &["* | * | *"]),
            role("", "writer", &[&format!("escalate | {rbac} | roles clusterroles | mine")]),
            role("", "binder", &[&format!("bind | {rbac} | clusterroles | root")]),
        ],
        &[
            binding("", "w", ("ClusterRole", "writer"), &["User:writer"]),
            binding("shop", "b", ("ClusterRole", "binder"), &["User:binder"]),
            binding("", "r", ("ClusterRole", "root"), &["User:root"]),
        ],
    );
    let writer = User::new("writer", &[]);
    let all = Role::read(&role("", "mine", &["* | * | *"]));
    let place = |name| Place { resource: "clusterroles", namespace: "", name };
    confirm_role(&policy, &writer, place("mine"), &all, None).unwrap();
    assert!(confirm_role(&policy, &writer, place("other"), &all, None).is_err());
    assert!(confirm_role(&policy, &writer, place(""), &all, None).is_err(), "a creation has no name in its path");

    let binder = User::new("binder", &[]);
    let root = |kind: &str, name: &str| RoleRef { api_group: rbac.into(), kind: kind.into(), name: name.into() };
    confirm_binding(&policy, &binder, &root("ClusterRole", "root"), "shop").unwrap();
    for (role, namespace) in [(root("ClusterRole", "root"), "other"), (root("ClusterRole", "root"), "")] {
        let refused = confirm_binding(&policy, &binder, &role, namespace).unwrap_err();
        assert!(refused.to_string().ends_with(r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#), "{refused}");
    }
    let missing = confirm_binding(&policy, &writer, &root("Role", "absent"), "shop").unwrap_err();
    assert!(matches!(missing, EscalationError::MissingRole(_)), "{missing}");

    // A user who aggregates rules could aggregate any: `*` on everything is needed, other paths included.
    let aggregating =
        Role::read(&json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []}));
    confirm_role(&policy, &User::new("root", &[]), place("x"), &aggregating, None).unwrap();
    let user = writer;
    let refused = confirm_role(&policy, &user, place("x"), &aggregating, None).unwrap_err();
    assert_eq!(refused, EscalationError::AggregationRule);
    let refused = confirm_role(&policy, &user, place("x"), &Role::default(), Some(&aggregating)).unwrap_err();
    assert_eq!(refused.to_string(), "must have cluster-admin privileges to use the aggregationRule");
}

fn bootstrapped() -> PolicySet {
    let mut objects: Vec<(&str, Value)> =
        bootstrap::objects().into_iter().map(|object| (object.resource, object.value)).collect();
    // As the controller does: from the innermost role outward.
    for name in ["view", "edit", "admin"] {
        let roles: Vec<Value> =
            objects.iter().filter(|(resource, _)| *resource == "clusterroles").map(|(_, role)| role.clone()).collect();
        let (_, role) = objects.iter_mut().find(|(_, role)| role["metadata"]["name"] == name).unwrap();
        role["rules"] = serde_json::to_value(aggregation::aggregate(role, roles.iter()).unwrap()).unwrap();
    }
    let of = |wanted: &'static str| {
        let objects = &objects;
        objects.iter().filter(move |(resource, _)| *resource == wanted).map(|(_, object)| object)
    };
    let mut policy = PolicySet::default();
    policy.set_roles(of("roles"));
    policy.set_cluster_roles(of("clusterroles"));
    policy.set_cluster_role_bindings(of("clusterrolebindings"));
    policy
}

#[test]
fn all_users_may_review_themselves_and_nothing_more() {
    let policy = bootstrapped();
    let path = |path: &str| Attributes::NonResource(NonResourceAttributes { path: path.into(), verb: "get".into() });
    let (user, anonymous) = (User::new("jane", &[AUTHENTICATED]), User::anonymous());
    let account = User::service_account("a", "b", "");
    let cases = [
        (path("/version"), true, true),
        (path("/readyz"), true, true),
        (path("/readyz/ping"), false, false),
        (path("/api/v1"), true, false),
        (path("/openapi/v3"), true, false),
        (path("/metrics"), false, false),
        (path("/"), false, false),
        (wants("", "create authorization.k8s.io selfsubjectaccessreviews"), true, false),
        (wants("", "create authorization.k8s.io subjectaccessreviews"), false, false),
        (wants("", "list core namespaces"), false, false),
    ];
    for (wanted, expected, without_credential) in cases {
        assert_eq!(authorize(&policy, &user, &wanted).allowed, expected, "{wanted:?}");
        assert_eq!(authorize(&policy, &anonymous, &wanted).allowed, without_credential, "{wanted:?}");
    }
    assert!(authorize(&policy, &account, &path("/openid/v1/jwks")).allowed);
    assert!(!authorize(&policy, &user, &path("/openid/v1/jwks")).allowed);
}

#[test]
fn view_edit_and_admin_contain_one_another() {
    let policy = bootstrapped();
    let rules = |name: &str| policy.cluster_role(name).unwrap().rules.clone();
    let may = |name: &str, text: &str| rules(name).iter().any(|rule| rule.allows(&wants("n", text)));
    for (inner, outer) in [("view", "edit"), ("edit", "admin"), ("admin", "cluster-admin")] {
        let outer = rules(outer);
        let missing = chandler_devcluster_apimachinery::access::cover::uncovered(
            &outer.iter().collect::<Vec<_>>(),
            &rules(inner),
        );
        assert!(missing.is_empty(), "{inner}: {missing:?}");
    }
    let cases = [
        ("get core pods a", "view edit admin"),
        ("get core secrets a", "edit admin"),
        ("create core serviceaccounts/token a", "edit admin"),
        ("update apps deployments/scale a", "edit admin"),
        ("create rbac.authorization.k8s.io rolebindings", "admin"),
        ("escalate rbac.authorization.k8s.io roles", ""),
        ("create core resourcequotas", ""),
    ];
    for (wanted, expected) in cases {
        let holders: Vec<&str> = ["view", "edit", "admin"].into_iter().filter(|name| may(name, wanted)).collect();
        assert_eq!(holders.join(" "), expected, "{wanted}");
    }
    assert!(policy.role("kube-system", "extension-apiserver-authentication-reader").is_some());
}

#[test]
fn malformed_rules_allow_nothing() {
    let broken = [json!({"metadata": {"name": "a"}, "rules": [{"verbs": 1}, {"verbs": ["get"], "apiGroups": "x"}]})];
    let mut policy = PolicySet::default();
    policy.set_cluster_roles(&broken);
    policy.set_cluster_role_bindings(&[
        json!({"metadata": {"name": "b"}, "roleRef": 3, "subjects": [{"kind": "User"}, 7, null]}),
        json!({}),
    ]);
    assert_eq!(policy.cluster_role("a"), Some(&Role::default()));
    assert!(!authorize(&policy, &User::default(), &wants("", "get core pods a")).allowed);
    assert_eq!(rule("get")["apiGroups"], json!([]));
}
