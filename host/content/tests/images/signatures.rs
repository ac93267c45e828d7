//! Images whose signatures a policy demands.

use std::sync::Arc;

use chandler_content::{FailureClass, ImageAccess, ImageOptions, Images, Limits, RequiredSignatures, Store};
use chandler_core::Digest;
use chandler_devregistry::{Fault, FaultOn, Image, Layer, Options};
use chandler_test_support::signatures::{Identity, Key, Sigstore, push_bundle, push_payload};
use chandler_verify::{Policy, TrustRoot, Verifier};
use serde_json::{Value, json};

use crate::images::setup::{Setup, layer, setup};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Access that demands a signature by `signer`, with the trusted root of this instance.
pub(crate) fn required(sigstore: &Sigstore, signer: &Value) -> RequiredSignatures {
    let policy = json!({"allOf": [signer]});
    let policy = Policy::parse(&serde_json::from_value(policy).unwrap()).unwrap();
    let verifier = Verifier::new(&TrustRoot::parse(&sigstore.trusted_root()).unwrap()).unwrap();
    RequiredSignatures::new(policy, Arc::new(verifier))
}

pub(crate) fn by(key: &Key) -> Value {
    json!({"publicKey": {"key": key.public()}})
}

/// A registry with the image `x:v1`, and access that demands signatures by the key.
async fn image(options: Options, key: &Key) -> (Setup, Digest) {
    let mut setup = setup(options).await;
    let pushed = setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    setup.access.signatures = Some(required(&Sigstore::new(), &by(key)));
    (setup, pushed.digest)
}

/// The message of the refusal, without what the policy wants.
async fn refused(setup: &Setup) -> String {
    let error = setup.fetch("x:v1").await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "NoMatchingSignature"), "{error}");
    let message = error.to_string();
    assert_eq!(setup.fetch("x:v1").await.unwrap_err().to_string(), message);
    let (_, rest) = message.split_once("@sha256:").unwrap();
    rest.split_once(": ").unwrap().1.to_owned()
}

fn blobs(setup: &Setup) -> usize {
    setup.registry.requests().iter().filter(|request| request.contains("/blobs/")).count()
}

