//! Images that must be signed.

use chandler_content::ImageReference;
use chandler_core::Digest;
use chandler_source::ImageRules;
use chandler_test_support::signatures::{Identity, Key, Sigstore, push_bundle, push_payload};
use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
    world::condition,
};
use chandler_verify::TrustRoot;
use serde_json::{Value, json};

use crate::PLAIN;

const NAME: &str = "bundles/sample";

/// Pushes a plain bundle with one ConfigMap. Its reference and its digest.
async fn push(world: &World, tone: &str) -> (String, Digest) {
    let bundle = Bundle::empty().with("manifests/bell.yaml", &config_map("bell", tone));
    let reference = world.push(&bundle).await;
    let images = chandler_content::Images::new(
        chandler_content::Store::open(&world.cache().join(tone), chandler_content::Limits::default()).expect("a store"),
        chandler_content::ImageOptions::default(),
    );
    let parsed: ImageReference = reference.parse().expect("a reference");
    let resolved = images.resolve(&parsed, &chandler_content::ImageAccess::default()).await.expect("an image");
    (reference, resolved.digest().clone())
}

fn spec(world: &World, image: &str, verification: &Value) -> Value {
    let mut spec = world.spec(PLAIN, image);
    spec["source"]["image"]["verification"] = verification.clone();
    spec
}

fn by(key: &Key) -> Value {
    json!({"allOf": [{"publicKey": {"key": key.public()}}]})
}

#[tokio::test]
async fn an_image_is_installed_once_it_is_signed_and_not_with_another_key() {
    let world = World::new().await;
    let (key, other) = (Key::default(), Key::default());
    let (image, digest) = push(&world, "low").await;
    let name = world.name();
    world.apply(&name, spec(&world, &image, &by(&key))).await;
    let refused = world.condition(&name, "Unpacked", "False", "NoMatchingSignature").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("it is not signed; wanted: the public key "), "{message}");
    assert!(condition(&refused, "Installed").is_none_or(|installed| installed.status != "True"));

    // The controller tries again by itself.
    push_bundle(&world.registry, NAME, &digest, &[key.bundle(&digest, None)]);
    let installed = world.ready(&name).await;
    let unpacked = condition(&installed, "Unpacked").expect("Unpacked");
    assert_eq!(unpacked.message, "Successfully unpacked the image Bundle, signed as required");
    let source = installed.status.and_then(|status| status.resolved_source?.image).expect("an image");
    assert!(source.reference.ends_with(digest.as_str()) && source.verification.is_none());

    // Another key, and an image that is not signed: neither replaces what runs.
    world.apply(&name, spec(&world, &image, &by(&other))).await;
    let refused = world.condition(&name, "Unpacked", "False", "NoMatchingSignature").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("signature 1: it is not made with this key"), "{message}");
    assert_eq!(condition(&refused, "Installed").expect("Installed").status, "True");
    world.config_maps().get("bell").await.expect("the ConfigMap stays");
    let (image, _) = push(&world, "high").await;
    world.apply(&name, spec(&world, &image, &by(&key))).await;
    world.condition(&name, "Unpacked", "False", "NoMatchingSignature").await;
    let bell = world.config_maps().get("bell").await.expect("the ConfigMap");
    assert_eq!(bell.data.expect("data").values().next().map(String::as_str), Some("low"));
    world.finish().await;
}

#[tokio::test]
async fn the_rules_of_the_administrator_hold_whatever_a_source_says() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let sigstore = Sigstore::new();
    let rules = json!({
        "apiVersion": "chandler.dev/v1alpha1", "kind": "ImageVerification",
        "rules": [{"images": ["*"], "verification": {"allOf": [{"githubAction": {"owner": "org"}}]}}],
    });
    let root = TrustRoot::parse(&sigstore.trusted_root()).expect("a trusted root");
    let rules = ImageRules::parse(&serde_json::from_value(rules).expect("a file")).expect("rules");
    let rules = rules.with_trust_root(&root).expect("a verifier");
    world.start_controller_changed(|options| options.image_rules = rules);
    let (image, digest) = push(&world, "low").await;
    let own = Key::default();
    let stranger = Key::certified(&sigstore, &Identity::github("org-evil/app", "refs/heads/main"));
    push_bundle(
        &world.registry,
        NAME,
        &digest,
        &[own.bundle(&digest, None), stranger.bundle(&digest, Some(&sigstore))],
    );

    // Without a policy of its own, and with one that is satisfied.
    for (name, spec) in [(world.name(), world.spec(PLAIN, &image)), (world.name(), spec(&world, &image, &by(&own)))] {
        world.apply(&name, spec).await;
        let refused = world.condition(&name, "Unpacked", "False", "NoMatchingSignature").await;
        let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
        assert!(message.contains("its repository is https://github.com/org-evil/app"), "{message}");
        world.delete(&name).await;
    }
    let member = Key::certified(&sigstore, &Identity::github("org/app", "refs/heads/main"));
    push_payload(&world.registry, NAME, &digest, &[member.payload(&digest, Some(&sigstore))]);
    let name = world.name();
    world.apply(&name, spec(&world, &image, &by(&own))).await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_revision_from_before_the_policy_must_satisfy_it_as_well() {
    let world = World::new().await;
    let key = Key::default();
    let (unsigned, before) = push(&world, "low").await;
    let name = world.name();
    world.apply(&name, world.spec(PLAIN, &unsigned)).await;
    world.ready(&name).await;
    let (image, digest) = push(&world, "high").await;
    push_payload(&world.registry, NAME, &digest, &[key.payload(&digest, None)]);
    let demanding = spec(&world, &image, &by(&key));
    world.apply(&name, demanding.clone()).await;
    world.ready(&name).await;

    let mut pinned = demanding;
    pinned["rollout"] = json!({"toRevision": 1});
    world.apply(&name, pinned).await;
    let refused = world.condition(&name, "Progressing", "True", "RevisionUnavailable").await;
    let message = &condition(&refused, "Progressing").expect("Progressing").message;
    assert!(message.contains("it is not signed; wanted: the public key "), "{message}");
    let tone = async || {
        let bell = world.config_maps().get("bell").await.expect("the ConfigMap");
        bell.data.and_then(|data| data.into_values().next())
    };
    assert_eq!(tone().await.as_deref(), Some("high"));
    push_payload(&world.registry, NAME, &before, &[key.payload(&before, None)]);
    wait::eventually("the old revision runs", || async { tone().await.as_deref() == Some("low") }).await;
    world.finish().await;
}
