//! Bundles that are charts in a Helm repository. Their format does not matter to the source: these are plain bundles.

use std::{fmt::Write as _, time::Duration};

use chandler_core::Digest;
use chandler_tests::{ArchiveServer, World, wait, world::condition};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::PLAIN;

/// The archive of a version, whose ConfigMap names it.
fn archive(version: &str) -> Vec<u8> {
    let bell = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bell}}\ndata: {{version: {version}}}\n");
    let chart = format!("apiVersion: v2\nname: web\nversion: {version}\n");
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in [("web/Chart.yaml", chart), ("web/manifests/bell.yaml", bell)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).expect("an entry");
    }
    archive.into_inner().expect("an archive")
}

/// Publishes exactly these versions.
fn publish(server: &ArchiveServer, versions: &[&str]) {
    for version in versions {
        server.serve_at(&format!("charts/web-{version}.tgz"), archive(version));
    }
    list(server, versions);
}

/// Publishes an index with these versions, and no archive.
fn list(server: &ArchiveServer, versions: &[&str]) {
    let mut index = "apiVersion: v1\nentries:\n  web:\n".to_owned();
    for version in versions {
        let digest = Digest::of(&archive(version));
        let digest = digest.hex();
        writeln!(index, "  - {{version: {version}, digest: {digest}, urls: [web-{version}.tgz]}}").expect("memory");
    }
    server.serve_at("charts/index.yaml", index.into_bytes());
}

fn spec(world: &World, server: &ArchiveServer, fields: &Value) -> Value {
    let mut repository = json!({"url": server.url_of("charts"), "chart": "web"});
    repository.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
    json!({
        "installNamespace": world.namespace, "provisionerClassName": PLAIN,
        "source": {"type": "http", "http": repository},
    })
}

async fn installed(world: &World, version: &str) {
    wait::until(&world.config_maps(), "bell", "the version", |bell: Option<&ConfigMap>| {
        bell.and_then(|bell| bell.data.as_ref()).is_some_and(|data| data["version"] == version)
    })
    .await;
}

#[tokio::test]
async fn a_range_is_followed_and_a_rollback_returns_to_the_recorded_archive() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let server = ArchiveServer::start().await;
    publish(&server, &["1.2.0", "2.0.0"]);
    world.start_controller_changed(|options| options.image_poll_interval = Duration::from_secs(1));
    let name = world.name();
    world.apply(&name, spec(&world, &server, &json!({"version": "^1"}))).await;
    let deployment = world.ready(&name).await;
    installed(&world, "1.2.0").await;
    let resolved = deployment.status.expect("a status").resolved_source.expect("a source");
    let chart = resolved.http.expect("a chart");
    let digest = Digest::of(&archive("1.2.0"));
    assert_eq!((chart.version.as_deref(), chart.sha256.as_deref()), (Some("1.2.0"), Some(digest.hex())));

    // The index is downloaded once, however often it is polled.
    let sent = server.answers().sent;
    wait::eventually("polled twice", || async { server.answers().unchanged >= 2 }).await;
    assert_eq!(server.answers().sent, sent);

    publish(&server, &["1.2.0", "1.10.0", "2.0.0"]);
    installed(&world, "1.10.0").await;
    world.ready(&name).await;

    // The publisher removes what was installed first, and replaces it under the same name.
    publish(&server, &["1.10.0"]);
    let pin = Patch::Merge(json!({"spec": {"rollout": {"toRevision": 1}}}));
    world.deployments().patch(&name, &PatchParams::default(), &pin).await.expect("the change is accepted");
    installed(&world, "1.2.0").await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn what_a_repository_does_not_have_is_reported_and_found_once_it_is_there() {
    let world = World::new().await;
    let server = ArchiveServer::start().await;
    let name = world.name();
    let failed = async || {
        let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
        condition(&deployment, "Unpacked").expect("Unpacked").message.clone()
    };
    world.apply(&name, spec(&world, &server, &json!({"version": "2.x"}))).await;
    let message = failed().await;
    assert!(message.contains("/charts/index.yaml: ") && message.contains("answered 404 Not Found"), "{message}");
    publish(&server, &["1.2.0"]);
    wait::eventually("the newest version is named", || async {
        failed().await.contains("it does not have a version 2.x of the chart web; the newest is 1.2.0")
    })
    .await;
    publish(&server, &["1.2.0", "2.1.0"]);
    world.ready(&name).await;
    installed(&world, "2.1.0").await;

    // A digest is of one version, and of one archive.
    let other = json!({"version": "1.2.0", "sha256": "0".repeat(64)});
    world.apply(&name, spec(&world, &server, &other)).await;
    let message = failed().await;
    assert!(message.contains("version 1.2.0 has another archive: its digest in the index is"), "{message}");
    let pinned = json!({"version": "1.2.0", "sha256": Digest::of(&archive("1.2.0")).hex()});
    world.apply(&name, spec(&world, &server, &pinned)).await;
    installed(&world, "1.2.0").await;
    world.finish().await;
}

#[tokio::test]
async fn a_version_that_is_withdrawn_before_it_was_fetched_is_resolved_anew() {
    let world = World::new().await;
    let server = ArchiveServer::start().await;
    let name = world.name();
    list(&server, &["1.1.0"]);
    world.apply(&name, spec(&world, &server, &json!({"version": "^1"}))).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("web-1.1.0.tgz: ") && message.contains("answered 404 Not Found"), "{message}");
    // Before the next poll, which is minutes away.
    publish(&server, &["1.0.0", "1.1.1"]);
    world.ready(&name).await;
    installed(&world, "1.1.1").await;
    world.finish().await;
}