#[tokio::test]
async fn an_unsigned_image_is_refused_before_it_is_downloaded() {
    let key = Key::default();
    for referrers in [true, false] {
        let (setup, digest) = image(Options { referrers, ..Options::default() }, &key).await;
        assert!(refused(&setup).await.starts_with("it is not signed; wanted: the public key "));
        assert_eq!(blobs(&setup), 0);
        if referrers {
            push_bundle(&setup.registry, "x", &digest, &[key.bundle(&digest, None)]);
        } else {
            push_payload(&setup.registry, "x", &digest, &[key.payload(&digest, None)]);
        }
        assert_eq!(setup.fetch("x:v1").await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn every_place_of_a_signature_is_read() {
    let (key, sigstore) = (Key::default(), Sigstore::new());
    let keyless = Key::certified(&sigstore, &Identity::github("org/app", "refs/heads/main"));
    for (referrers, form) in [(true, "bundle"), (false, "bundle"), (true, "payload"), (false, "payload")] {
        let (mut setup, digest) = image(Options { referrers, tls: true, ..Options::default() }, &key).await;
        let other = Key::default();
        match form {
            "bundle" => push_bundle(
                &setup.registry,
                "x",
                &digest,
                &[other.bundle(&digest, None), keyless.bundle(&digest, Some(&sigstore)), key.bundle(&digest, None)],
            ),
            _ => push_payload(
                &setup.registry,
                "x",
                &digest,
                &[other.payload(&digest, None), keyless.payload(&digest, Some(&sigstore)), key.payload(&digest, None)],
            ),
        }
        setup.fetch("x:v1").await.unwrap();
        for (owner, accepted) in [("org", true), ("org-evil", false)] {
            setup.access.signatures = Some(required(&sigstore, &json!({"githubAction": {"owner": owner}})));
            assert_eq!(setup.fetch("x:v1").await.is_ok(), accepted, "{referrers} {form} {owner}");
        }
    }
}

#[tokio::test]
async fn a_verdict_is_kept_for_its_policy_and_image() {
    let key = Key::default();
    let (mut setup, digest) = image(Options::default(), &key).await;
    push_payload(&setup.registry, "x", &digest, &[key.payload(&digest, None)]);
    let resolved = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&resolved, &setup.access).await.unwrap();
    let requests = setup.registry.requests().len();
    // Neither a second fetch nor another process asks again.
    setup.images.fetch(&resolved, &setup.access).await.unwrap();
    let store = || Store::open(&setup.directory.path().join("cache"), Limits::default()).unwrap();
    Images::new(store(), ImageOptions::default()).fetch(&resolved, &setup.access).await.unwrap();
    assert_eq!(setup.registry.requests().len(), requests);
    // Another key: what is cached does not count.
    let before = blobs(&setup);
    let other = required(&Sigstore::new(), &by(&Key::default()));
    let accepted = setup.access.signatures.replace(other);
    assert!(refused(&setup).await.contains("signature 1: it is not made with this key"));
    // The signature was read twice, the layer not at all.
    assert_eq!(blobs(&setup), before + 2);
    setup.access.signatures = accepted;
    setup.images.fetch(&resolved, &setup.access).await.unwrap();
    // Content that was fetched without a policy is not verified.
    let (mut setup, _) = image(Options::default(), &key).await;
    let demand = setup.access.signatures.take();
    setup.fetch("x:v1").await.unwrap();
    setup.access.signatures = demand;
    refused(&setup).await;
}

#[tokio::test]
async fn catalogs_and_components_are_verified_as_well() {
    let key = Key::default();
    let (setup, _) = image(Options::default(), &key).await;
    let plugin = setup.registry.push_component("x", "plugin", b"\0asm".to_vec()).unwrap();
    let image = setup.resolve("x:plugin").await.unwrap();
    let component = async || setup.images.fetch_component(&image, &setup.access, 9).await;
    assert_eq!(component().await.unwrap_err().reason(), "NoMatchingSignature");
    let catalog = setup.images.fetch_labelled(&image, &setup.access, "label").await;
    assert_eq!(catalog.unwrap_err().reason(), "NoMatchingSignature");
    push_bundle(&setup.registry, "x", &plugin.digest, &[key.bundle(&plugin.digest, None)]);
    assert_eq!(component().await.unwrap(), b"\0asm");
}

#[tokio::test]
async fn the_digest_that_was_resolved_is_the_one_that_must_be_signed() {
    let key = Key::default();
    let (setup, digest) = image(Options::default(), &key).await;
    push_payload(&setup.registry, "x", &digest, &[key.payload(&digest, None)]);
    let signed = setup.resolve("x:v1").await.unwrap();
    // The tag moves to an image that is not signed.
    let layers = vec![Layer::tar_gzip(layer()), Layer::tar_gzip(layer())];
    let moved = setup.registry.push_image("x", "v1", Image::of_layers(layers)).unwrap();
    assert_eq!(setup.images.fetch(&signed, &setup.access).await.unwrap().len(), 1);
    assert!(refused(&setup).await.starts_with("it is not signed;"));
    // The signature of the other image under its name is none.
    push_payload(&setup.registry, "x", &moved.digest, &[key.payload(&digest, None)]);
    push_bundle(&setup.registry, "x", &moved.digest, &[key.bundle(&digest, None)]);
    let message = refused(&setup).await;
    let other = "it is for another image";
    assert!(message.ends_with(&format!("signature 1: {other}; signature 2: {other}")), "{message}");
}

#[tokio::test]
async fn an_index_is_signed_as_a_whole() {
    let key = Key::default();
    let (setup, digest) = image(Options::default(), &key).await;
    let platform = json!({"os": "linux", "architecture": "amd64"});
    let entry = json!({"mediaType": MANIFEST, "digest": digest, "size": 2, "platform": platform});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
    let index = setup.registry.push_manifest("x", "v1", INDEX, index.into_bytes()).unwrap();
    push_bundle(&setup.registry, "x", &digest, &[key.bundle(&digest, None)]);
    assert!(refused(&setup).await.starts_with("it is not signed;"));
    push_bundle(&setup.registry, "x", &index.digest, &[key.bundle(&index.digest, None)]);
    setup.fetch("x:v1").await.unwrap();
}

#[tokio::test]
async fn what_a_hostile_registry_lists_is_refused_and_hides_nothing() {
    let key = Key::default();
    let (setup, digest) = image(Options { referrers: false, ..Options::default() }, &key).await;
    let bundle = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let (list, tag) = (format!("sha256-{}", digest.hex()), format!("sha256-{}.sig", digest.hex()));
    let registry = &setup.registry;
    let push = |tag: &str, bytes: Vec<u8>| registry.push_manifest("x", tag, MANIFEST, bytes).unwrap().digest;
    let referring = |digests: &[Digest]| {
        let entry = |digest| json!({"mediaType": MANIFEST, "digest": digest, "size": 2, "artifactType": bundle});
        json!({"manifests": digests.iter().map(entry).collect::<Vec<_>>()}).to_string().into_bytes()
    };
    let blob = registry.push_blob("x", bundle, key.bundle(&digest, None).to_string().into_bytes()).unwrap();
    let referrer = |subject: &Digest, layers: Value| {
        let subject = json!({"mediaType": MANIFEST, "digest": subject, "size": 2});
        json!({"schemaVersion": 2, "layers": layers, "subject": subject}).to_string().into_bytes()
    };
    let mut lying = blob.clone();
    lying["size"] = json!(3);
    let mut huge = blob.clone();
    huge["size"] = json!(2 << 20);
    let absent = json!({"mediaType": bundle, "digest": Digest::of(b"absent"), "size": 6});
    for (at, (manifest, expected)) in [
        (referrer(&Digest::of(b"another"), json!([blob])), "it refers to another image"),
        (referrer(&digest, json!([])), "its manifest has not exactly one layer with a bundle"),
        (referrer(&digest, json!([blob, blob])), "its manifest has not exactly one layer with a bundle"),
        (referrer(&digest, json!([lying])), "bytes; the manifest says 3"),
        (referrer(&digest, json!([huge])), "it is larger than 1 MiB"),
        (referrer(&digest, json!([absent])), "the registry lists it, but has it not"),
        (b"{".to_vec(), "its manifest cannot be read"),
        (vec![b' '; 2 << 20], "its manifest is larger than 1 MiB"),
    ]
    .into_iter()
    .enumerate()
    {
        let bad = push(&format!("bad-{at}"), manifest);
        push(&list, referring(std::slice::from_ref(&bad)));
        let message = refused(&setup).await;
        assert!(message.contains("; signature 1: ") && message.contains(expected), "{message}");
    }
    push(&list, referring(&[Digest::of(b"absent")]));
    assert!(refused(&setup).await.ends_with("signature 1: the registry lists it, but has it not"));
    for (text, expected) in [(b"[".to_vec(), "cannot be read"), (vec![b' '; 2 << 20], "is larger than 1 MiB")] {
        push(&list, text.clone());
        push(&tag, text);
        let message = refused(&setup).await;
        assert!(message.contains(&format!("signature 1: the manifest with its signatures {expected}")), "{message}");
        assert!(message.contains(&format!("signature 2: the list of its referrers {expected}")), "{message}");
    }
    let good = push("good", referrer(&digest, json!([blob])));
    let many: Vec<_> = (0..40).map(|at| Digest::of(&[at])).chain([good.clone()]).collect();
    push(&list, referring(&many));
    assert_eq!(refused(&setup).await, "it has more than 32 signatures");
    push(&tag, b"{}".to_vec());
    push(&list, referring(&[Digest::of(b"absent"), good]));
    setup.fetch("x:v1").await.unwrap();
}

#[tokio::test]
async fn a_registry_that_fails_is_not_one_without_signatures() {
    let (setup, _) = image(Options::default(), &Key::default()).await;
    let image = setup.resolve("x:v1").await.unwrap();
    for (status, class, reason) in
        [(503, FailureClass::Transient, "RegistryUnavailable"), (401, FailureClass::Unavailable, "Unauthorized")]
    {
        setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(status))));
        let error = setup.images.fetch(&image, &setup.access).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (class, reason), "{error}");
    }
}

#[tokio::test]
async fn access_does_not_print_the_policy() {
    let signatures = Some(required(&Sigstore::new(), &by(&Key::default())));
    let access = ImageAccess { signatures, ..ImageAccess::default() };
    assert!(format!("{access:?}").contains("RequiredSignatures(Digest"));
}
