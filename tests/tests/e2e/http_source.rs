//! Bundles that are archives of an HTTP server.

use std::{collections::BTreeMap, time::Duration};

use chandler_core::Digest;
use chandler_tests::{ArchiveServer, World, wait, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::PLAIN;

/// A plain bundle with one ConfigMap.
fn bundle(tone: &str) -> Vec<u8> {
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bell}}\ndata: {{tone: {tone}}}\n");
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "manifests/bell.yaml", text.as_bytes()).expect("an entry");
    archive.into_inner().expect("an archive")
}

fn spec(world: &World, http: &Value) -> Value {
    json!({
        "installNamespace": world.namespace, "provisionerClassName": PLAIN,
        "source": {"type": "http", "http": http},
    })
}

async fn tone(world: &World) -> String {
    let bell = world.config_maps().get("bell").await.expect("the ConfigMap");
    bell.data.expect("data")["tone"].clone()
}

#[tokio::test]
async fn an_archive_is_polled_and_a_new_one_is_rolled_out() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let server = ArchiveServer::start().await;
    server.serve(bundle("low"));
    world.start_controller_changed(|options| options.image_poll_interval = Duration::from_secs(1));
    let name = world.name();
    world.apply(&name, spec(&world, &json!({"url": server.url()}))).await;
    let deployment = world.ready(&name).await;
    assert_eq!(tone(&world).await, "low");
    let source = deployment.status.expect("a status").resolved_source.expect("a source").http.expect("an archive");
    assert_eq!((source.url, source.sha256.as_deref()), (server.url(), Some(Digest::of(&bundle("low")).hex())));

    // It is downloaded once, however often it is polled.
    wait::eventually("polled twice", || async { server.answers().unchanged >= 2 }).await;
    assert_eq!(server.answers().sent, 1);

    server.serve(bundle("high"));
    wait::until(&world.config_maps(), "bell", "the new content", |bell: Option<&ConfigMap>| {
        let data = bell.and_then(|bell| bell.data.as_ref());
        data.is_some_and(|data| data["tone"] == "high")
    })
    .await;
    world.ready(&name).await;
    // The poll that finds the change reads no body; the reconcile that follows downloads the archive.
    assert_eq!(server.answers().sent, 3);
    world.finish().await;
}

#[tokio::test]
async fn an_archive_with_a_digest_is_this_one_or_none() {
    let world = World::new().await;
    let server = ArchiveServer::start().await;
    server.serve(bundle("low"));
    let name = world.name();
    let digest = |archive: &[u8]| Digest::of(archive).hex().to_owned();
    let pinned = |archive: &[u8]| json!({"url": server.url(), "sha256": digest(archive)});
    world.apply(&name, spec(&world, &pinned(b"other"))).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    let expected = format!("its SHA-256 digest is sha256:{}, not sha256:{}", digest(&bundle("low")), digest(b"other"));
    assert!(message.contains(&expected), "{message}");
    world.apply(&name, spec(&world, &pinned(&bundle("low")))).await;
    world.ready(&name).await;
    assert_eq!(tone(&world).await, "low");
    world.finish().await;
}

#[tokio::test]
async fn credentials_come_from_a_secret_that_grants_their_use() {
    let world = World::new().await;
    let server = ArchiveServer::start().await;
    server.serve(bundle("low"));
    server.require("user", "s3cret");
    let (name, api) = (world.name(), Api::<Secret>::namespaced(world.client.clone(), &world.system_namespace));
    let secret = |name: &str, annotations: BTreeMap<&str, &str>| -> Secret {
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": annotations}, "type": "Opaque",
            "stringData": {"username": "user", "password": "s3cret"},
        }))
        .expect("a Secret")
    };
    api.create(&PostParams::default(), &secret("kept", BTreeMap::new())).await.expect("a Secret");
    let with = |secret: &str| spec(&world, &json!({"url": server.url(), "auth": {"secret": {"name": secret}}}));
    for unusable in ["kept", "missing"] {
        world.apply(&name, with(unusable)).await;
        let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
        let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
        assert!(message.contains(&format!("there is none that BundleDeployment {name} may use")), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert_eq!(server.answers().denied, 0, "nothing is asked without the credentials");

    // The controller watches for the missing Secret.
    let granted = secret("missing", [("chandler.dev/bundledeployments", name.as_str())].into());
    api.create(&PostParams::default(), &granted).await.expect("a Secret");
    world.ready(&name).await;
    assert_eq!(tone(&world).await, "low");
    world.finish().await;
}

#[tokio::test]
async fn a_missing_archive_is_found_once_it_is_there() {
    let world = World::new().await;
    let server = ArchiveServer::start().await;
    let name = world.name();
    world.apply(&name, spec(&world, &json!({"url": server.url()}))).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("answered 404 Not Found"), "{message}");
    server.serve(bundle("low"));
    world.ready(&name).await;
    world.finish().await;
}
