//! Tokens of ServiceAccounts.

use serde_json::{Value, json};

use crate::support::{Http, Scope, cases};

cases! {
    "3.21" a_service_account_authenticates_with_its_token;
    "3.21" a_token_has_the_permissions_of_its_account;
    "3.21" a_token_is_invalid_after_its_account_is_deleted;
    "3.21" a_token_has_an_expiry_and_an_audience;
    "3.21" tokens_are_reviewed;
    "3.21" an_absent_account_gets_no_token;
}

/// Creates an account and requests a token. Returns the token and the whole response.
pub(super) async fn account_token(scope: &Scope, name: &str) -> (String, Value) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    accounts.create(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})).await.is(201);
    request(scope, name, json!({})).await
}

async fn request(scope: &Scope, name: &str, spec: Value) -> (String, Value) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let answer = scope.http().post(&accounts.path(&format!("{name}/token")), &body).await.is(201);
    (answer["status"]["token"].as_str().expect("a token").to_owned(), answer)
}

fn with_token(scope: &Scope, token: &str) -> Http {
    let mut config = scope.server().config();
    config.auth_info = kube::config::AuthInfo::default();
    Http::new(&config).with("authorization", &format!("Bearer {token}"))
}

async fn a_service_account_authenticates_with_its_token(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (token, answer) = account_token(scope, "robot").await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert!(answer["status"]["expirationTimestamp"].is_string(), "{answer}");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let me = with_token(scope, &token).post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.is(201);
    let user = &me["status"]["userInfo"];
    assert_eq!(user["username"], format!("system:serviceaccount:{namespace}:robot"));
    let groups = user["groups"].as_array().unwrap();
    for group in ["system:serviceaccounts", "system:authenticated"] {
        assert!(groups.contains(&json!(group)), "{user}");
    }
    let account = scope.collection("v1", "serviceaccounts").await.get("robot").await.ok();
    assert_eq!(user["uid"], account["metadata"]["uid"]);
}

async fn a_token_has_the_permissions_of_its_account(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (token, _) = account_token(scope, "robot").await;
    let robot = scope.secrets().await.through(&with_token(scope, &token));
    robot.list("").await.refused(403, "Forbidden");
    super::users::grant(
        scope,
        &format!("system:serviceaccount:{namespace}:robot"),
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]),
    )
    .await;
    robot.list("").await.is(200);
}

async fn a_token_is_invalid_after_its_account_is_deleted(scope: &Scope) {
    let (token, _) = account_token(scope, "robot").await;
    let robot = with_token(scope, &token);
    robot.get("/api").await.is(200);
    scope.collection("v1", "serviceaccounts").await.delete("robot").await.ok();
    // Servers may cache for a few seconds that the token was valid.
    robot.until("/api", "refused", |answer| answer.status == 401).await;
}

async fn a_token_has_an_expiry_and_an_audience(scope: &Scope) {
    account_token(scope, "robot").await;
    let (token, answer) = request(scope, "robot", json!({"audiences": ["vault"], "expirationSeconds": 600})).await;
    assert_eq!(answer["spec"]["audiences"], json!(["vault"]));
    assert_eq!(answer["spec"]["expirationSeconds"], 600);
    with_token(scope, &token).get("/api").await.refused(401, "Unauthorized");
    let accounts = scope.collection("v1", "serviceaccounts").await;
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 5}});
    scope.http().post(&accounts.path("robot/token"), &body).await.invalid("spec.expirationSeconds");
}

async fn tokens_are_reviewed(scope: &Scope) {
    let namespace = scope.namespace().await;
    let (token, _) = account_token(scope, "robot").await;
    let review = |token: &str| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        async move {
            scope.http().post("/apis/authentication.k8s.io/v1/tokenreviews", &body).await.is(201)["status"].clone()
        }
    };
    let good = review(&token).await;
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["user"]["username"], format!("system:serviceaccount:{namespace}:robot"));
    let bad = review("wrong").await;
    assert_ne!(bad.get("authenticated"), Some(&json!(true)));
    assert!(bad["error"].is_string(), "{bad}");
}

async fn an_absent_account_gets_no_token(scope: &Scope) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    scope.http().post(&accounts.path("absent/token"), &body).await.refused(404, "NotFound");
}
