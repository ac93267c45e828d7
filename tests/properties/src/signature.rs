//! Signatures of an image, as a registry may send them.

use std::sync::OnceLock;

use chandler_verify::{Policy, Signature, TrustRoot, Verifier};
use serde_json::json;

use crate::memory;

/// The manifest of the image.
const MANIFEST: &[u8] = br#"{"schemaVersion":2,"layers":[],"config":{}}"#;
/// A key whose private half is not stored.
const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEanBaZDYVORH+DBOfp0aU5x6KUyim\n\
1wvDb/RodQpALZe7EU1w0bdXXp7rtxffLmlH/BReLuIdtidHW0rnMqBZaw==\n\
-----END PUBLIC KEY-----\n";
/// The trusted root, parsed, and the errors of a run.
const FIXED: usize = 4 << 20;
const PER_BYTE: usize = 400;

fn prepared() -> &'static (Verifier, [Policy; 3]) {
    static PREPARED: OnceLock<(Verifier, [Policy; 3])> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let policy = |signer: serde_json::Value| {
            Policy::parse(&serde_json::from_value(json!({"allOf": [signer]})).unwrap()).unwrap()
        };
        let key = |log: bool| policy(json!({"publicKey": {"key": KEY, "requireTransparencyLog": log}}));
        // Real signatures in the log of the public instance are not for this image.
        let keyless =
            policy(json!({"keyless": {"issuer": "https://accounts.example", "subject": {"equal": "a@example.com"}}}));
        (Verifier::new(&TrustRoot::public().unwrap()).unwrap(), [key(false), key(true), keyless])
    })
}

/// No text is a signature. The error is bounded, and shows no character that deceives.
pub(crate) fn holds(input: &[u8]) {
    let (verifier, policies) = prepared();
    let signature = match input.split_first() {
        Some((b'{', _)) | None => Signature::Bundle(input.to_vec()),
        // A payload and its annotations, a line each.
        Some(_) => {
            let mut lines = input.splitn(2, |byte| *byte == b'\n');
            let payload = lines.next().unwrap_or_default().to_vec();
            let annotations = serde_json::from_slice(lines.next().unwrap_or_default()).unwrap_or_default();
            Signature::Payload { payload, annotations }
        }
    };
    for policy in policies {
        let signatures = std::slice::from_ref(&signature);
        let verdict = memory::bounded(input, FIXED, PER_BYTE, || verifier.verify(policy, MANIFEST, signatures));
        let message = verdict.expect_err("a forged signature").to_string();
        assert!(message.len() < 2000, "{message}");
        assert!(!message.chars().any(chandler_core::text::is_deceptive), "{message}");
    }
}
