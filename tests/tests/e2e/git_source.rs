//! Bundles in git repositories.

use std::{collections::BTreeMap, time::Duration};

use chandler_test_support::git::{GitServer, KeyPair, Repository, SshServer};
use chandler_tests::{World, wait, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::PLAIN;

/// Commits a plain bundle with one ConfigMap, in a directory beside another.
fn commit(repository: &Repository, tone: &str) -> String {
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bell}}\ndata: {{tone: {tone}}}\n");
    let files: [(&str, &str, &[u8]); 2] =
        [("100644", "README.md", b"about"), ("100644", "bundles/bell/manifests/bell.yaml", text.as_bytes())];
    repository.commit("main", &files)
}

fn spec(world: &World, server: &GitServer, reference: &Value, auth: &Value) -> Value {
    let git = json!({"repository": server.url("bells"), "directory": "bundles/bell", "ref": reference, "auth": auth});
    json!({
        "installNamespace": world.namespace, "provisionerClassName": PLAIN,
        "source": {"type": "git", "git": git},
    })
}

async fn has_tone(world: &World, tone: &str) {
    wait::until(&world.config_maps(), "bell", tone, |bell: Option<&ConfigMap>| {
        let data = bell.and_then(|bell| bell.data.as_ref());
        data.is_some_and(|data| data["tone"] == tone)
    })
    .await;
}

#[tokio::test]
async fn a_branch_is_polled_and_a_new_commit_is_rolled_out() {
    let Some(server) = GitServer::start().await else { return };
    let mut world = World::new().await;
    world.stop_controller().await;
    let repository = server.repository("bells");
    let first = commit(&repository, "low");
    world.start_controller_changed(|options| options.image_poll_interval = Duration::from_secs(1));
    let name = world.name();
    world.apply(&name, spec(&world, &server, &json!({"branch": "main"}), &json!({}))).await;
    let deployment = world.ready(&name).await;
    has_tone(&world, "low").await;
    let source = deployment.status.expect("a status").resolved_source.expect("a source").git.expect("a repository");
    assert_eq!((source.reference.commit, source.reference.branch), (Some(first), None));

    let fetched = |server: &GitServer| server.requests().len();
    let before = fetched(&server);
    wait::eventually("polled twice", || async { fetched(&server) >= before + 4 }).await;

    let second = commit(&repository, "high");
    has_tone(&world, "high").await;
    let deployment = world.ready(&name).await;
    let source = deployment.status.expect("a status").resolved_source.expect("a source").git.expect("a repository");
    assert_eq!(source.reference.commit, Some(second));
    world.finish().await;
}

#[tokio::test]
async fn the_highest_version_in_a_range_is_installed() {
    let Some(server) = GitServer::start().await else { return };
    let world = World::new().await;
    let repository = server.repository("bells");
    for (version, tone) in [("v1.9.0", "low"), ("v1.10.0", "high"), ("v2.0.0", "shrill")] {
        repository.tag(version, &commit(&repository, tone));
    }
    let name = world.name();
    world.apply(&name, spec(&world, &server, &json!({"semver": "^1"}), &json!({}))).await;
    world.ready(&name).await;
    has_tone(&world, "high").await;
    world.apply(&name, spec(&world, &server, &json!({"semver": "^3"}), &json!({}))).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    let expected = "it has no tag for a version in \"^3\"; the highest versions are: v2.0.0, v1.10.0, v1.9.0";
    assert!(message.contains(expected), "{message}");
    world.finish().await;
}

#[tokio::test]
async fn credentials_of_a_repository_come_from_a_secret() {
    let Some(server) = GitServer::start().await else { return };
    let world = World::new().await;
    let first = commit(&server.repository("bells"), "low");
    server.require("user", "s3cret");
    let name = world.name();
    let auth = json!({"secret": {"name": "bells"}});
    world.apply(&name, spec(&world, &server, &json!({"commit": first}), &auth)).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains(&format!("there is none that BundleDeployment {name} may use")), "{message}");
    assert_eq!(server.requests(), [""; 0], "nothing is asked without the credentials");
    let annotations = BTreeMap::from([("chandler.dev/bundledeployments", name.as_str())]);
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "bells", "annotations": annotations}, "type": "Opaque",
        "stringData": {"username": "user", "password": "s3cret"},
    }))
    .expect("a Secret");
    let secrets = Api::<Secret>::namespaced(world.client.clone(), &world.system_namespace);
    secrets.create(&PostParams::default(), &secret).await.expect("a Secret");
    world.ready(&name).await;
    has_tone(&world, "low").await;
    world.finish().await;
}

#[tokio::test]
async fn a_repository_over_ssh_needs_a_key_and_the_known_host_key() {
    let Some(server) = SshServer::start_for_git() else { return };
    let world = World::new().await;
    commit(&server.repository("bells"), "low");
    let name = world.name();
    let git = json!({
        "repository": server.url("bells"), "directory": "bundles/bell", "ref": {"branch": "main"},
        "auth": {"secret": {"name": "bells-ssh"}},
    });
    let spec = json!({"installNamespace": world.namespace, "provisionerClassName": PLAIN, "source": {"type": "git", "git": git}});
    let other = KeyPair::generate("ed25519", &[]).public;
    let secret = |known_hosts: &str| -> Secret {
        let annotations = BTreeMap::from([("chandler.dev/bundledeployments", name.as_str())]);
        serde_json::from_value(json!({
            "metadata": {"name": "bells-ssh", "annotations": annotations}, "type": "kubernetes.io/ssh-auth",
            "stringData": {"ssh-privatekey": server.private_key(), "ssh-knownhosts": known_hosts},
        }))
        .expect("a Secret")
    };
    let secrets = Api::<Secret>::namespaced(world.client.clone(), &world.system_namespace);
    let wrong = format!("[127.0.0.1]:{} {other}", server.port());
    let created = secrets.create(&PostParams::default(), &secret(&wrong)).await.expect("a Secret");
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("is none that the known hosts have for [127.0.0.1]:"), "{message}");
    // A changed Secret takes effect at once.
    let mut right = secret(&server.known_hosts());
    right.metadata.resource_version = created.metadata.resource_version;
    secrets.replace("bells-ssh", &PostParams::default(), &right).await.expect("a Secret");
    world.ready(&name).await;
    has_tone(&world, "low").await;
    world.finish().await;
}
