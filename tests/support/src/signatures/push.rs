//! Signatures in a registry, as cosign pushes them.

use std::collections::BTreeMap;

use chandler_core::Digest;
use chandler_devregistry::Registry;
use serde_json::{Value, json};

use super::Signed;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Pushes signatures in the form of cosign 2: one image whose layers are the payloads, with the tag `sha256-<hex>.sig`.
pub fn push_payload(registry: &Registry, name: &str, image: &Digest, signatures: &[Signed]) {
    let config = registry.push_blob(name, "application/vnd.oci.image.config.v1+json", b"{}".to_vec()).unwrap();
    let layers = signatures.iter().map(|Signed { payload, annotations }| {
        let mut layer =
            registry.push_blob(name, "application/vnd.dev.cosign.simplesigning.v1+json", payload.clone()).unwrap();
        layer["annotations"] = json!(annotations);
        layer
    });
    let layers: Vec<Value> = layers.collect();
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    let tag = format!("sha256-{}.sig", image.hex());
    registry.push_manifest(name, &tag, MANIFEST, manifest.to_string().into_bytes()).unwrap();
}

/// Pushes bundles in the form of cosign 3: a referrer each, and the list of them with the tag `sha256-<hex>`, as clients do if the registry
/// does not list referrers.
pub fn push_bundle(registry: &Registry, name: &str, image: &Digest, bundles: &[Value]) {
    let referrers = bundles.iter().map(|bundle| {
        let predicate = json!("https://sigstore.dev/cosign/sign/v1");
        let annotations = BTreeMap::from([("dev.sigstore.bundle.predicateType", predicate)]);
        let layer = registry.push_blob(name, BUNDLE, bundle.to_string().into_bytes()).unwrap();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "config": registry.push_blob(name, "application/vnd.oci.empty.v1+json", b"{}".to_vec()).unwrap(),
            "layers": [layer],
            "subject": {"mediaType": MANIFEST, "digest": image, "size": 2},
            "annotations": annotations,
        });
        let bytes = manifest.to_string().into_bytes();
        let size = bytes.len();
        // The registry has no other way to take a manifest than with a tag.
        let tag = format!("bundle-{}", Digest::of(&bytes).short());
        let pushed = registry.push_manifest(name, &tag, MANIFEST, bytes).unwrap();
        json!({"mediaType": MANIFEST, "digest": pushed.digest, "size": size, "artifactType": BUNDLE})
    });
    let manifests: Vec<Value> = referrers.collect();
    let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let tag = format!("sha256-{}", image.hex());
    registry.push_manifest(name, &tag, INDEX, list.to_string().into_bytes()).unwrap();
}
