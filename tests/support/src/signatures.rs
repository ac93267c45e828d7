//! An instance of Sigstore for tests, in the process: Fulcio, Rekor and the log of certificates, with keys of their own. It signs
//! images in both forms of cosign, as the real services and cosign do, byte for byte.
//!
//! | item | purpose |
//! |---|---|
//! | [`Sigstore`] | the instance, and its trusted root |
//! | [`Key`] | a key of a signer; with a certificate, a keyless signer |
//! | [`Signed`] | a signature in one of the forms, which tests may change before they push it |
//! | [`push_payload`], [`push_bundle`] | a signature into a registry |

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "helpers of tests may panic as well"
)]

mod fulcio;
mod push;
mod rekor;
mod signer;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::PublicKeyData as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};

pub use self::{
    fulcio::Identity,
    push::{push_bundle, push_payload},
    signer::{Key, Signed, statement},
};

/// The services of one instance.
pub struct Sigstore {
    pub(crate) fulcio: fulcio::Fulcio,
    pub(crate) rekor: rekor::Rekor,
}

impl Default for Sigstore {
    fn default() -> Self {
        Self::new()
    }
}

impl Sigstore {
    /// Services with new keys.
    pub fn new() -> Self {
        Self { fulcio: fulcio::Fulcio::new(), rekor: rekor::Rekor::new() }
    }

    /// The trusted root, as `trusted_root.json`.
    pub fn trusted_root(&self) -> String {
        let start = json!({"start": "2020-01-01T00:00:00Z"});
        let log = |key: &rcgen::KeyPair| {
            let spki = key.subject_public_key_info();
            json!({
                "baseUrl": "https://log.example",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": STANDARD.encode(&spki), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": start},
                "logId": {"keyId": STANDARD.encode(Sha256::digest(&spki))},
            })
        };
        let root = json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self.rekor.key())],
            "ctlogs": [log(self.fulcio.log_key())],
            "certificateAuthorities": [{
                "subject": {"organization": "test", "commonName": "fulcio"},
                "uri": "https://fulcio.example",
                "certChain": {"certificates": [{"rawBytes": STANDARD.encode(self.fulcio.authority())}]},
                "validFor": start,
            }],
        });
        root.to_string()
    }
}
