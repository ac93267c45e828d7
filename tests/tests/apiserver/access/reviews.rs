//! Access reviews.

use serde_json::{Value, json};

use super::users::{rule, user_with};
use crate::support::{Http, Scope, cases};

cases! {
    "3.21" what_may_i_do;
    "3.21" what_may_a_user_do;
    "3.21" what_may_a_user_do_in_a_namespace;
    "3.21" which_rules_do_i_have;
    "3.21" a_review_is_complete;
    "3.21" reviews_of_other_users_need_permission;
}

const ROOT: &str = "/apis/authorization.k8s.io/v1";

async fn review(http: &Http, path: &str, kind: &str, spec: Value) -> Value {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    http.post(&format!("{ROOT}/{path}"), &body).await.is(201)
}

async fn what_may_i_do(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (name, http) = user_with(scope, json!([rule(&["get"], &["secrets", "pods/log"])])).await;
    let may = |attributes: Value| {
        let http = http.clone();
        async move {
            let answer = review(
                &http,
                "selfsubjectaccessreviews",
                "SelfSubjectAccessReview",
                json!({"resourceAttributes": attributes}),
            )
            .await;
            (answer["status"]["allowed"].clone(), answer["status"]["reason"].clone())
        }
    };
    let (allowed, reason) = may(json!({"namespace": namespace, "verb": "get", "resource": "secrets"})).await;
    assert_eq!(allowed, true);
    let expected = format!("RBAC: allowed by RoleBinding \"{name}/{namespace}\" of Role \"{name}\" to User \"{name}\"");
    assert_eq!(reason, expected);
    assert_eq!(may(json!({"namespace": namespace, "verb": "delete", "resource": "secrets"})).await.0, false);
    assert_eq!(may(json!({"namespace": "elsewhere", "verb": "get", "resource": "secrets"})).await.0, false);
    assert_eq!(
        may(json!({"namespace": namespace, "verb": "get", "resource": "pods", "subresource": "log"})).await.0,
        true
    );
    assert_eq!(may(json!({"namespace": namespace, "verb": "get", "resource": "pods"})).await.0, false);
    assert_eq!(
        may(json!({"namespace": namespace, "verb": "get", "resource": "secrets", "group": "apps"})).await.0,
        false
    );
    let everything = json!({"resourceAttributes": {"verb": "*", "resource": "*", "group": "*"}});
    let admin = review(scope.http(), "selfsubjectaccessreviews", "SelfSubjectAccessReview", everything).await;
    assert_eq!(admin["status"]["allowed"], true);
    let path = json!({"nonResourceAttributes": {"path": "/version", "verb": "get"}});
    let answer = review(&http, "selfsubjectaccessreviews", "SelfSubjectAccessReview", path).await;
    assert_eq!(answer["status"]["allowed"], true);
}

async fn what_may_a_user_do(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (name, _) = user_with(scope, json!([rule(&["get"], &["secrets"])])).await;
    for (verb, expected) in [("get", true), ("list", false)] {
        let spec =
            json!({"user": name, "resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "secrets"}});
        let answer = review(scope.http(), "subjectaccessreviews", "SubjectAccessReview", spec).await;
        assert_eq!(answer["status"]["allowed"], expected, "{verb}");
        assert_eq!(answer["spec"]["user"], name, "the answer repeats the question");
    }
}

async fn what_may_a_user_do_in_a_namespace(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (name, _) = user_with(scope, json!([rule(&["get"], &["secrets"])])).await;
    let path = format!("namespaces/{namespace}/localsubjectaccessreviews");
    let attributes = json!({"namespace": namespace, "verb": "get", "resource": "secrets"});
    let mut body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": namespace}, "spec": {"user": name, "resourceAttributes": attributes}});
    let answer = scope.http().post(&format!("{ROOT}/{path}"), &body).await.is(201);
    assert_eq!(answer["status"]["allowed"], true);
    body["spec"]["resourceAttributes"]["namespace"] = "elsewhere".into();
    let answer = scope.http().post(&format!("{ROOT}/{path}"), &body).await;
    assert!((400..500).contains(&answer.status), "{} {}", answer.status, answer.text);
}

async fn which_rules_do_i_have(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (_, http) = user_with(scope, json!([rule(&["get", "watch"], &["secrets"])])).await;
    let answer =
        review(&http, "selfsubjectrulesreviews", "SelfSubjectRulesReview", json!({"namespace": namespace})).await;
    let status = &answer["status"];
    assert!(status["resourceRules"].as_array().unwrap().contains(&rule(&["get", "watch"], &["secrets"])), "{status}");
    assert!(status["nonResourceRules"].to_string().contains("/version"), "{status}");
    assert_eq!(status["incomplete"], false);
}

async fn a_review_is_complete(scope: &Scope) {
    let post = |path: &str, kind: &str, spec: Value| {
        let (path, body) =
            (format!("{ROOT}/{path}"), json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}));
        async move { scope.http().post(&path, &body).await }
    };
    post("selfsubjectaccessreviews", "SelfSubjectAccessReview", json!({})).await.invalid("spec.resourceAttributes");
    let both = json!({"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}});
    post("selfsubjectaccessreviews", "SelfSubjectAccessReview", both).await.invalid("spec.nonResourceAttributes");
    let no_user = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    post("subjectaccessreviews", "SubjectAccessReview", no_user).await.invalid("spec.user");
}

async fn reviews_of_other_users_need_permission(scope: &Scope) {
    let (name, http) = user_with(scope, json!([rule(&["get"], &["secrets"])])).await;
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": name, "resourceAttributes": {"verb": "get", "resource": "secrets"}}});
    http.post(&format!("{ROOT}/subjectaccessreviews"), &body).await.refused(403, "Forbidden");
}
