//! A ProvisionerClass works as long as it exists: after its deletion only if its spec delays that, and after a restart even without
//! its registry.

use std::fs;

use chandler_api::{ProvisionerClass, names::IN_USE_FINALIZER};
use chandler_devregistry::Registry;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

fn classes(world: &World) -> Api<ProvisionerClass> {
    Api::all(world.client.clone())
}

/// Creates a class that reads plain bundles, with a component from this registry.
async fn create_class(world: &World, registry: &Registry, name: &str, more: Value) {
    let component = bundles::workspace().join("target/plugins/plain.wasm");
    let wasm = fs::read(&component)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", component.display()));
    let pushed = registry.push_component("provisioners/plain", "v1", wasm).expect("the registry takes it");
    let repository = pushed.reference.split('@').next().unwrap_or_default();
    let repository = repository.strip_suffix(":v1").unwrap_or(repository);
    let mut spec = json!({"image": format!("{repository}:v1")});
    spec.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    ready(world, name, "ProvisionerReady").await;
}

/// Waits until a class is ready for a reason.
async fn ready(world: &World, name: &str, reason: &str) -> ProvisionerClass {
    let classes = classes(world);
    let found = wait::until(&classes, name, reason, |class| {
        let status = class.and_then(|class| class.status.as_ref());
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True" && it.reason == reason)
    });
    found.await.expect("the class")
}

async fn note(world: &World) -> String {
    world.push(&Bundle::empty().with("manifests/note.yaml", NOTE)).await
}

#[tokio::test]
async fn a_deleted_class_renders_nothing_and_its_releases_are_still_repaired() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    create_class(&world, &world.registry, &class, json!({})).await;
    world.deploy(&name, &class, &note(&world).await).await;
    world.ready(&name).await;
    classes(&world).delete(&class, &DeleteParams::default()).await.expect("the deletion is accepted");
    let found = world.condition(&name, "Ready", "False", "ProvisionerMissing").await;
    assert_eq!(condition(&found, "Healthy").map(|healthy| healthy.status.as_str()), Some("True"));

    let before = world.config_maps().get("note").await.expect("it is installed").uid();
    world.config_maps().delete("note", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "note", "created again", |note| note.is_some_and(|note| note.uid() != before))
        .await;
    create_class(&world, &world.registry, &class, json!({})).await;
    world.ready(&name).await;
    world.finish().await;
}

/// A foreign finalizer keeps the object, but the class no longer renders.
#[tokio::test]
async fn a_terminating_class_renders_nothing() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    create_class(&world, &world.registry, &class, json!({})).await;
    world.deploy(&name, &class, &note(&world).await).await;
    world.ready(&name).await;
    let finalizers = |names: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": names}}));
    let patch = async |names: &[&str]| {
        let patched = classes(&world).patch(&class, &PatchParams::default(), &finalizers(names)).await;
        patched.expect("finalizers");
    };
    patch(&["example.com/theirs"]).await;
    classes(&world).delete(&class, &DeleteParams::default()).await.expect("the deletion is accepted");
    world.condition(&name, "Ready", "False", "ProvisionerMissing").await;
    patch(&[]).await;
    wait::until(&classes(&world), &class, "gone", |class| class.is_none()).await;
    world.finish().await;
}

#[tokio::test]
async fn a_class_with_deletion_protection_stays_while_in_use() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    create_class(&world, &world.registry, &class, json!({"deletion": {"whileInUse": "Wait"}})).await;
    world.deploy(&name, &class, &note(&world).await).await;
    world.ready(&name).await;
    let held = classes(&world).get(&class).await.expect("the class");
    assert_eq!(held.finalizers(), [IN_USE_FINALIZER]);
    classes(&world).delete(&class, &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&classes(&world), &class, "naming its users", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|it| it.type_ == "Ready" && it.status == "True" && it.message.contains(&name))
    })
    .await;

    // It still renders.
    let next =
        world.push(&Bundle::empty().with("manifests/note.yaml", &format!("{NOTE}data: {{depth: '10'}}\n"))).await;
    world.deploy(&name, &class, &next).await;
    let is_new = |data: &std::collections::BTreeMap<String, String>| data.contains_key("depth");
    let rendered = |note: Option<&k8s_openapi::api::core::v1::ConfigMap>| note?.data.as_ref().map(is_new);
    wait::until(&world.config_maps(), "note", "rendered again", |note| rendered(note) == Some(true)).await;
    world.delete(&name).await;
    wait::until(&classes(&world), &class, "gone", |class| class.is_none()).await;
    world.finish().await;
}

#[tokio::test]
async fn after_a_restart_the_cached_component_serves_without_its_registry() {
    let mut world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let registry = Registry::start(chandler_devregistry::Options::default()).await.expect("a registry");
    create_class(&world, &registry, &class, json!({})).await;
    world.stop_controller().await;
    drop(registry);
    world.start_controller();
    world.deploy(&name, &class, &note(&world).await).await;
    world.ready(&name).await;
    let found = ready(&world, &class, "UpdateFailed").await;
    assert!(found.status.and_then(|status| status.component).is_some());
    world.finish().await;
}
