//! Alerts: what happens to objects is sent to servers outside of the cluster.

use chandler_api::{Alert, ConditionType, find_condition};
use chandler_tests::{
    World,
    bundles::Bundle,
    notification_server::{NotificationServer, Received, Reply},
    wait,
};
use hmac::{Hmac, Mac as _};
use k8s_openapi::api::{core::v1::Secret, rbac::v1::ClusterRole};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::PLAIN;

const TOKEN: &str = "t0ken-s3cret";
const KEY: &str = "key-s3cret";

fn alerts(world: &World) -> Api<Alert> {
    Api::all(world.client.clone())
}

async fn alert(world: &World, suffix: &str, spec: Value) -> String {
    let name = format!("{}-{suffix}", world.name());
    let _: Alert = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    // Only what is observed takes notifications.
    wait::until(&alerts(world), &name, "observed", |alert| alert.is_some_and(|alert| !state(alert).is_empty())).await;
    name
}

/// The status and the reason of the condition Ready.
fn state(alert: &Alert) -> String {
    let conditions = alert.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = find_condition(conditions, ConditionType::Ready);
    ready.map(|ready| format!("{}/{}", ready.status, ready.reason)).unwrap_or_default()
}

async fn until_state(world: &World, name: &str, expected: &str) -> Alert {
    let is_expected = |alert: Option<&Alert>| alert.is_some_and(|alert| state(alert) == expected);
    wait::until(&alerts(world), name, expected, is_expected).await.expect("the Alert")
}

async fn until_delivered(world: &World, name: &str, succeeded: bool) -> Alert {
    let has =
        |alert: &Alert| alert.status.as_ref().and_then(|status| status.last_delivery.as_ref()).map(|it| it.succeeded);
    let is_expected = |alert: Option<&Alert>| alert.and_then(has) == Some(succeeded);
    wait::until(&alerts(world), name, "a delivery", is_expected).await.expect("the Alert")
}

/// Installs a bundle.
async fn install(world: &World, suffix: &str) -> String {
    let name = format!("{}-{suffix}", world.name());
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {suffix}}}\n");
    let image = world.push(&Bundle::empty().with("manifests/map.yaml", &text)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    name
}

/// Creates a BundleDeployment of an image whose content is not a bundle.
async fn fail(world: &World, suffix: &str) -> String {
    let name = format!("{}-{suffix}", world.name());
    let image = world.push(&Bundle::empty().with("manifests/map.yaml", "kind: [")).await;
    world.deploy(&name, PLAIN, &image).await;
    name
}

fn about<'a>(received: &'a [Received], name: &str) -> Vec<&'a Received> {
    received.iter().filter(|it| it.json()["object"]["name"] == name).collect()
}

