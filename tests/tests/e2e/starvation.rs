//! A BundleDeployment that waits blocks no other, and its work ends as soon as it is no longer needed.

use chandler_tests::{
    InProcess, Interruption, World, bundles, hostile_registry::HostileRegistry, wait, world::condition,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

/// How many BundleDeployments the controller of these tests reconciles at once.
const SLOTS: u16 = 2;

/// A world whose controller reconciles few BundleDeployments at once.
async fn world_with_few_slots() -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_changed(|options| options.concurrency = SLOTS);
    world
}

/// A bundle of one ConfigMap.
async fn note(world: &World) -> String {
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    world.push(&bundles::Bundle::empty().with("manifests/note.yaml", note)).await
}

#[tokio::test]
async fn silent_registries_block_no_other_deployment() {
    let world = world_with_few_slots().await;
    let (silent, name) = (HostileRegistry::silent().await, world.name());
    let slow = |index: usize| format!("{name}-slow-{index}");
    for index in 0..6 {
        world.deploy(&slow(index), PLAIN, &silent.image(&format!("slow-{index}"))).await;
    }
    silent.until("all of them sent a request", |connections| connections.opened == 6).await;
    let waiting = world.condition(&slow(0), "Progressing", "True", "Unpacking").await;
    let message = condition(&waiting, "Unpacked").map(|unpacked| unpacked.message.clone());
    assert_eq!(message, Some(format!("fetching and rendering {}", silent.image("slow-0"))));

    // While all of them wait, others are installed, a corrected spec takes effect, and a deletion completes.
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    assert_eq!(silent.connections().closed, 0, "no pull was aborted for it");
    let spec = world.spec(PLAIN, &image);
    world
        .deployments()
        .patch(&slow(1), &PatchParams::default(), &Patch::Merge(json!({"spec": spec})))
        .await
        .expect("a spec");
    // Two releases of one bundle would collide; getting that far is enough.
    world.condition(&slow(1), "Unpacked", "True", "UnpackSuccessful").await;
    silent.until("the correction aborts the pull", |connections| connections.closed == 1).await;
    world.delete(&slow(2)).await;
    silent.until("the deletion aborts the pull", |connections| connections.closed == 2).await;
    world.finish().await;
}

#[tokio::test]
async fn the_current_release_is_repaired_while_the_registry_of_the_next_is_silent() {
    let world = world_with_few_slots().await;
    let (silent, name) = (HostileRegistry::silent().await, world.name());
    let image = note(&world).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let before = world.config_maps().get("note").await.expect("the object is installed").uid();

    let next = json!({"spec": {"source": {"image": {"ref": silent.image("next")}}}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(next)).await.expect("a spec");
    silent.until("the controller sent a request", |connections| connections.opened == 1).await;
    world.config_maps().delete("note", &kube::api::DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "note", "created again", |note| note.is_some_and(|note| note.uid() != before))
        .await;
    let found = world.condition(&name, "Ready", "False", "Unpacking").await;
    let healthy = condition(&found, "Healthy").expect("the condition is set");
    assert_eq!((healthy.status.as_str(), silent.connections().closed), ("True", 0));
    world.finish().await;
}

#[tokio::test]
async fn unanswered_api_requests_block_no_other_deployment() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let name = world.name();
    let held = format!("{name}-held");
    let mut namespace = json!({"metadata": {"name": held}});
    world.mark(&mut namespace);
    let namespace: Namespace = serde_json::from_value(namespace).expect("a Namespace");
    Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.expect("a Namespace");
    let webhook = Interruption::of_namespace(&held);
    webhook.begin();
    world.start_controller_with(InProcess::ChangesRequests, webhook.client(world.config()), |options| {
        options.concurrency = 1;
    });

    let image = note(&world).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["installNamespace"] = json!(held);
    world.apply(&held, spec).await;
    webhook.request_blocked().await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    webhook.end();
    world.ready(&held).await;
    world.finish().await;
}
