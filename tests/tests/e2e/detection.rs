//! A BundleDeployment that names no class is rendered by the class that recognises its content.

use std::fs;

use chandler_api::{BundleDeployment, ProvisionerClass, names::REQUESTED_AT_ANNOTATION};
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{PLAIN, REGISTRY};

/// The class of sets.
const SET: &str = "core-rukpak-io-resolveset";

/// The provisioner of plain bundles, as a component of another class.
const PLAIN_COMPONENT: &str = "plain.wasm";
/// A provisioner that returns what the file `detect` says, and declares only the format `hostile+v0`.
const HOSTILE_COMPONENT: &str = "test/hostile.wasm";

fn classes(world: &World) -> Api<ProvisionerClass> {
    Api::all(world.client.clone())
}

/// A spec without a class.
fn spec(world: &World, image: &str) -> Value {
    json!({"installNamespace": world.namespace, "source": {"type": "image", "image": {"ref": image}}})
}

/// A plain bundle of one ConfigMap.
fn note(name: &str) -> Bundle {
    Bundle::empty().with("manifests/note.yaml", &bundles::config_map(name, "plain"))
}

/// A bundle that only the hostile provisioner may recognise.
async fn strange(world: &World, format: &str) -> String {
    world.push(&Bundle::empty().with("detect", format)).await
}

fn registry_bundle(name: &str) -> Bundle {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": format!("{name}.v1.0.0")},
        "spec": {
            "version": "1.0.0", "displayName": name, "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    });
    let annotations = ["mediatype.v1: registry+v1", "manifests.v1: manifests/", "metadata.v1: metadata/"]
        .map(|line| format!("  operators.operatorframework.io.bundle.{line}\n"))
        .concat();
    Bundle::empty()
        .with(
            "metadata/annotations.yaml",
            &format!("annotations:\n{annotations}  operators.operatorframework.io.bundle.package.v1: {name}\n"),
        )
        .with("manifests/csv.json", &csv.to_string())
        .with("manifests/map.yaml", &bundles::config_map(name, "registry"))
}

/// The image of a component.
fn component(world: &World, file: &str) -> String {
    let path = bundles::workspace().join("target/plugins").join(file);
    let wasm = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()));
    world.registry.push_component("provisioners/detection", "v1", wasm).expect("the registry takes it").reference
}

async fn create_class(world: &World, name: &str, spec: Value) {
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn ready_class(world: &World, name: &str, spec: Value) {
    create_class(world, name, spec).await;
    wait::until(&classes(world), name, "ready", |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await;
}

async fn patch_class(world: &World, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    classes(world).patch(name, &PatchParams::default(), &patch).await.expect("the class exists");
}

/// The class and the format that the status reports.
fn detected(deployment: &BundleDeployment) -> (String, String) {
    let provisioner = deployment.status.as_ref().and_then(|status| status.provisioner.clone()).unwrap_or_default();
    (provisioner.class, provisioner.format.unwrap_or_default())
}

fn pair(class: &str, format: &str) -> (String, String) {
    (class.to_owned(), format.to_owned())
}

fn message(deployment: &BundleDeployment) -> String {
    condition(deployment, "Ready").map(|ready| ready.message.clone()).unwrap_or_default()
}

/// Waits until a class has rendered the release that is ready.
async fn rendered_by(world: &World, name: &str, class: &str) -> BundleDeployment {
    let found = wait::until(&world.deployments(), name, &format!("ready, rendered by {class}"), |deployment| {
        deployment.is_some_and(|deployment| {
            let is_ready = condition(deployment, "Ready").is_some_and(|ready| {
                ready.status == "True" && ready.observed_generation == deployment.metadata.generation
            });
            is_ready && detected(deployment).0 == class
        })
    })
    .await;
    found.expect("the BundleDeployment")
}

/// Requests a reconcile, and waits until it is done.
async fn reconcile(world: &World, name: &str, request: &str) -> BundleDeployment {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: request}}}));
    world.deployments().patch(name, &PatchParams::default(), &patch).await.expect("the object exists");
    let found = wait::until(&world.deployments(), name, "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some(request))
    })
    .await;
    found.expect("the BundleDeployment")
}

#[tokio::test]
async fn a_registry_bundle_a_plain_bundle_and_a_set_install_without_a_class() {
    let world = World::new().await;
    let (registry, plain, set, member) =
        (world.name() + "-r", world.name() + "-p", world.name() + "-s", world.name() + "-m");
    let image = world.push(&registry_bundle("registry")).await;
    world.apply(&registry, spec(&world, &image)).await;
    let image = world.push(&note("plain")).await;
    world.apply(&plain, spec(&world, &image)).await;
    let mut manifest = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": member},
        "spec": spec(&world, &world.push(&note("member")).await),
    });
    world.mark(&mut manifest);
    // All its manifests are BundleDeployments, so it is a set, although it looks like a plain bundle, too.
    let image = world.push(&Bundle::empty().with("manifests/member.json", &manifest.to_string())).await;
    world.apply(&set, spec(&world, &image)).await;

    for (name, class, format) in [
        (&registry, REGISTRY, "registry+v1"),
        (&plain, PLAIN, "plain+v0"),
        (&set, SET, "resolveset+v0"),
        (&member, PLAIN, "plain+v0"),
    ] {
        assert_eq!(detected(&world.ready(name).await), pair(class, format), "{name}");
    }
    for map in ["registry", "plain", "member"] {
        assert!(world.config_maps().get_opt(map).await.expect("an answer").is_some(), "{map}");
    }
    world.finish().await;
}

