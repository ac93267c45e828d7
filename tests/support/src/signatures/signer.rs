//! Keys, and signatures by them in both forms of cosign.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::Digest;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, SignatureAlgorithm, SigningKey as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::{Identity, Sigstore};

/// A key of a signer.
pub struct Key {
    key: KeyPair,
    certificate: Option<Vec<u8>>,
}

/// A signature in the form of cosign 2.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The payload.
    pub payload: Vec<u8>,
    /// The annotations of its layer.
    pub annotations: BTreeMap<String, String>,
}

impl Default for Key {
    fn default() -> Self {
        Self::new(&PKCS_ECDSA_P256_SHA256)
    }
}

/// The payload of an in-toto statement that signs the image.
pub fn statement(image: &Digest) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": image.hex()}, "annotations": {}}],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    })
}

impl Key {
    /// A new key.
    pub fn new(algorithm: &'static SignatureAlgorithm) -> Self {
        Self { key: KeyPair::generate_for(algorithm).unwrap(), certificate: None }
    }

    /// A new key with a certificate.
    pub fn certified(sigstore: &Sigstore, identity: &Identity) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let certificate = Some(sigstore.fulcio.certify(&key, identity));
        Self { key, certificate }
    }

    /// The public key, as PEM.
    pub fn public(&self) -> String {
        self.key.public_key_pem()
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.key.sign(message).unwrap())
    }

    /// What a log entry holds of the signer.
    fn verifier(&self) -> String {
        match &self.certificate {
            Some(der) => pem_of(der),
            None => self.public(),
        }
    }

    /// Signs an image in the form of cosign 2. With an instance, its log has the signature.
    pub fn payload(&self, image: &Digest, log: Option<&Sigstore>) -> Signed {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": "registry.example/any/name"},
                "image": {"docker-manifest-digest": image},
                "type": "cosign container image signature",
            },
            "optional": null,
        });
        self.payload_of(payload.to_string().into_bytes(), log, OffsetDateTime::now_utc())
    }

    /// Signs these bytes in the form of cosign 2. With an instance, its log has the signature since `time`.
    pub fn payload_of(&self, payload: Vec<u8>, log: Option<&Sigstore>, time: OffsetDateTime) -> Signed {
        let signature = self.sign(&payload);
        let mut annotations = BTreeMap::from([("dev.cosignproject.cosign/signature".to_owned(), signature.clone())]);
        if let Some(certificate) = &self.certificate {
            annotations.insert("dev.sigstore.cosign/certificate".to_owned(), pem_of(certificate));
        }
        if let Some(Sigstore { rekor, fulcio }) = log {
            let entry = rekor.annotation(&self.hashed(&payload, &signature), time);
            annotations.insert("dev.sigstore.cosign/bundle".to_owned(), entry.to_string());
            annotations.insert("dev.sigstore.cosign/chain".to_owned(), pem_of(&fulcio.authority()));
        }
        Signed { payload, annotations }
    }

    /// The body of a log entry about a signature of bytes.
    fn hashed(&self, message: &[u8], signature: &str) -> Value {
        json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": hex::encode(Sha256::digest(message))}},
                "signature": {"content": signature, "publicKey": {"content": STANDARD.encode(self.verifier())}},
            },
        })
    }

    /// Signs an image in the form of cosign 3. With an instance, its log has the signature.
    pub fn bundle(&self, image: &Digest, log: Option<&Sigstore>) -> Value {
        self.bundle_of(&statement(image), log)
    }

    /// Signs a statement in the form of cosign 3. With an instance, its log has the signature.
    pub fn bundle_of(&self, statement: &Value, log: Option<&Sigstore>) -> Value {
        let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string());
        // The encoding before authentication of DSSE.
        let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        let signature = self.sign(message.as_bytes());
        let hash = |text: &str| json!({"algorithm": "sha256", "value": hex::encode(Sha256::digest(text))});
        let body = json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": hash("not checked: its form is not specified"),
                "payloadHash": hash(&payload),
                "signatures": [{"signature": signature, "verifier": STANDARD.encode(self.verifier())}],
            },
        });
        let envelope = json!({
            "payload": STANDARD.encode(&payload),
            "payloadType": kind,
            "signatures": [{"sig": signature}],
        });
        self.in_bundle("dsseEnvelope", envelope, &body, log)
    }

    /// Signs the manifest of an image itself, as `cosign sign-blob` does.
    pub fn message_bundle(&self, manifest: &[u8], log: Option<&Sigstore>) -> Value {
        let signature = self.sign(manifest);
        let digest = json!({"algorithm": "SHA2_256", "digest": STANDARD.encode(Sha256::digest(manifest))});
        let body = self.hashed(manifest, &signature);
        self.in_bundle("messageSignature", json!({"messageDigest": digest, "signature": signature}), &body, log)
    }

    fn in_bundle(&self, kind: &str, content: Value, body: &Value, log: Option<&Sigstore>) -> Value {
        let mut material = match &self.certificate {
            Some(der) => json!({"certificate": {"rawBytes": STANDARD.encode(der)}}),
            None => json!({"publicKey": {"hint": STANDARD.encode(Sha256::digest(self.public()))}}),
        };
        let entries = log.map(|Sigstore { rekor, .. }| rekor.entry(body, OffsetDateTime::now_utc()));
        material["tlogEntries"] = entries.into_iter().collect();
        let mut bundle = json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
        });
        bundle[kind] = content;
        bundle
    }
}

fn pem_of(certificate: &[u8]) -> String {
    pem::encode_config(
        &pem::Pem::new("CERTIFICATE", certificate),
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}