#[tokio::test]
async fn a_failure_is_sent_once_with_a_token_and_a_signature_and_no_secret_is_shown() {
    let world = World::new().await;
    let server = NotificationServer::start(&[]).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let secret = format!("{}-chat", world.name());
    let provider = json!({"type": "Webhook", "secretRef": {"name": secret}});
    let spec = json!({"provider": provider, "filter": {"severity": "Warning", "excludeReasons": ["InstallationStatusFalse"]},
        "summary": "the test"});
    let chat = alert(&world, "chat", spec).await;
    until_state(&world, &chat, "False/EndpointSecretInvalid").await;
    let data = json!({"metadata": {"name": secret}, "stringData": {
        "url": server.url("/path-s3cret\n"), "token": TOKEN, "hmacKey": KEY, "headers": "X-Team: a"}});
    let data = serde_json::from_value(data).expect("a Secret");
    secrets.create(&PostParams::default(), &data).await.expect("the Secret is accepted");

    let well = install(&world, "well").await;
    let broken = fail(&world, "broken").await;
    wait::eventually("the failure is received", || async { !about(&server.received(), &broken).is_empty() }).await;
    // What another one sends later comes after everything about the first.
    let later = fail(&world, "later").await;
    wait::eventually("the next failure is received", || async { !about(&server.received(), &later).is_empty() }).await;

    let received = server.received();
    let wrong: Vec<_> = about(&received, &well).into_iter().map(Received::json).collect();
    assert!(wrong.is_empty(), "nothing is wrong with it: {wrong:?}");
    let [it] = about(&received, &broken)[..] else { panic!("{received:?}") };
    let body = it.json();
    assert_eq!(
        (&body["severity"], &body["alert"], &body["summary"]),
        (&json!("Warning"), &json!(chat), &json!("the test"))
    );
    assert_eq!(body["object"]["kind"], "BundleDeployment");
    let message = body["message"].as_str().expect("a message");
    let deployment = world.deployments().get(&broken).await.expect("it exists").status.expect("a status");
    assert!(deployment.conditions.iter().any(|condition| condition.message == message), "{message}");
    let header = |name: &str| it.headers[name].to_str().expect("text");
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).expect("a key");
    mac.update(&it.body);
    assert_eq!(header("x-signature"), format!("sha256={}", hex::encode(mac.finalize().into_bytes())));
    assert_eq!((header("authorization"), header("x-team")), (format!("Bearer {TOKEN}").as_str(), "a"));
    assert_eq!((it.path.as_str(), header("content-type")), ("/path-s3cret", "application/json"));

    let shown = serde_json::to_string(&until_delivered(&world, &chat, true).await).expect("JSON");
    assert!(!shown.contains("s3cret"), "{shown}");
    secrets.delete(&secret, &DeleteParams::default()).await.expect("the Secret exists");
    world.finish().await;
}

#[tokio::test]
async fn a_dead_and_a_silent_server_delay_nothing_and_a_deleted_alert_sends_nothing_more() {
    let world = World::new().await;
    let (well, silent) = (NotificationServer::start(&[]).await, NotificationServer::start(&[Reply::Silence; 10]).await);
    let webhook = |url: String| json!({"provider": {"type": "Webhook", "url": url}});
    let dead = alert(&world, "dead", webhook("http://127.0.0.1:1/s3cret".to_owned())).await;
    let slow = alert(&world, "slow", webhook(silent.url("/"))).await;
    let good = alert(&world, "good", webhook(well.url("/"))).await;
    let name = install(&world, "well").await;
    wait::eventually("the silent server has the request", || async { silent.open() == 1 }).await;
    wait::eventually("the others are sent", || async {
        about(&well.received(), &name).iter().any(|it| it.json()["reason"] == "InstallationSucceeded")
    })
    .await;
    assert!(silent.open() <= 1, "one at a time");
    let failed = until_state(&world, &dead, "False/DeliveryFailed").await;
    let shown = serde_json::to_string(&failed.status).expect("JSON");
    assert!(shown.contains("the connection to the server failed") && !shown.contains("s3cret"), "{shown}");

    alerts(&world).delete(&slow, &DeleteParams::default()).await.expect("it exists");
    wait::eventually("the request is interrupted", || async { silent.open() == 0 }).await;
    let attempts = silent.received().len();
    let second = install(&world, "second").await;
    wait::eventually("the rest is sent", || async {
        about(&well.received(), &second).iter().any(|it| it.json()["reason"] == "InstallationSucceeded")
    })
    .await;
    assert_eq!(silent.received().len(), attempts);
    until_delivered(&world, &good, true).await;
    world.finish().await;
}

