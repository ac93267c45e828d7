//! The finalizer: it comes with the first write to the cluster, and stays until the objects are gone.

use chandler_api::{BundleDeployment, names::TEARDOWN_FINALIZER};
use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn is_held(deployment: &BundleDeployment) -> bool {
    deployment.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER)
}

/// The number of Secrets in which the controller records what it installed.
async fn records(world: &World) -> usize {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.options().system_namespace);
    secrets.list(&ListParams::default()).await.expect("the Secrets").items.len()
}

#[tokio::test]
async fn what_was_never_installed_has_neither_finalizer_nor_record_and_is_deleted_at_once() {
    let mut world = World::new().await;
    let name = world.name();
    let broken = world.push(&Bundle::empty().with("manifests/a.yaml", "kind: [")).await;
    world.deploy(&name, PLAIN, &broken).await;
    let stalled = world.condition(&name, "Stalled", "True", "InvalidContent").await;
    assert!(!is_held(&stalled), "{stalled:?}");
    assert_eq!(records(&world).await, 0);
    // The API server deletes it without a controller.
    world.stop_controller().await;
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the BundleDeployment exists");
    assert!(world.deployments().get_opt(&name).await.expect("an answer").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_finalizer_that_was_removed_comes_back() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", MAP)).await;
    world.deploy(&name, PLAIN, &image).await;
    assert!(is_held(&world.ready(&name).await));
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &none).await.expect("the change is accepted");
    let back = |deployment: Option<&BundleDeployment>| deployment.is_some_and(is_held);
    wait::until(&world.deployments(), &name, "held again", back).await;
    world.delete(&name).await;
    assert_eq!(world.config_maps().get_opt("a").await.expect("an answer"), None);
    assert_eq!(records(&world).await, 0);
    world.finish().await;
}
