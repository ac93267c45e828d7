//! A bundle image becomes a healthy installation.

use std::sync::Arc;

use chandler_builtin::Provisioners;
use chandler_content::Store;
use chandler_core::{Request, Target};
use chandler_engine::{Engine, EngineOptions, Limits};
use chandler_tests::{World, bundles, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, rbac::v1::ClusterRole};
use kube::{Api, api::ListParams};
use serde_json::json;

use crate::{PLAIN, REGISTRY};

#[tokio::test]
async fn the_sample_operator_becomes_healthy() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    let deployment = world.ready(&name).await;

    for (type_, reason) in [
        ("Unpacked", "UnpackSuccessful"),
        ("Installed", "InstallationSucceeded"),
        ("Healthy", "Healthy"),
        ("Ready", "Succeeded"),
    ] {
        let condition = condition(&deployment, type_).expect(type_);
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", reason), "{type_}");
    }
    let status = deployment.status.clone().expect("a status");
    let resolved = serde_json::to_value(&status.resolved_source).expect("json");
    assert_eq!(resolved, json!({"type": "image", "image": {"ref": image}}));

    let operator: Deployment =
        Api::namespaced(world.client.clone(), &world.namespace).get("harbour-operator").await.expect("the operator");
    let labels = operator.metadata.labels.expect("labels");
    assert_eq!(labels.get("core.rukpak.io/owner-kind").map(String::as_str), Some("BundleDeployment"));
    assert_eq!(labels.get("core.rukpak.io/owner-name"), Some(&name));
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let owned = ListParams::default().labels(&format!("core.rukpak.io/owner-name={name}"));
    assert_eq!(roles.list(&owned).await.expect("roles").items.len(), 2);
    world.finish().await;
}

/// Invariant 1: rendering is a pure function, with and without a cluster.
#[tokio::test]
async fn the_installed_release_equals_the_one_rendered_offline() {
    let world = World::new().await;
    let name = world.name();
    let bundle = bundles::sample("registry/harbour-operator.v0.2.0");
    let image = world.push(&bundle).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["config"] = json!({"watchNamespace": world.namespace});
    world.apply(&name, spec).await;
    let installed = world.ready(&name).await.status.and_then(|status| status.release).expect("a release");

    let engine = Engine::new(EngineOptions::default()).expect("an engine");
    let provisioner =
        Provisioners::new(engine).get(REGISTRY).await.expect("the provisioner loads").expect("a built-in provisioner");
    let target = Target { name, namespace: world.namespace.clone(), ..Target::default() };
    let config = json!({"watchNamespace": world.namespace});
    let request = Request { config: config.as_object().cloned().expect("an object"), target };
    let cache = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&cache.path().join("content"), chandler_content::Limits::default()).expect("a store");
    let tree = Arc::new(store.import_directory(bundle.path()).await.expect("a valid bundle"));
    let rendered = provisioner.provision(&request, tree, &Limits::default()).await.expect("a release");
    assert_eq!(installed.digest, rendered.digest().as_str());
    assert_eq!(usize::try_from(installed.objects).ok(), Some(rendered.objects().len()));
    world.finish().await;
}

#[tokio::test]
async fn a_tag_is_resolved_to_its_digest() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    let (repository, _digest) = image.split_once('@').expect("a digest");
    world.deploy(&name, PLAIN, &format!("{repository}:latest")).await;
    let deployment = world.ready(&name).await;
    let resolved = serde_json::to_value(deployment.status.expect("a status").resolved_source).expect("json");
    assert_eq!(resolved.pointer("/image/ref"), Some(&json!(image)));
    world.finish().await;
}

#[tokio::test]
async fn real_operators_become_healthy() {
    for bundle in ["registry/argocd-operator.v0.6.0", "registry/valid"] {
        let Some(bundle) = bundles::shared(bundle) else { continue };
        let world = World::new().await;
        let name = world.name();
        let image = world.push(&bundle).await;
        world.deploy(&name, REGISTRY, &image).await;
        world.ready(&name).await;
        world.finish().await;
    }
}

#[tokio::test]
async fn pull_and_render_failures_are_reported() {
    let world = World::new().await;
    let name = world.name();
    let missing = format!("{}/bundles/absent:v1", world.registry.address());
    world.deploy(&name, PLAIN, &missing).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("bundles/absent"), "{message}");

    let broken =
        bundles::sample("registry/harbour-operator.v0.1.0").without("manifests/harbour.example.com_berths.yaml");
    let image = world.push(&broken).await;
    world.deploy(&name, REGISTRY, &image).await;
    let deployment = world.condition(&name, "Installed", "False", "InstallFailed").await;
    let message = &condition(&deployment, "Installed").expect("Installed").message;
    assert!(
        message.contains("owned custom resource definition 'berths.harbour.example.com' not found in bundle"),
        "{message}"
    );
    assert_eq!(condition(&deployment, "Progressing").expect("Progressing").reason, "InvalidContent");
    world.finish().await;
}

#[tokio::test]
async fn an_invalid_configuration_is_rejected_before_the_first_write() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["config"] = json!({"watchNamespaces": 3, "colour": "red"});
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Progressing", "False", "InvalidConfiguration").await;
    let message = &condition(&deployment, "Installed").expect("Installed").message;
    assert!(message.contains(r#"unknown field "colour""#), "{message}");
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn the_status_names_an_unknown_class() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&name, "no-such-class", &image).await;
    let deployment = world.condition(&name, "Ready", "False", "ProvisionerMissing").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(message.contains("no-such-class"), "{message}");
    world.finish().await;
}
