//! No tenant waits for another: what one BundleDeployment waits for holds up no other, and ends when nobody wants it any more.

use chandler_tests::{Interruption, World, bundles, hostile_registry::HostileRegistry, wait, world::condition};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

/// How many BundleDeployments are worked on at once in these tests.
const SLOTS: u16 = 2;

/// A world whose controller works on few BundleDeployments at once.
async fn narrow() -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    let client = world.client.clone();
    world.start_controller_with(client, |options| options.concurrency = SLOTS);
    world
}

/// A bundle of one ConfigMap.
async fn note(world: &World) -> String {
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    world.push(&bundles::Bundle::empty().with("manifests/note.yaml", note)).await
}

#[tokio::test]
async fn registries_that_never_answer_hold_up_nobody() {
    let world = narrow().await;
    let (silent, name) = (HostileRegistry::silent().await, world.name());
    let slow = |index: usize| format!("{name}-slow-{index}");
    for index in 0..6 {
        world.deploy(&slow(index), PLAIN, &silent.image(&format!("slow-{index}"))).await;
    }
    silent.until("every one asks", |connections| connections.opened == 6).await;
    let waiting = world.condition(&slow(0), "Progressing", "True", "Unpacking").await;
    let message = condition(&waiting, "Unpacked").map(|unpacked| unpacked.message.clone());
    assert_eq!(message, Some(format!("fetching and rendering {}", silent.image("slow-0"))));

    // While all of them wait, others are installed, a corrected spec acts, and a deletion is done.
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    assert_eq!(silent.connections().given_up, 0, "nobody had to give up for it");
    let spec = world.spec(PLAIN, &image);
    world
        .deployments()
        .patch(&slow(1), &PatchParams::default(), &Patch::Merge(json!({"spec": spec})))
        .await
        .expect("a spec");
    // Two releases of one bundle would collide; that it gets so far is enough.
    world.condition(&slow(1), "Unpacked", "True", "UnpackSuccessful").await;
    silent.until("the correction ends what was under way", |connections| connections.given_up == 1).await;
    world.delete(&slow(2)).await;
    silent.until("the deletion ends what was under way", |connections| connections.given_up == 2).await;
    world.finish().await;
}

#[tokio::test]
async fn what_runs_is_repaired_while_the_registry_of_the_next_version_does_not_answer() {
    let world = narrow().await;
    let (silent, name) = (HostileRegistry::silent().await, world.name());
    let image = note(&world).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let before = world.config_maps().get("note").await.expect("it is installed").uid();

    let next = json!({"spec": {"source": {"image": {"ref": silent.image("next")}}}});
    world.deployments().patch(&name, &PatchParams::default(), &Patch::Merge(next)).await.expect("a spec");
    silent.until("it asks", |connections| connections.opened == 1).await;
    world.config_maps().delete("note", &kube::api::DeleteParams::default()).await.expect("it is deleted");
    wait::until(&world.config_maps(), "note", "is back", |note| note.is_some_and(|note| note.uid() != before)).await;
    let found = world.condition(&name, "Ready", "False", "Unpacking").await;
    let healthy = condition(&found, "Healthy").expect("it runs");
    assert_eq!((healthy.status.as_str(), silent.connections().given_up), ("True", 0));
    world.finish().await;
}

#[tokio::test]
async fn requests_that_are_never_answered_hold_up_nobody() {
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
    world.start_controller_with(webhook.client(world.config()), |options| options.concurrency = 1);

    let image = note(&world).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["installNamespace"] = json!(held);
    world.apply(&held, spec).await;
    webhook.strikes().await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    webhook.end();
    world.ready(&held).await;
    world.finish().await;
}