#[tokio::test]
async fn a_changed_secret_is_noticed_at_once() {
    let world = World::new().await;
    let server = NotificationServer::start(&[]).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let secret = format!("{}-chat", world.name());
    let data = json!({"metadata": {"name": secret}, "stringData": {"url": server.url("/")}});
    let data = serde_json::from_value(data).expect("a Secret");
    secrets.create(&PostParams::default(), &data).await.expect("the Secret is accepted");
    let chat = alert(&world, "chat", json!({"provider": {"type": "Webhook", "secretRef": {"name": secret}}})).await;
    until_state(&world, &chat, "True/NotificationsSent").await;
    // Without a notification, nothing else reads the Secret.
    for (url, expected) in [("ftp://x", "False/EndpointSecretInvalid"), (&server.url("/"), "True/NotificationsSent")] {
        let patch = Patch::Merge(json!({"stringData": {"url": url}}));
        secrets.patch(&secret, &PatchParams::default(), &patch).await.expect("the Secret exists");
        until_state(&world, &chat, expected).await;
    }
    secrets.delete(&secret, &DeleteParams::default()).await.expect("the Secret exists");
    until_state(&world, &chat, "False/EndpointSecretInvalid").await;
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_asks_to_wait_gets_the_very_same_notification_again() {
    let world = World::new().await;
    let server = NotificationServer::start(&[Reply::Later(1), Reply::Status(503)]).await;
    let filter = json!({"reasons": ["InstallationSucceeded"], "kinds": ["BundleDeployment"]});
    let spec = json!({"provider": {"type": "CloudEvents", "url": server.url("/")}, "filter": filter});
    let name = alert(&world, "events", spec).await;
    let deployment = install(&world, "well").await;
    wait::eventually("three attempts", || async { server.received().len() == 3 }).await;
    until_delivered(&world, &name, true).await;
    let received = server.received();
    assert!(received.iter().all(|it| it.body == received[0].body), "{received:?}");
    let event = received[0].json();
    assert_eq!(received[0].headers["content-type"], "application/cloudevents+json");
    assert_eq!((&event["specversion"], &event["type"]), (&json!("1.0"), &json!("dev.chandler.transition")));
    assert_eq!(event["subject"], format!("BundleDeployment/{deployment}"));
    assert_eq!((&event["severity"], &event["reason"]), (&json!("Info"), &json!("InstallationSucceeded")));
    assert!(event["source"].as_str().is_some_and(|source| source.starts_with("urn:")), "{event}");
    world.finish().await;
}

#[tokio::test]
async fn the_api_server_refuses_what_is_unsafe() {
    let world = World::new().await;
    let url = "https://hooks.example.com/x";
    for (provider, expected) in [
        (json!({"type": "Slack", "url": url}), "its URL is a secret"),
        (json!({"type": "Webhook"}), "exactly one of url, secretRef"),
        (json!({"type": "Webhook", "url": url, "secretRef": {"name": "x"}}), "exactly one of url, secretRef"),
        (json!({"type": "Webhook", "secretRef": {"name": ""}}), "secretRef.name must be set"),
        (json!({"type": "Webhook", "url": url, "channel": "x"}), "channel may be set for type"),
        (json!({"type": "Webhook", "url": "file:///etc/passwd"}), "spec.provider.url"),
    ] {
        let mut object = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Alert",
            "metadata": {"name": format!("{}-refused", world.name())}, "spec": {"provider": provider}});
        world.mark(&mut object);
        let refused = serde_json::from_value(object).expect("an Alert");
        let created = alerts(&world).create(&PostParams::default(), &refused).await;
        let error = created.expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // What the schema cannot say is in the status.
    let plain =
        alert(&world, "plain", json!({"provider": {"type": "Webhook", "url": "http://hooks.example.com/x"}})).await;
    let refused = until_state(&world, &plain, "False/EndpointInvalid").await;
    assert!(find_condition(&refused.status.expect("a status").conditions, ConditionType::Stalled).is_some());
    let metadata =
        alert(&world, "clouds", json!({"provider": {"type": "Webhook", "url": "https://169.254.169.254/x"}})).await;
    install(&world, "well").await;
    until_state(&world, &metadata, "False/DeliveryFailed").await;
    world.finish().await;
}

#[test]
fn no_role_of_users_may_write_alerts() {
    let text = include_str!("../../../deploy/rbac-users.yaml");
    let documents: Vec<ClusterRole> = serde_saphyr::from_multiple(text).expect("roles");
    let mut verbs = Vec::new();
    for role in &documents {
        for rule in role.rules.iter().flatten() {
            if rule.resources.iter().flatten().any(|resource| resource == "alerts" || resource == "*") {
                verbs.extend(rule.verbs.iter().map(|verb| format!("{} {verb}", role.name_any())));
            }
        }
    }
    assert_eq!(verbs, ["chandler-view get", "chandler-view list", "chandler-view watch"]);
}
