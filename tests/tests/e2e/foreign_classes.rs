//! Another provisioner may handle the BundleDeployments of a class that Chandler does not have.

use chandler_tests::{World, bundles::Bundle, world::condition};
use kube::ResourceExt as _;
use serde_json::json;

use crate::PLAIN;

/// An image of one ConfigMap.
async fn note(world: &World) -> String {
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    world.push(&Bundle::empty().with("manifests/note.yaml", note)).await
}

#[tokio::test]
async fn a_deployment_of_an_unknown_class_has_a_status_and_no_finalizer() {
    let world = World::new().await;
    let (name, image) = (world.name(), note(&world).await);
    world.deploy(&name, "example-com-barge", &image).await;
    let found = world.condition(&name, "Ready", "False", "ProvisionerMissing").await;
    assert_eq!(found.finalizers(), [""; 0]);
    let message = condition(&found, "Ready").map(|ready| ready.message.clone()).unwrap_or_default();
    assert!(message.contains("example-com-barge"), "{message}");

    // It becomes ours with its class.
    world.deploy(&name, PLAIN, &image).await;
    let found = world.ready(&name).await;
    assert_eq!(found.finalizers(), ["chandler.dev/teardown"]);
    // And it stays ours: its objects must go with it.
    world.deploy(&name, "example-com-barge", &image).await;
    let found = world.condition(&name, "Progressing", "True", "ProvisionerMissing").await;
    assert_eq!(found.finalizers(), ["chandler.dev/teardown"]);
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("note").await.expect("an answer").is_none());
    world.finish().await;
}

#[tokio::test]
async fn deployments_of_foreign_classes_are_left_alone() {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_changed(|options| options.foreign_class_prefixes = vec!["example-com-".to_owned()]);
    let (name, image) = (world.name(), note(&world).await);
    let foreign = format!("{name}-foreign");
    let mut object = json!({"metadata": {"name": foreign, "finalizers": ["core.rukpak.io/delete-cached-bundle"]}});
    object["spec"] = world.spec("example-com-barge", &image);
    let _: chandler_api::BundleDeployment = world.create(object).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    world.deployments().delete(&foreign, &kube::api::DeleteParams::default()).await.expect("the deletion is accepted");
    world.delete(&name).await;
    let left = world.deployments().get(&foreign).await.expect("its provisioner removes the finalizer");
    assert!(left.status.as_ref().is_none_or(|status| status.conditions.is_empty()), "{left:?}");
    assert_eq!(left.finalizers(), ["core.rukpak.io/delete-cached-bundle"]);
    let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.deployments().patch(&foreign, &kube::api::PatchParams::default(), &patch).await.expect("the object exists");
    world.finish().await;
}
