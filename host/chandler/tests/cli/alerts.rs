//! Notifications of a controller in an environment with a proxy, to a server whose certificate a private authority has issued.

use chandler_api::{Alert, ConditionType, find_condition};
use chandler_test_support::proxy::Proxy;
use chandler_tests::{
    Cluster, World,
    bundles::{Bundle, config_map},
    notification_server::NotificationServer,
    wait,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::traces::Controller;

/// A name that no resolver knows: only the proxy reaches the server.
const HOST: &str = "hooks.invalid";

#[tokio::test(flavor = "multi_thread")]
async fn notifications_go_through_the_proxy_to_a_server_of_a_private_authority() {
    let world = World::without_controller(Cluster::acquire().await).await;
    let directory = tempfile::tempdir().unwrap();
    let (server, authority) = NotificationServer::start_with_tls(HOST).await;
    let proxy = Proxy::start(server.address(), None).await;
    // The API server and the registry are on this machine.
    let (https, exceptions) = (format!("http://ann:s3cret@{}", proxy.address), "127.0.0.1,localhost");
    let environment = [("HTTPS_PROXY", https.as_str()), ("NO_PROXY", exceptions)];
    let mut controller = Controller::start(&world, directory.path(), &[], &environment);
    controller.line("the controller runs");

    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let (name, url) = (format!("{}-chat", world.name()), format!("https://{HOST}/path-s3cret"));
    let secret = json!({"metadata": {"name": name}, "stringData": {"url": url}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let provider = json!({"type": "Webhook", "secretRef": {"name": name}});
    let filter = json!({"reasons": ["InstallationSucceeded"], "kinds": ["BundleDeployment"]});
    let _: Alert =
        world.create(json!({"metadata": {"name": name}, "spec": {"provider": provider, "filter": filter}})).await;
    let alerts: Api<Alert> = Api::all(world.client.clone());
    let state = async |expected: &str| {
        let found = wait::until(&alerts, &name, expected, |alert| {
            let conditions = alert.and_then(|alert| alert.status.as_ref()).map(|status| status.conditions.as_slice());
            let ready = find_condition(conditions.unwrap_or_default(), ConditionType::Ready);
            ready.is_some_and(|ready| ready.reason == expected)
        });
        let conditions = found.await.unwrap().status.unwrap().conditions;
        find_condition(&conditions, ConditionType::Ready).unwrap().message.clone()
    };
    state("NotificationsSent").await;
    let install = async |suffix: &str| {
        let name = format!("{}-{suffix}", world.name());
        let image = world.push(&Bundle::empty().with("manifests/map.yaml", &config_map(suffix, "v1"))).await;
        world.deploy(&name, "core-rukpak-io-plain", &image).await;
        world.ready(&name).await;
        name
    };

    // The system does not trust the authority.
    install("one").await;
    let message = state("DeliveryFailed").await;
    assert!(message.contains("the certificate of the server is not trusted"), "{message}");
    assert!(server.received().is_empty());

    let patch = Patch::Merge(json!({"stringData": {"ca.crt": authority}}));
    secrets.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let second = install("two").await;
    wait::eventually("the notification is received", || async {
        server.received().iter().any(|it| it.json()["object"]["name"] == second.as_str())
    })
    .await;
    state("NotificationsSent").await;
    let heads = proxy.heads();
    assert!(
        !heads.is_empty() && heads.iter().all(|head| head.starts_with(&format!("CONNECT {HOST}:443 "))),
        "{heads:?}"
    );
    let log = controller.stop();
    assert!(!log.iter().any(|line| line.contains("s3cret")), "{log:?}");
    world.finish().await;
}
