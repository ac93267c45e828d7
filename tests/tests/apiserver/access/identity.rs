//! Authentication: tokens, anonymous users, impersonation.

use serde_json::{Value, json};

use super::users::{rule, user, user_with};
use crate::support::{Http, Scope, cases};

cases! {
    "3.21" a_wrong_token_is_refused;
    "3.21" anonymous_users_may_read_little;
    "3.21" who_am_i;
    "3.21" impersonation_uses_the_permissions_of_the_other_user;
    "3.21" impersonation_takes_groups_and_extra;
    "3.21" groups_without_a_user_are_refused;
    "3.21" impersonation_needs_permission;
    "3.21" accounts_can_be_impersonated;
}

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn self_review(http: &Http) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    http.post(REVIEWS, &review).await.is(201)["status"]["userInfo"].clone()
}

/// Without client certificates and with this token.
fn with_token(scope: &Scope, token: Option<&str>) -> Http {
    let mut config = scope.server().config();
    config.auth_info = kube::config::AuthInfo::default();
    let http = Http::new(&config);
    match token {
        Some(token) => http.with("authorization", &format!("Bearer {token}")),
        None => http,
    }
}

async fn a_wrong_token_is_refused(scope: &Scope) {
    let namespace = scope.namespace().await;
    let stranger = with_token(scope, Some("wrong"));
    for path in [format!("/api/v1/namespaces/{namespace}/secrets"), "/api".to_owned(), "/version".to_owned()] {
        let status = stranger.get(&path).await.refused(401, "Unauthorized");
        assert_eq!(status["message"], "Unauthorized");
    }
}

async fn anonymous_users_may_read_little(scope: &Scope) {
    let namespace = scope.namespace().await;
    let anonymous = with_token(scope, None);
    let answer = anonymous.get(&format!("/api/v1/namespaces/{namespace}/secrets")).await;
    assert!(matches!(answer.status, 401 | 403), "{} {}", answer.status, answer.text);
    if answer.status == 403 {
        let status = answer.refused(403, "Forbidden");
        assert!(
            status["message"].as_str().unwrap().contains(r#"User "system:anonymous" cannot list resource "secrets""#)
        );
        anonymous.get("/version").await.is(200);
        assert_eq!(anonymous.get("/readyz").await.status, 200);
    }
}

async fn who_am_i(scope: &Scope) {
    let me = self_review(scope.http()).await;
    assert!(me["username"].is_string(), "{me}");
    assert!(me["groups"].as_array().unwrap().contains(&json!("system:authenticated")), "{me}");
}

async fn impersonation_uses_the_permissions_of_the_other_user(scope: &Scope) {
    let secrets = scope.secrets().await;
    let (name, reader) = user_with(scope, json!([rule(&["get", "list"], &["secrets"])])).await;
    let as_reader = secrets.through(&reader);
    as_reader.list("").await.is(200);
    let status = as_reader.create(&json!({"metadata": {"name": "a"}})).await.refused(403, "Forbidden");
    let namespace = scope.namespace().await;
    assert_eq!(
        status["message"],
        format!(
            "secrets is forbidden: User \"{name}\" cannot create resource \"secrets\" in API group \"\" in the namespace \
             \"{namespace}\""
        )
    );
    assert_eq!(status["details"], json!({"kind": "secrets"}));
    let me = self_review(&reader).await;
    assert_eq!(me["username"], name);
}

async fn impersonation_takes_groups_and_extra(scope: &Scope) {
    let http = scope
        .http()
        .with("impersonate-user", "jane")
        .with("impersonate-group", "crew")
        .with("impersonate-group", "pilots")
        .with("impersonate-uid", "42")
        .with("impersonate-extra-scopes", "view");
    let me = self_review(&http).await;
    assert_eq!(me["username"], "jane");
    assert_eq!(me["uid"], "42");
    assert_eq!(me["extra"], json!({"scopes": ["view"]}));
    assert_eq!(me["groups"], json!(["crew", "pilots", "system:authenticated"]));
}

async fn groups_without_a_user_are_refused(scope: &Scope) {
    let answer = scope.http().with("impersonate-group", "crew").get("/api/v1/namespaces").await;
    assert!((400..=500).contains(&answer.status), "{}", answer.text);
    assert!(answer.text.contains("without impersonating a user"), "{}", answer.text);
}

async fn impersonation_needs_permission(scope: &Scope) {
    // Impersonation does not nest: the permissions of the authenticated user count, and a plain user has none.
    let (token, _) = super::tokens::account_token(scope, "plain").await;
    let plain = with_token(scope, Some(&token)).with("impersonate-user", "jane");
    let status = plain.get("/api/v1/namespaces").await.refused(403, "Forbidden");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains(" is forbidden: ") && message.contains(" cannot impersonate"), "{message}");
}

async fn accounts_can_be_impersonated(scope: &Scope) {
    let namespace = scope.namespace().await;
    let name = format!("system:serviceaccount:{namespace}:robot");
    let me = self_review(&scope.http().with("impersonate-user", &name)).await;
    assert_eq!(me["username"], name);
    let groups = me["groups"].as_array().unwrap();
    for group in [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ] {
        assert!(groups.contains(&json!(group)), "{me}");
    }
    let status = scope.secrets().await.through(&user(scope, &name)).list("").await.refused(403, "Forbidden");
    assert!(status["message"].as_str().unwrap().contains(&name));
}
