//! Tokens of ServiceAccounts, and the default objects of every namespace.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::common::{
    CONFIG_MAPS,
    access::{ACCOUNTS, account, refused, token, with_token},
    get, ok, quiet, send, until, until_gone,
};

#[tokio::test]
async fn service_account_tokens_are_valid_until_their_bound_object_is_deleted() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin.clone());
    accounts
        .create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap())
        .await
        .unwrap();
    let request = TokenRequest {
        spec: TokenRequestSpec { audiences: Vec::new(), expiration_seconds: Some(600), bound_object_ref: None },
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    assert_eq!(answer.spec.audiences, ["https://kubernetes.default.svc"]);
    let whoami = async |token: &str| {
        let client = with_token(&cluster, Some(token)).await;
        send(&client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "", json!({})).await
    };
    let plain = answer.status.unwrap().token;
    let (status, review) = whoami(&plain).await;
    assert_eq!(status, 201, "{review}");
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert_eq!(whoami(&format!("{plain}x")).await.0, 401);
    assert_eq!(whoami(&token(&admin, "robot", json!({"audiences": ["vault"]})).await).await.0, 401);

    ok(&admin, "POST", "/api/v1/namespaces/default/secrets", "", json!({"metadata": {"name": "s"}})).await;
    let spec = json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}});
    let bound = token(&admin, "robot", spec).await;
    assert_eq!(whoami(&bound).await.0, 201);
    ok(&admin, "DELETE", "/api/v1/namespaces/default/secrets/s", "", Value::Null).await;
    assert_eq!(whoami(&bound).await.0, 401);

    let pods = "/api/v1/namespaces/default/pods";
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
    assert_eq!(ok(&admin, "POST", pods, "", pod.clone()).await["spec"]["serviceAccountName"], "default");
    let by_pod = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}});
    let path = format!("{ACCOUNTS}/robot/token");
    assert_eq!(send(&admin, "POST", &path, "", by_pod.clone()).await.0, 400, "the Pod runs as another");
    ok(&admin, "DELETE", &format!("{pods}/p?gracePeriodSeconds=0"), "", Value::Null).await;
    until_gone(&admin, &format!("{pods}/p")).await;
    pod["spec"]["serviceAccountName"] = "robot".into();
    ok(&admin, "POST", pods, "", pod).await;
    let bound = ok(&admin, "POST", &path, "", by_pod).await["status"]["token"].as_str().unwrap().to_owned();
    let (_, review) = whoami(&bound).await;
    assert_eq!(review["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));

    ok(&admin, "DELETE", &format!("{ACCOUNTS}/robot"), "", Value::Null).await;
    assert_eq!(whoami(&plain).await.0, 401);
    account(&admin, "robot").await;
    assert_eq!(whoami(&plain).await.0, 401, "another ServiceAccount has the name now");
}

#[tokio::test]
async fn requests_for_tokens_are_checked() {
    let cluster = quiet().await;
    let admin = cluster.client();
    account(&admin, "robot").await;
    let path = format!("{ACCOUNTS}/robot/token");
    let bound =
        |kind: &str, name: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}}});
    let cases = [
        (json!({"spec": {"expirationSeconds": 10}}), 422, "may not specify a duration less than 10 minutes"),
        (
            json!({"spec": {"expirationSeconds": 1_i64 << 40}}),
            422,
            "may not specify a duration larger than 2^32 seconds",
        ),
        (json!({"spec": {"expirationSeconds": "x"}}), 400, "cannot be handled as a TokenRequest"),
        (json!({"metadata": {"name": "x"}}), 422, "must match the service account name if specified"),
        (json!({"metadata": {"uid": "x"}}), 409, "does not match the UID of the service account"),
        (json!({"kind": "Pod", "apiVersion": "v1"}), 400, "cannot be handled as a TokenRequest"),
        (bound("Secret", "absent"), 404, r#"secrets "absent" not found"#),
        (bound("Node", "absent"), 404, r#"nodes "absent" not found"#),
        (bound("ConfigMap", "x"), 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
    ];
    for (body, expected, text) in cases {
        let (status, answer) = send(&admin, "POST", &path, "", body.clone()).await;
        assert_eq!(status, expected, "{body} {answer}");
        assert!(answer["message"].as_str().unwrap().contains(text), "{answer}");
    }
    assert_eq!(get(&admin, &path).await.0, 405);
    assert_eq!(send(&admin, "POST", &format!("{ACCOUNTS}/absent/token"), "", json!({})).await.0, 404);
}

#[tokio::test]
async fn secrets_for_tokens_are_filled_and_go_with_their_service_account() {
    let cluster = quiet().await;
    let admin = cluster.client();
    account(&admin, "robot").await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |name: &str, account: &str| {
        json!({
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}}})
    };
    ok(&admin, "POST", secrets, "", secret("kept", "robot")).await;
    let kept = until(&admin, &format!("{secrets}/kept"), |_, secret| !secret["data"]["token"].is_null()).await;
    let text =
        |field: &str| String::from_utf8(STANDARD.decode(kept["data"][field].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(text("namespace"), "default");
    assert!(text("ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
    let robot = with_token(&cluster, Some(&text("token"))).await;
    let message = refused(&robot, "GET", CONFIG_MAPS, "", Value::Null).await;
    assert!(message.contains("system:serviceaccount:default:robot"), "{message}");

    let (status, answer) = send(&admin, "POST", secrets, "", secret("nobody", "")).await;
    assert_eq!(status, 422, "{answer}");
    ok(&admin, "POST", secrets, "", secret("stray", "absent")).await;
    until_gone(&admin, &format!("{secrets}/stray")).await;
    ok(&admin, "DELETE", &format!("{ACCOUNTS}/robot"), "", Value::Null).await;
    until_gone(&admin, &format!("{secrets}/kept")).await;
    assert_eq!(get(&robot, CONFIG_MAPS).await.0, 401);
}

#[tokio::test]
async fn others_can_check_tokens_by_the_published_key() {
    let cluster = quiet().await;
    let admin = cluster.client();
    let robot = account(&admin, "robot").await;
    let client = with_token(&cluster, Some(&robot)).await;
    let (_, configuration) = get(&client, "/.well-known/openid-configuration").await;
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc");
    assert_eq!(configuration["jwks_uri"], format!("{}/openid/v1/jwks", cluster.url()));
    let (_, keys) = get(&client, "/openid/v1/jwks").await;
    let header: Value = serde_json::from_slice(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(robot.split('.').next().unwrap()).unwrap(),
    )
    .unwrap();
    assert_eq!((&keys["keys"][0]["kid"], &keys["keys"][0]["alg"]), (&header["kid"], &header["alg"]));
}

#[tokio::test]
async fn tokens_are_reviewed_for_others() {
    let cluster = quiet().await;
    let admin = cluster.client();
    account(&admin, "robot").await;
    let vault = token(&admin, "robot", json!({"audiences": ["vault"]})).await;
    let review = async |spec: Value| {
        let body = json!({"spec": spec});
        ok(&admin, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", body).await["status"].clone()
    };
    let status = review(json!({"token": vault, "audiences": ["vault", "other"]})).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
    let error = r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc"]]"#;
    assert_eq!(review(json!({"token": vault})).await, json!({"user": {}, "error": error}));
    assert_eq!(review(json!({"token": "x"})).await, json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test]
async fn every_namespace_has_a_service_account_and_the_authority() {
    let cluster = quiet().await;
    let admin = cluster.client();
    ok(&admin, "POST", "/api/v1/namespaces", "", json!({"metadata": {"name": "shop"}})).await;
    until(&admin, "/api/v1/namespaces/shop/serviceaccounts/default", |status, _| status == 200).await;
    let map = until(&admin, "/api/v1/namespaces/shop/configmaps/kube-root-ca.crt", |status, _| status == 200).await;
    assert!(map["data"]["ca.crt"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let path = format!("/api/v1/namespaces/shop/{path}");
        let lost = ok(&admin, "GET", &path, "", Value::Null).await;
        ok(&admin, "DELETE", &path, "", Value::Null).await;
        until(&admin, &path, |status, made| status == 200 && made["metadata"]["uid"] != lost["metadata"]["uid"]).await;
    }
    ok(&admin, "DELETE", "/api/v1/namespaces/shop", "", Value::Null).await;
    until_gone(&admin, "/api/v1/namespaces/shop").await;
}
