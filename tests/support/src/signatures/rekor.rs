//! Entries of a transparency log: Rekor, version 1.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

pub(crate) struct Rekor {
    key: KeyPair,
}

/// The index of an entry, other than that in its tree, as with Rekor's shards.
const INDEX: i64 = 4711;

impl Rekor {
    pub(crate) fn new() -> Self {
        Self { key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap() }
    }

    pub(crate) fn key(&self) -> &KeyPair {
        &self.key
    }

    fn log_id(&self) -> [u8; 32] {
        Sha256::digest(self.key.subject_public_key_info()).into()
    }

    /// The entry, as an annotation of cosign 2.
    pub(crate) fn annotation(&self, body: &Value, time: OffsetDateTime) -> Value {
        let payload = self.payload(body, time);
        json!({"SignedEntryTimestamp": STANDARD.encode(self.promise(&payload)), "Payload": payload})
    }

    /// The entry, in a bundle.
    pub(crate) fn entry(&self, body: &Value, time: OffsetDateTime) -> Value {
        let payload = self.payload(body, time);
        // A tree of two leaves, of which this is the second.
        let leaf = |bytes: &[u8]| Sha256::digest([&[0][..], bytes].concat());
        let (other, own) = (leaf(b"another entry"), leaf(body.to_string().as_bytes()));
        let root = STANDARD.encode(Sha256::digest([&[1][..], &other, &own].concat()));
        let note = format!("log.example - 1\n2\n{root}\n");
        let signature = [&self.log_id()[..4], &self.key.sign(note.as_bytes()).unwrap()].concat();
        json!({
            "logIndex": INDEX.to_string(),
            "logId": {"keyId": STANDARD.encode(self.log_id())},
            "kindVersion": {"kind": body["kind"], "version": body["apiVersion"]},
            "integratedTime": time.unix_timestamp().to_string(),
            "inclusionPromise": {"signedEntryTimestamp": STANDARD.encode(self.promise(&payload))},
            "inclusionProof": {
                "logIndex": "1", "treeSize": "2", "rootHash": root, "hashes": [STANDARD.encode(other)],
                "checkpoint": {"envelope": format!("{note}\n\u{2014} log.example {}\n", STANDARD.encode(signature))},
            },
            "canonicalizedBody": payload["body"],
        })
    }

    fn payload(&self, body: &Value, time: OffsetDateTime) -> Value {
        json!({
            "body": STANDARD.encode(body.to_string()),
            "integratedTime": time.unix_timestamp(),
            "logIndex": INDEX,
            "logID": hex::encode(self.log_id()),
        })
    }

    /// The signature of the log. The members of `Value` are sorted, as canonical JSON wants them.
    fn promise(&self, payload: &Value) -> Vec<u8> {
        self.key.sign(payload.to_string().as_bytes()).unwrap()
    }
}
