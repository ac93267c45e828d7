//! Signatures of an artifact, as cosign pushes them: one image whose layers are the signed payloads.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chandler_content::ImageReference;
use chandler_core::Digest;
use serde_json::{Value, json};

use super::image::{MANIFEST, Pushed};
use crate::{
    CommandError,
    read::{image_layout::Manifest, signing_key::SigningKey},
};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The most signatures of an artifact: verifiers refuse a longer list.
const MOST: usize = chandler_verify::MOST_SIGNATURES;

/// The signatures of an artifact.
pub struct SignatureImage {
    manifest: Vec<u8>,
    config: Option<Vec<u8>>,
    payload: Vec<u8>,
    signatures: usize,
}

/// Where the signatures of an artifact are.
pub fn place(image: &ImageReference, digest: &Digest) -> Result<ImageReference, CommandError> {
    let text = format!("{}/{}:sha256-{}.sig", image.registry(), image.repository(), digest.hex());
    text.parse().map_err(|error: chandler_content::ReferenceError| {
        CommandError::failed(format!("failed to name the signature of {image}")).because(&error)
    })
}

/// The signatures of an artifact: the layers of an earlier manifest, and one by this key.
///
/// # Errors
/// The earlier manifest is not one of signatures, or has too many.
pub fn pack(
    image: &ImageReference,
    digest: &Digest,
    key: &SigningKey,
    earlier: Option<&[u8]>,
) -> Result<SignatureImage, CommandError> {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": format!("{}/{}", image.registry(), image.repository())},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    let payload = payload.to_string().into_bytes();
    let signature = STANDARD.encode(key.sign(&payload)?);
    let layer = json!({
        "mediaType": PAYLOAD,
        "digest": Digest::of(&payload),
        "size": payload.len(),
        "annotations": {SIGNATURE: signature},
    });
    let (mut manifest, config) = if let Some(bytes) = earlier {
        (earlier_manifest(bytes, image)?, None)
    } else {
        let config = b"{}".to_vec();
        let described = json!({"mediaType": CONFIG, "digest": Digest::of(&config), "size": config.len()});
        (json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": []}), Some(config))
    };
    let mut signatures = 0;
    if let Some(layers) = manifest.get_mut("layers").and_then(Value::as_array_mut) {
        layers.push(layer);
        signatures = layers.len();
    }
    if signatures > MOST {
        return Err(CommandError::failed(format!(
            "{image} has {} signatures, and verifiers read {MOST}",
            signatures - 1
        ))
        .hint("remove the tag of its signatures, and sign it again"));
    }
    Ok(SignatureImage { manifest: manifest.to_string().into_bytes(), config, payload, signatures })
}

fn earlier_manifest(bytes: &[u8], image: &ImageReference) -> Result<Value, CommandError> {
    let manifest: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let is_image = manifest.get("mediaType").is_none_or(|kind| kind == MANIFEST);
    if !is_image
        || !manifest.get("layers").is_some_and(Value::is_array)
        || !manifest.get("config").is_some_and(Value::is_object)
    {
        return Err(CommandError::failed(format!(
            "what has the tag for the signatures of {image} is not a list of signatures"
        ))
        .hint("remove the tag, and sign the artifact again"));
    }
    Ok(manifest)
}

impl SignatureImage {
    /// How many signatures by keys the artifact then has.
    pub fn signatures(&self) -> usize {
        self.signatures
    }
}

impl Pushed for SignatureImage {
    fn blobs(&self) -> Vec<Digest> {
        self.config.iter().chain([&self.payload]).map(|bytes| Digest::of(bytes)).collect()
    }

    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError> {
        let config = self.config.as_ref().filter(|config| Digest::of(config) == *digest);
        Ok(Bytes::from(config.unwrap_or(&self.payload).clone()))
    }

    fn manifests(&self) -> Vec<Manifest> {
        let digest = Digest::of(&self.manifest);
        vec![Manifest { media_type: MANIFEST.to_owned(), digest, bytes: self.manifest.clone() }]
    }
}
