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

/// The signatures of an artifact: the layers of an earlier manifest, and one by this key. `None` if this key has signed it already: signatures
/// with ECDSA differ from run to run, so that each run would add one.
///
/// # Errors
/// The earlier manifest is not one of signatures, or has too many.
pub fn pack(
    image: &ImageReference,
    digest: &Digest,
    key: &SigningKey,
    earlier: Option<&[u8]>,
) -> Result<Option<SignatureImage>, CommandError> {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": format!("{}/{}", image.registry(), image.repository())},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    let payload = payload.to_string().into_bytes();
    let described = json!({"mediaType": PAYLOAD, "digest": Digest::of(&payload), "size": payload.len()});
    let (mut manifest, config) = if let Some(bytes) = earlier {
        (earlier_manifest(bytes, image)?, None)
    } else {
        let config = b"{}".to_vec();
        let descriptor = json!({"mediaType": CONFIG, "digest": Digest::of(&config), "size": config.len()});
        (json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor, "layers": []}), Some(config))
    };
    let mut signatures = 0;
    if let Some(layers) = manifest.get_mut("layers").and_then(Value::as_array_mut) {
        if layers.iter().any(|earlier| is_signed(earlier, &described, &payload, key)) {
            return Ok(None);
        }
        let signature = STANDARD.encode(key.sign(&payload)?);
        let mut layer = described;
        if let Some(fields) = layer.as_object_mut() {
            fields.insert("annotations".to_owned(), json!({SIGNATURE: signature}));
        }
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
    Ok(Some(SignatureImage { manifest: manifest.to_string().into_bytes(), config, payload, signatures }))
}

/// Whether an earlier layer is described as this payload is, and has a signature of it by this key.
fn is_signed(earlier: &Value, described: &Value, payload: &[u8], key: &SigningKey) -> bool {
    let same_payload = ["mediaType", "digest", "size"].iter().all(|field| earlier.get(field) == described.get(field));
    let signature = earlier.get("annotations").and_then(|annotations| annotations.get(SIGNATURE));
    let signature = signature.and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    same_payload && signature.is_some_and(|signature| key.has_signed(payload, &signature))
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::read::signing_key;

    fn key(algorithm: &'static rcgen::SignatureAlgorithm) -> SigningKey {
        // Only its owner can read it.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let pair = rcgen::KeyPair::generate_for(algorithm).unwrap();
        file.write_all(pair.serialize_pem().as_bytes()).unwrap();
        signing_key::read(file.path()).unwrap()
    }

    #[test]
    fn a_key_signs_an_artifact_once() {
        let image: ImageReference = "registry.example.com/provisioners/sail:v1".parse().unwrap();
        let digest = Digest::of(b"artifact");
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
            let (one, two) = (key(algorithm), key(algorithm));
            let first = pack(&image, &digest, &one, None).unwrap().unwrap();
            assert_eq!(first.signatures(), 1);
            assert!(pack(&image, &digest, &one, Some(&first.manifest)).unwrap().is_none());
            let second = pack(&image, &digest, &two, Some(&first.manifest)).unwrap().unwrap();
            assert_eq!(second.signatures(), 2);
            for key in [&one, &two] {
                assert!(pack(&image, &digest, key, Some(&second.manifest)).unwrap().is_none());
            }
        }
    }

    #[test]
    fn a_damaged_signature_or_one_of_another_payload_does_not_count() {
        let image: ImageReference = "registry.example.com/provisioners/sail:v1".parse().unwrap();
        let key = key(&rcgen::PKCS_ECDSA_P256_SHA256);
        let digest = Digest::of(b"artifact");
        let first = pack(&image, &digest, &key, None).unwrap().unwrap();
        let other = pack(&image, &Digest::of(b"other"), &key, Some(&first.manifest)).unwrap().unwrap();
        assert_eq!(other.signatures(), 2, "another artifact");
        let manifest: Value = serde_json::from_slice(&first.manifest).unwrap();
        for (field, value) in [
            ("/annotations", json!({SIGNATURE: "AAAA"})),
            ("/annotations", json!({SIGNATURE: "no base64!"})),
            ("/annotations", json!(null)),
            ("/size", json!(1)),
            ("/mediaType", json!("text/plain")),
        ] {
            let mut damaged = manifest.clone();
            *damaged.pointer_mut(&format!("/layers/0{field}")).unwrap() = value;
            let again = pack(&image, &digest, &key, Some(damaged.to_string().as_bytes())).unwrap();
            assert!(again.is_some(), "{field}");
        }
    }
}
