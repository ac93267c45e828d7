//! Access control: impersonation, RBAC, privilege escalation, reviews.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::common::{
    APPLY, CONFIG_MAPS, MERGE,
    access::{account, acting_as, refused, with_token},
    config_map, get, ok, quiet, send, until,
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    })
}

/// Grants a user a permission in the default namespace.
async fn grant(client: &Client, name: &str, user: &str, rules: Value) {
    ok(client, "POST", ROLES, "", role(name, rules)).await;
    ok(client, "POST", ROLE_BINDINGS, "", binding(name, "Role", name, user)).await;
}

#[tokio::test]
async fn anonymous_users_see_public_paths_and_invalid_tokens_nothing() {
    let cluster = quiet().await;
    let stranger = with_token(&cluster, None).await;
    for path in ["/version", "/healthz", "/readyz", "/livez"] {
        assert_eq!(get(&stranger, path).await.0, 200, "{path}");
    }
    let cases = [
        ("/api", r#"forbidden: User "system:anonymous" cannot get path "/api""#),
        ("/nothing", r#"forbidden: User "system:anonymous" cannot get path "/nothing""#),
        ("/openid/v1/jwks", r#"forbidden: User "system:anonymous" cannot get path "/openid/v1/jwks""#),
        (
            CONFIG_MAPS,
            r#"configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default""#,
        ),
        (
            "/apis/example.com/v1/absent/x",
            r#"absent.example.com "x" is forbidden: User "system:anonymous" cannot get resource "absent" in API group "example.com" at the cluster scope"#,
        ),
    ];
    for (path, message) in cases {
        assert_eq!(refused(&stranger, "GET", path, "", Value::Null).await, message);
    }
    let wrong = with_token(&cluster, Some("wrong")).await;
    for path in ["/version", CONFIG_MAPS] {
        let (status, answer) = get(&wrong, path).await;
        assert_eq!((status, &answer["reason"]), (401, &json!("Unauthorized")), "{path}");
    }
}

#[tokio::test]
async fn roles_take_effect_as_soon_as_they_are_bound() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let jane = acting_as(&cluster, "jane", &[]).await;
    let map = format!("{CONFIG_MAPS}/a");
    ok(&admin, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    refused(&jane, "GET", &map, "", Value::Null).await;
    grant(&admin, "reader", "jane", json!([rule(&["get", "watch"], "", &["configmaps"])])).await;
    ok(&jane, "GET", &map, "", Value::Null).await;
    let message = refused(&jane, "GET", CONFIG_MAPS, "", Value::Null).await;
    assert!(message.contains(r#"User "jane" cannot list resource "configmaps""#), "{message}");
    refused(&jane, "GET", "/api/v1/configmaps?watch=1", "", Value::Null).await;
    refused(&jane, "DELETE", CONFIG_MAPS, "", Value::Null).await;
    assert!(
        refused(&jane, "GET", "/api/v1/namespaces/default", "", Value::Null)
            .await
            .starts_with("namespaces \"default\"")
    );

    // A list with one name concerns that object.
    let only = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["list"]}]);
    grant(&admin, "lister", "jane", only).await;
    ok(&jane, "GET", &format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da"), "", Value::Null).await;
    refused(&jane, "GET", &format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db"), "", Value::Null).await;

    ok(&admin, "DELETE", &format!("{ROLES}/reader"), "", Value::Null).await;
    let message = refused(&jane, "GET", &map, "", Value::Null).await;
    assert!(message.ends_with(r#": RBAC: role.rbac.authorization.k8s.io "reader" not found"#), "{message}");
}

#[tokio::test]
async fn server_side_apply_creates_only_with_the_create_permission() {
    let cluster = quiet().await;
    let admin = cluster.client();
    grant(&admin, "patcher", "jane", json!([rule(&["patch"], "", &["configmaps"])])).await;
    let jane = acting_as(&cluster, "jane", &[]).await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=jane");
    let map = config_map("a", &json!({"x": "1"}));
    let message = refused(&jane, "PATCH", &path, APPLY, map.clone()).await;
    assert_eq!(
        message,
        r#"configmaps "a" is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "default""#
    );
    ok(&admin, "POST", CONFIG_MAPS, "", config_map("a", &json!({}))).await;
    ok(&jane, "PATCH", &path, APPLY, map).await;
}

#[tokio::test]
async fn impersonation_needs_permission() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let robot = account(&admin, "robot").await;
    let as_user = async |headers: &[(&str, &str)]| {
        let client = with_token(&cluster, Some(&robot)).await;
        let mut request = Request::get(CONFIG_MAPS);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = client.send(request.body(kube::client::Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        (status, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    let robot_cannot = |what: &str| format!(r#"User "system:serviceaccount:default:robot" cannot {what}"#);
    let (status, message) = as_user(&[("Impersonate-User", "bob")]).await;
    let what = r#"impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "default""#;
    assert_eq!((status, message), (403, format!("configmaps is forbidden: {}", robot_cannot(what))));

    let rules =
        json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}]);
    ok(&admin, "POST", &format!("{RBAC}/clusterroles"), "", role("act", rules)).await;
    let bound = binding("act", "ClusterRole", "act", "system:serviceaccount:default:robot");
    ok(&admin, "POST", &format!("{RBAC}/clusterrolebindings"), "", bound).await;
    let (_, message) = as_user(&[("Impersonate-User", "bob")]).await;
    assert!(message.contains(r#"User "bob" cannot list resource "configmaps""#), "{message}");
    grant(&admin, "reader", "bob", json!([rule(&["list"], "", &["configmaps"])])).await;
    assert_eq!(as_user(&[("Impersonate-User", "bob")]).await.0, 200);
    let cannot = robot_cannot("impersonate");
    let cases = [
        (
            vec![("Impersonate-User", "alice")],
            format!(r#"users "alice" is forbidden: {cannot} resource "users" in API group "" at the cluster scope"#),
        ),
        (
            vec![("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
            format!(
                r#"groups "system:masters" is forbidden: {cannot} resource "groups" in API group "" at the cluster scope"#
            ),
        ),
        (
            vec![("Impersonate-User", "bob"), ("Impersonate-Extra-Acme.io%2fScope", "x")],
            format!(
                r#"userextras.authentication.k8s.io "x" is forbidden: {cannot} resource "userextras/acme.io/scope" in API group "authentication.k8s.io" at the cluster scope"#
            ),
        ),
    ];
    for (headers, expected) in cases {
        assert_eq!(as_user(&headers).await, (403, expected));
    }
    let (status, message) = as_user(&[("Impersonate-Group", "g")]).await;
    assert_eq!(status, 400);
    assert!(message.ends_with("without impersonating a user name"), "{message}");
}

#[tokio::test]
async fn users_cannot_grant_permissions_they_lack() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    let resources = ["roles", "rolebindings"];
    grant(&admin, "delegate", "carol", json!([rule(&verbs, "rbac.authorization.k8s.io", &resources)])).await;
    let carol = acting_as(&cluster, "carol", &[]).await;
    let pods = role("pods", json!([rule(&["get", "list"], "", &["pods", "pods/log"])]));
    let expected = "roles.rbac.authorization.k8s.io \"pods\" is forbidden: user \"carol\" (groups=[\"system:authenticated\"]) \
                    is attempting to grant RBAC permissions not currently held:\n\
                    {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
                    {APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"get\" \"list\"]}";
    assert_eq!(refused(&carol, "POST", ROLES, "", pods.clone()).await, expected);
    assert_eq!(refused(&carol, "POST", &format!("{ROLES}?dryRun=All"), "", pods.clone()).await, expected);
    let apply = format!("{ROLES}/pods?fieldManager=carol");
    let mut applied = pods.clone();
    applied["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    applied["kind"] = "Role".into();
    assert_eq!(refused(&carol, "PATCH", &apply, APPLY, applied).await, expected);

    // A change that grants nothing new is allowed.
    ok(&admin, "POST", ROLES, "", pods).await;
    let path = format!("{ROLES}/pods");
    ok(&carol, "PATCH", &path, MERGE, json!({"metadata": {"finalizers": ["example.com/x"]}})).await;
    let message = refused(&carol, "PATCH", &path, MERGE, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(message, expected, "labels can be what another role gathers by");
    ok(&carol, "PATCH", &path, MERGE, json!({"metadata": {"finalizers": null}})).await;
    ok(&carol, "DELETE", &path, "", Value::Null).await;

    // Bindings: users may bind roles whose permissions they hold, or that they may `bind`.
    ok(&carol, "POST", ROLE_BINDINGS, "", binding("same", "Role", "delegate", "dave")).await;
    let message =
        refused(&carol, "POST", ROLE_BINDINGS, "", binding("all", "ClusterRole", "cluster-admin", "dave")).await;
    assert!(
        message.ends_with(
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
        ),
        "{message}"
    );
    let (status, answer) = send(&carol, "POST", ROLE_BINDINGS, "", binding("none", "Role", "absent", "dave")).await;
    assert_eq!(
        (status, &answer["message"]),
        (404, &json!("rolebindings.rbac.authorization.k8s.io \"absent\" not found"))
    );
    let bind = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"], "verbs": ["bind"]}]);
    grant(&admin, "bind", "carol", bind).await;
    ok(&carol, "POST", ROLE_BINDINGS, "", binding("all", "ClusterRole", "cluster-admin", "dave")).await;
    let message = refused(&carol, "POST", ROLES, "", role("x", json!([rule(&["*"], "", &["pods"])]))).await;
    assert!(message.contains("not currently held"), "{message}");
    ok(&admin, "POST", ROLES, "", role("lead", json!([rule(&["escalate"], "rbac.authorization.k8s.io", &["roles"])])))
        .await;
    ok(&admin, "POST", ROLE_BINDINGS, "", binding("lead", "Role", "lead", "carol")).await;
    ok(&carol, "POST", ROLES, "", role("x", json!([rule(&["*"], "", &["pods"])]))).await;

    let changed = json!({"roleRef": {"name": "lead"}});
    let (status, answer) = send(&admin, "PATCH", &format!("{ROLE_BINDINGS}/same"), MERGE, changed).await;
    assert_eq!(status, 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("cannot change roleRef"), "{answer}");
}

#[tokio::test]
async fn cluster_roles_are_aggregated() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let path = |name: &str| format!("{RBAC}/clusterroles/{name}");
    let (_, view) = get(&admin, &path("view")).await;
    assert!(view["rules"].as_array().unwrap().len() > 5, "gathered before anybody asks: {view}");
    let mut widgets = role("widgets", json!([rule(&["get"], "example.com", &["widgets"])]));
    widgets["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    ok(&admin, "POST", &format!("{RBAC}/clusterroles"), "", widgets).await;
    let has = |role: &Value| role["rules"].as_array().unwrap().iter().any(|rule| rule["apiGroups"][0] == "example.com");
    for name in ["view", "edit", "admin"] {
        until(&admin, &path(name), |_, role| has(role)).await;
    }
    ok(&admin, "DELETE", &path("widgets"), "", Value::Null).await;
    for name in ["view", "edit", "admin"] {
        until(&admin, &path(name), |_, role| !has(role)).await;
    }

    // A user who aggregates roles could aggregate anything.
    let rules = json!([rule(&["create"], "rbac.authorization.k8s.io", &["clusterroles"])]);
    ok(&admin, "POST", &format!("{RBAC}/clusterroles"), "", role("writer", rules)).await;
    ok(&admin, "POST", &format!("{RBAC}/clusterrolebindings"), "", binding("writer", "ClusterRole", "writer", "carol"))
        .await;
    let carol = acting_as(&cluster, "carol", &[]).await;
    let mut gathering = role("all", json!([]));
    gathering["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let message = refused(&carol, "POST", &format!("{RBAC}/clusterroles"), "", gathering).await;
    assert!(message.ends_with("must have cluster-admin privileges to use the aggregationRule"), "{message}");
}

#[tokio::test]
async fn reviews_match_authorization_decisions() {
    let cluster = quiet().await;
    let admin = cluster.client();
    grant(&admin, "reader", "jane", json!([rule(&["get"], "", &["pods"])])).await;
    let jane = acting_as(&cluster, "jane", &[]).await;
    let ask = async |client: &Client, kind: &str, path: &str, spec: Value| {
        let path = format!("{REVIEWS}/{path}");
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        send(client, "POST", &path, "", review).await
    };
    let pods = |verb: &str| json!({"namespace": "default", "verb": verb, "resource": "pods"});
    let own = "SelfSubjectAccessReview";
    let (_, review) = ask(&jane, own, "selfsubjectaccessreviews", json!({"resourceAttributes": pods("get")})).await;
    let reason = r#"RBAC: allowed by RoleBinding "reader/default" of Role "reader" to User "jane""#;
    assert_eq!(review["status"], json!({"allowed": true, "reason": reason}));
    let (_, review) = ask(&jane, own, "selfsubjectaccessreviews", json!({"resourceAttributes": pods("list")})).await;
    assert_eq!(review["status"], json!({"allowed": false}));
    let path = json!({"nonResourceAttributes": {"path": "/version", "verb": "get"}});
    assert_eq!(ask(&jane, own, "selfsubjectaccessreviews", path).await.1["status"]["allowed"], true);

    let of = json!({"user": "jane", "resourceAttributes": pods("get")});
    let (_, review) = ask(&admin, "SubjectAccessReview", "subjectaccessreviews", of.clone()).await;
    assert_eq!(review["status"]["allowed"], true);
    let (_, review) =
        ask(&admin, "LocalSubjectAccessReview", "namespaces/default/localsubjectaccessreviews", of.clone()).await;
    assert_eq!(review["status"]["allowed"], true);
    let elsewhere = "namespaces/kube-system/localsubjectaccessreviews";
    let (status, review) = ask(&admin, "LocalSubjectAccessReview", elsewhere, of.clone()).await;
    assert_eq!(status, 422, "{review}");
    refused(&jane, "POST", &format!("{REVIEWS}/subjectaccessreviews"), "", json!({"spec": of})).await;
    for spec in [json!({}), json!({"user": "x"}), json!({"resourceAttributes": {}})] {
        let (status, review) = ask(&admin, "SubjectAccessReview", "subjectaccessreviews", spec).await;
        assert_eq!(status, 422, "{review}");
    }

    let (_, review) =
        ask(&jane, "SelfSubjectRulesReview", "selfsubjectrulesreviews", json!({"namespace": "default"})).await;
    let rules = review["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.contains(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})), "{review}");
    assert!(!review["status"]["nonResourceRules"].as_array().unwrap().is_empty());
    assert_eq!(ask(&jane, "SelfSubjectRulesReview", "selfsubjectrulesreviews", json!({})).await.0, 400);
}