#[tokio::test]
async fn what_no_class_recognises_is_an_error_until_a_class_appears() {
    let world = World::new().await;
    let (name, class) = (world.name(), world.name());
    world.apply(&name, spec(&world, &strange(&world, "hostile+v0").await)).await;
    let found = world.condition(&name, "Ready", "False", "ProvisionerNotDetected").await;
    let text = message(&found);
    for part in [REGISTRY, PLAIN, SET, "spec.provisionerClassName"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(condition(&found, "Unpacked").map(|unpacked| unpacked.status.as_str()), Some("True"));
    assert_eq!(condition(&found, "Stalled").map(|stalled| stalled.status.as_str()), Some("True"));

    // A class that is not ready may recognise it.
    let missing = format!("{}/provisioners/none:v1", world.registry.address());
    create_class(&world, &class, json!({"image": missing})).await;
    let found = wait::until(&world.deployments(), &name, "naming the class", |deployment| {
        let ready = deployment.and_then(|deployment| condition(deployment, "Ready"));
        ready.is_some_and(|ready| ready.reason == "ProvisionerNotReady" && ready.message.contains("is not ready"))
    })
    .await;
    let text = message(&found.expect("the BundleDeployment"));
    assert!(text.contains(&class), "{text}");
    patch_class(&world, &class, json!({"image": component(&world, HOSTILE_COMPONENT)})).await;
    assert_eq!(detected(&rendered_by(&world, &name, &class).await), pair(&class, "hostile+v0"));

    // A format that its component does not declare counts as none.
    let lies = format!("{name}-lies");
    world.apply(&lies, spec(&world, &strange(&world, "plain+v0").await)).await;
    let text = message(&world.condition(&lies, "Ready", "False", "ProvisionerNotDetected").await);
    assert!(text.contains(&format!("{class} returned the format \"plain+v0\"")), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn of_several_classes_the_highest_priority_wins_and_equal_ones_are_an_error() {
    let world = World::new().await;
    let (name, class) = (world.name(), world.name());
    ready_class(&world, &class, json!({"image": component(&world, PLAIN_COMPONENT)})).await;
    world.apply(&name, spec(&world, &world.push(&note("note")).await)).await;
    let text = message(&world.condition(&name, "Ready", "False", "ProvisionerAmbiguous").await);
    for part in [PLAIN, &class, "priority 0", "spec.provisionerClassName"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(world.config_maps().get_opt("note").await.expect("an answer").is_none(), "nothing is installed");
    patch_class(&world, &class, json!({"priority": 1})).await;
    assert_eq!(detected(&rendered_by(&world, &name, &class).await), pair(&class, "plain+v0"));

    // A name decides in any case.
    let named = format!("{name}-named");
    world.deploy(&named, PLAIN, &world.push(&note("named")).await).await;
    assert_eq!(detected(&world.ready(&named).await), pair(PLAIN, ""));
    world.finish().await;
}

/// A class of a higher priority must not replace software that runs: it would be rendered into other objects.
#[tokio::test]
async fn an_installed_release_keeps_its_class_until_its_author_names_another() {
    let world = World::new().await;
    let (name, class) = (world.name(), world.name());
    let uid = async || world.config_maps().get("note").await.expect("it stays installed").metadata.uid;
    let recognised_twice = |note: Bundle| note.with("detect", "hostile+v0");
    world.apply(&name, spec(&world, &world.push(&recognised_twice(note("note"))).await)).await;
    rendered_by(&world, &name, PLAIN).await;
    let before = uid().await;

    // It would render the ConfigMap `first`, and no other object.
    ready_class(&world, &class, json!({"image": component(&world, HOSTILE_COMPONENT), "priority": 5})).await;
    let warned = |deployment: Option<&BundleDeployment>| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        let mut warnings = status.into_iter().flat_map(|status| &status.warnings);
        warnings.any(|it| it.code == "HigherPriorityClass" && it.message.contains(&class) && it.message.contains(PLAIN))
    };
    let found = wait::until(&world.deployments(), &name, "warned of the class", warned).await.expect("it exists");
    assert_eq!(detected(&found), pair(PLAIN, "plain+v0"));
    let found = reconcile(&world, &name, "after the class appeared").await;
    assert_eq!(condition(&found, "Ready").map(|ready| ready.status.as_str()), Some("True"), "{}", message(&found));
    assert_eq!((detected(&found), uid().await), (pair(PLAIN, "plain+v0"), before.clone()));

    // Writing the status does not choose a class.
    let forged = json!({"class": class, "digest": format!("sha256:{}", "0".repeat(64)), "format": "hostile+v0"});
    let mut history = json!(found.status.expect("a status").history);
    history[0]["provisioner"] = forged.clone();
    let forged = Patch::Merge(json!({"status": {"provisioner": forged, "history": history}}));
    world.deployments().patch_status(&name, &PatchParams::default(), &forged).await.expect("the status is accepted");
    let found = reconcile(&world, &name, "after the status was forged").await;
    assert_eq!((detected(&found), uid().await), (pair(PLAIN, "plain+v0"), before.clone()));

    // New content does not change it either.
    let next = recognised_twice(note("note")).with("manifests/more.yaml", &bundles::config_map("more", "plain"));
    world.apply(&name, spec(&world, &world.push(&next).await)).await;
    rendered_by(&world, &name, PLAIN).await;
    assert_eq!((uid().await, world.config_maps().get_opt("more").await.expect("an answer").is_some()), (before, true));

    // Its author names the class, and so does the record from then on.
    let image = world.push(&next).await;
    world.deploy(&name, &class, &image).await;
    rendered_by(&world, &name, &class).await;
    assert!(world.config_maps().get_opt("first").await.expect("an answer").is_some());
    wait::until(&world.config_maps(), "note", "pruned", |note| note.is_none()).await;
    world.apply(&name, spec(&world, &image)).await;
    rendered_by(&world, &name, &class).await;

    // Without its class the release stays as it is, also with other content.
    classes(&world).delete(&class, &DeleteParams::default()).await.expect("the deletion is accepted");
    let text = message(&world.condition(&name, "Ready", "False", "ProvisionerMissing").await);
    assert!(text.contains(&class) && text.contains(PLAIN), "{text}");
    wait::until(&classes(&world), &class, "gone", |class| class.is_none()).await;
    let image = world.push(&note("note")).await;
    world.apply(&name, spec(&world, &image)).await;
    world.condition(&name, "Ready", "False", "ProvisionerMissing").await;
    assert!(world.config_maps().get_opt("first").await.expect("an answer").is_some());
    world.deploy(&name, PLAIN, &image).await;
    rendered_by(&world, &name, PLAIN).await;
    world.finish().await;
}

#[tokio::test]
async fn content_that_the_class_of_a_release_does_not_recognise_needs_a_name() {
    let world = World::new().await;
    let name = world.name();
    world.apply(&name, spec(&world, &world.push(&note("note")).await)).await;
    rendered_by(&world, &name, PLAIN).await;
    let image = world.push(&registry_bundle("registry")).await;
    world.apply(&name, spec(&world, &image)).await;
    let found = world.condition(&name, "Ready", "False", "ProvisionerNotDetected").await;
    let text = message(&found);
    assert!(text.contains(PLAIN) && text.contains(&format!("{REGISTRY} (registry+v1)")), "{text}");
    assert!(world.config_maps().get_opt("note").await.expect("an answer").is_some(), "the release stays");
    world.deploy(&name, REGISTRY, &image).await;
    rendered_by(&world, &name, REGISTRY).await;
    world.finish().await;
}

#[tokio::test]
async fn a_class_with_deletion_protection_stays_while_it_is_detected() {
    let world = World::new().await;
    let (name, class) = (world.name(), world.name());
    let image = component(&world, HOSTILE_COMPONENT);
    ready_class(&world, &class, json!({"image": image, "deletion": {"whileInUse": "Wait"}})).await;
    world.apply(&name, spec(&world, &strange(&world, "hostile+v0").await)).await;
    rendered_by(&world, &name, &class).await;
    classes(&world).delete(&class, &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&classes(&world), &class, "naming its users", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|it| it.type_ == "Ready" && it.status == "True" && it.message.contains(&name))
    })
    .await;
    world.delete(&name).await;
    wait::until(&classes(&world), &class, "gone", |class| class.is_none()).await;
    world.finish().await;
}

/// A class that takes all the time it gets, or crashes, holds up only itself.
#[tokio::test]
async fn a_hostile_class_does_not_prevent_the_detection_of_another() {
    let world = World::new().await;
    let (name, class) = (world.name(), world.name());
    let image = component(&world, HOSTILE_COMPONENT);
    ready_class(&world, &class, json!({"image": image, "priority": 9, "limits": {"timeout": "1s"}})).await;
    for (index, behaviour) in ["spin", "panic", "allocate"].iter().enumerate() {
        let name = format!("{name}-{index}");
        let bundle = note(&format!("note-{index}")).with("detect", behaviour);
        world.apply(&name, spec(&world, &world.push(&bundle).await)).await;
        assert_eq!(detected(&world.ready(&name).await), pair(PLAIN, "plain+v0"), "{behaviour}");
    }
    world.finish().await;
}
