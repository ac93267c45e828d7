//! Provisioners that must be signed: no component runs without the signatures that its class and the administrator demand now.

use std::fs;

use chandler_api::{ProvisionerClass, names::REQUESTED_AT_ANNOTATION};
use chandler_core::Digest;
use chandler_source::ImageRules;
use chandler_test_support::signatures::{Key, push_bundle, push_payload};
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

const REPOSITORY: &str = "provisioners/signed";

/// A world whose controller runs no unsigned component.
async fn world(rules: Option<Value>) -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    world.start_controller_changed(|options| {
        options.allow_unsigned = false;
        if let Some(rules) = rules {
            let file = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ImageVerification", "rules": rules});
            options.image_rules = ImageRules::parse(&serde_json::from_value(file).expect("a file")).expect("rules");
        }
    });
    world
}

fn classes(world: &World) -> Api<ProvisionerClass> {
    Api::all(world.client.clone())
}

fn by(key: &Key) -> Value {
    json!({"allOf": [{"publicKey": {"key": key.public()}}]})
}

/// Pushes the plain provisioner, with another digest for each build, under the tag of the class. Returns the digest of the artifact.
fn push(world: &World, build: u8) -> Digest {
    let path = bundles::workspace().join("target/plugins/plain.wasm");
    let mut wasm = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()));
    // A custom section.
    wasm.extend([0, 3, 1, b'x', build]);
    world.registry.push_component(REPOSITORY, "v1", wasm).expect("the registry takes it").digest
}

/// Creates a class of the tag, with this policy.
async fn create(world: &World, name: &str, verification: Option<&Value>) {
    let mut spec = json!({"image": format!("{}/{REPOSITORY}:v1", world.registry.address())});
    if let Some(verification) = verification {
        spec["verification"] = verification.clone();
    }
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn patch(world: &World, name: &str, patch: Value) {
    classes(world).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the class exists");
}

/// Demands other signatures.
async fn demand(world: &World, name: &str, verification: &Value) {
    patch(world, name, json!({"spec": {"verification": verification}})).await;
}

/// Requests that the tag is resolved again.
async fn resolve_again(world: &World, name: &str, request: &str) {
    patch(world, name, json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: request}}})).await;
}

/// Waits until a condition of a class is like this. Returns the class and the message of the condition.
async fn reported(world: &World, name: &str, kind: &str, status: &str, reason: &str) -> (ProvisionerClass, String) {
    let message = |class: &ProvisionerClass| {
        let conditions = &class.status.as_ref()?.conditions;
        let is_it = |found: &&_| {
            let found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition = found;
            found.type_ == kind
                && found.status == status
                && found.reason == reason
                && found.observed_generation == class.metadata.generation
        };
        conditions.iter().find(is_it).map(|found| found.message.clone())
    };
    let what = format!("{kind}={status}/{reason}");
    let found = wait::until(&classes(world), name, &what, |class| class.and_then(message).is_some()).await;
    let class = found.expect("the class");
    let message = message(&class).unwrap_or_default();
    (class, message)
}

async fn bell(world: &World, map: &str) -> String {
    world.push(&Bundle::empty().with("manifests/bell.yaml", &bundles::config_map(map, "low"))).await
}

#[tokio::test]
async fn a_component_runs_once_it_is_signed_and_no_longer_when_other_signers_are_demanded() {
    let world = world(None).await;
    let (key, other) = (Key::default(), Key::default());
    let (class, name) = (world.name(), world.name());
    let artifact = push(&world, 1);
    create(&world, &class, None).await;
    let (_, message) = reported(&world, &class, "Verified", "False", "SignersRequired").await;
    assert!(message.contains("set spec.verification") && message.contains(REPOSITORY), "{message}");
    world.deploy(&name, &class, &bell(&world, "bell").await).await;
    world.condition(&name, "Ready", "False", "ProvisionerNotReady").await;

    demand(&world, &class, &by(&key)).await;
    let (found, message) = reported(&world, &class, "Verified", "False", "NoMatchingSignature").await;
    assert!(message.contains("it is not signed; wanted: the public key "), "{message}");
    assert!(found.status.expect("a status").component.is_none());
    assert!(world.config_maps().get_opt("bell").await.expect("an answer").is_none());

    // The controller tries again by itself.
    push_bundle(&world.registry, REPOSITORY, &artifact, &[key.bundle(&artifact, None)]);
    reported(&world, &class, "Verified", "True", "SignaturesVerified").await;
    reported(&world, &class, "Ready", "True", "ProvisionerReady").await;
    world.ready(&name).await;

    // The same component, which these signers have not signed. The release stays, and is repaired without its provisioner.
    demand(&world, &class, &by(&other)).await;
    let (found, message) = reported(&world, &class, "Ready", "False", "NoMatchingSignature").await;
    assert!(message.contains("signature 1: it is not made with this key"), "{message}");
    assert!(found.status.expect("a status").component.is_none());
    let next = format!("{name}-next");
    world.deploy(&next, &class, &bell(&world, "gong").await).await;
    world.condition(&next, "Ready", "False", "ProvisionerNotReady").await;
    assert!(world.config_maps().get_opt("gong").await.expect("an answer").is_none());
    world.config_maps().delete("bell", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "bell", "repaired", |bell| bell.is_some()).await;

    demand(&world, &class, &by(&key)).await;
    reported(&world, &class, "Ready", "True", "ProvisionerReady").await;
    world.ready(&next).await;
    world.finish().await;
}

