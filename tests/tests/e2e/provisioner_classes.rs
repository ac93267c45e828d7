//! A ProvisionerClass works as long as it exists: after its deletion only if its spec delays that, and after a restart even without
//! its registry.

use std::fs;

use chandler_api::{
    ProvisionerClass,
    names::{IN_USE_FINALIZER, REQUESTED_AT_ANNOTATION},
};
use chandler_devregistry::Registry;
use chandler_engine::Compiler;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    hostile_registry::HostileRegistry,
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

/// The reason, the status and the message of a condition of a class.
fn reported(class: Option<&ProvisionerClass>, kind: &str) -> Option<(String, String, String)> {
    let conditions = &class?.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

/// A controller that did not observe a class reports nothing about it, and an earlier controller's report is outdated.
#[tokio::test]
async fn after_a_restart_the_status_says_that_a_component_is_not_loaded_yet() {
    let mut world = World::new().await;
    let class = world.name();
    let registry = HostileRegistry::silent().await;
    world.stop_controller().await;
    let image = registry.image("provisioners/plain");
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": class}, "spec": {"image": image}})).await;
    let ready = json!({"type": "Ready", "status": "True", "reason": "ProvisionerReady", "message": "the class can be used",
                       "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1});
    let component = json!({"image": image, "digest": format!("sha256:{}", "0".repeat(64)), "contractVersion": "0.1.0"});
    let earlier = Patch::Merge(json!({"status": {"conditions": [ready], "component": component}}));
    classes(&world).patch_status(&class, &PatchParams::default(), &earlier).await.expect("the status is accepted");
    world.start_controller();
    let found = wait::until(&classes(&world), &class, "reported as being loaded", |class| {
        reported(class, "Ready")
            .is_some_and(|(status, reason, _)| (status.as_str(), reason.as_str()) == ("False", "ProvisionerNotReady"))
    })
    .await
    .expect("the class");
    assert_eq!(found.status.and_then(|status| status.component), None);
    world.finish().await;
}

/// A component that ended up in quarantine, perhaps through the fault of the machine, is compiled again on request.
#[tokio::test]
async fn a_requested_reconcile_compiles_a_quarantined_component_again() {
    let mut world = World::new().await;
    let class = world.name();
    world.stop_controller().await;
    world.start_controller_changed(|options| {
        options.compiler = Compiler::Child { program: "/bin/false".into(), arguments: Vec::new() };
    });
    let component = bundles::workspace().join("target/plugins/plain.wasm");
    let mut wasm = fs::read(component).expect("a component; `cargo xtask plugins` builds it");
    // This component was never compiled: its custom section names the run.
    let name = class.as_bytes();
    let length = u8::try_from(name.len()).expect("a short name");
    wasm.extend([0, length + 1, length]);
    wasm.extend(name);
    let pushed = world.registry.push_component("provisioners/plain", "v1", wasm).expect("the registry takes it");
    let spec = json!({"image": pushed.reference});
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": class}, "spec": spec})).await;
    let is_quarantined = |class: Option<&ProvisionerClass>| {
        let found = reported(class, "Ready");
        found.is_some_and(|(_, reason, message)| reason == "CompileFailed" && message.contains("after one hour"))
    };
    wait::until(&classes(&world), &class, "quarantined", is_quarantined).await;

    // The machine recovers; the quarantine outlives the controller.
    world.stop_controller().await;
    world.start_controller();
    let reason = |class: Option<&ProvisionerClass>| reported(class, "Ready").map(|(_, reason, _)| reason);
    let request = Patch::Merge(json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: "now"}}}));
    let before = classes(&world).get(&class).await.expect("the class");
    assert_eq!(reason(Some(&before)).as_deref(), Some("CompileFailed"));
    classes(&world).patch(&class, &PatchParams::default(), &request).await.expect("the class exists");
    let found = ready(&world, &class, "ProvisionerReady").await;
    assert_eq!(found.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_deref()), Some("now"));
    // Its signature was not verified, and nothing says otherwise.
    let (status, reason, _) = reported(Some(&found), "Verified").expect("the condition");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NotRequired"));
    world.finish().await;
}