#[tokio::test]
async fn an_unsigned_component_behind_the_tag_does_not_replace_the_signed_one() {
    let mut world = world(None).await;
    let (key, class, name) = (Key::default(), world.name(), world.name());
    let signed = push(&world, 1);
    push_payload(&world.registry, REPOSITORY, &signed, &[key.payload(&signed, None)]);
    create(&world, &class, Some(&by(&key))).await;
    reported(&world, &class, "Ready", "True", "ProvisionerReady").await;

    let unsigned = push(&world, 2);
    resolve_again(&world, &class, "first").await;
    let stays = async |world: &World| {
        let (found, message) = reported(world, &class, "Ready", "True", "UpdateFailed").await;
        assert!(message.contains("it is not signed; wanted: "), "{message}");
        let component = found.status.and_then(|status| status.component).expect("the earlier component");
        assert!(component.image.ends_with(signed.as_str()), "{}", component.image);
    };
    stays(&world).await;
    // Neither does a restart.
    world.stop_controller().await;
    world.start_controller_changed(|options| options.allow_unsigned = false);
    stays(&world).await;
    world.deploy(&name, &class, &bell(&world, "bell").await).await;
    world.ready(&name).await;

    push_payload(&world.registry, REPOSITORY, &unsigned, &[key.payload(&unsigned, None)]);
    resolve_again(&world, &class, "second").await;
    let (found, _) = reported(&world, &class, "Ready", "True", "ProvisionerReady").await;
    let component = found.status.and_then(|status| status.component).expect("a component");
    assert!(component.image.ends_with(unsigned.as_str()), "{}", component.image);
    world.finish().await;
}

#[tokio::test]
async fn the_rules_of_the_administrator_hold_for_components_as_well() {
    let (rule, own) = (Key::default(), Key::default());
    let world = world(Some(json!([{"images": ["*"], "verification": by(&rule)}]))).await;
    let artifact = push(&world, 1);
    push_payload(&world.registry, REPOSITORY, &artifact, &[own.payload(&artifact, None)]);
    let (demanding, plain) = (world.name(), format!("{}-plain", world.name()));
    create(&world, &demanding, Some(&by(&own))).await;
    create(&world, &plain, None).await;
    for class in [&demanding, &plain] {
        reported(&world, class, "Verified", "False", "NoMatchingSignature").await;
    }
    push_payload(
        &world.registry,
        REPOSITORY,
        &artifact,
        &[own.payload(&artifact, None), rule.payload(&artifact, None)],
    );
    for class in [&demanding, &plain] {
        reported(&world, class, "Verified", "True", "SignaturesVerified").await;
        reported(&world, class, "Ready", "True", "ProvisionerReady").await;
    }
    world.finish().await;
}

/// With `updatePolicy: Manual`, an installed release keeps its component, which must be signed as the class demands now.
#[tokio::test]
async fn the_earlier_component_of_a_release_must_be_signed_as_well() {
    let world = world(None).await;
    let (key, other, class, name) = (Key::default(), Key::default(), world.name(), world.name());
    let first = push(&world, 1);
    push_payload(&world.registry, REPOSITORY, &first, &[key.payload(&first, None)]);
    create(&world, &class, Some(&by(&key))).await;
    world.deploy(&name, &class, &bell(&world, "bell").await).await;
    world.ready(&name).await;

    let second = push(&world, 2);
    push_payload(&world.registry, REPOSITORY, &second, &[key.payload(&second, None), other.payload(&second, None)]);
    resolve_again(&world, &class, "first").await;
    wait::until(&world.deployments(), &name, "offered the update", |deployment| {
        deployment.and_then(|it| it.status.as_ref()).is_some_and(|status| status.pending_change.is_some())
    })
    .await;
    let warned = |deployment: Option<&chandler_api::BundleDeployment>| {
        let warnings = deployment.and_then(|it| it.status.as_ref()).map(|status| status.warnings.as_slice());
        warnings.unwrap_or_default().iter().any(|it| it.code == "ProvisionerUnavailable")
    };
    let before = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert!(!warned(Some(&before)), "the earlier component is signed by the demanded signer");

    demand(&world, &class, &by(&other)).await;
    reported(&world, &class, "Ready", "True", "ProvisionerReady").await;
    let found = wait::until(&world.deployments(), &name, "warned of its component", warned).await;
    let found = found.expect("the BundleDeployment");
    let warnings = found.status.as_ref().map(|status| status.warnings.as_slice()).unwrap_or_default();
    let text = warnings.iter().map(|it| it.message.as_str()).collect::<String>();
    assert!(text.contains("it is not signed as wanted"), "{text}");
    assert_eq!(condition(&found, "Ready").map(|ready| ready.status.as_str()), Some("True"), "the release stays");
    world.finish().await;
}

#[tokio::test]
async fn a_policy_that_cannot_be_used_is_refused_by_its_path() {
    let world = world(None).await;
    let class = world.name();
    push(&world, 1);
    create(&world, &class, Some(&json!({"allOf": [{"publicKey": {"key": "not a key"}}]}))).await;
    let (_, message) = reported(&world, &class, "Verified", "False", "InvalidSpec").await;
    assert!(message.starts_with("spec.verification.allOf[0].publicKey.key"), "{message}");
    reported(&world, &class, "Ready", "False", "InvalidSpec").await;
    world.finish().await;
}
