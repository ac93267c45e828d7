//! The form of cosign 3: a bundle of Sigstore.

use chandler_core::Digest;
use serde::Deserialize;
use sigstore_verify::types::{Bundle, SignatureContent};

/// The payload of an envelope that is a statement of in-toto.
const STATEMENT: &str = "application/vnd.in-toto+json";
/// The type of a statement that says nothing but that the signer signs the image. Other statements, such as the findings of a scanner, are
/// not approvals.
const SIGNS: &str = "https://sigstore.dev/cosign/sign/v1";
/// The versions of statements of in-toto.
const STATEMENTS: &[&str] = &["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digests,
}

#[derive(Deserialize)]
struct Digests {
    #[serde(default)]
    sha256: Option<String>,
}

/// Reads a bundle that signs the image with this digest.
pub(crate) fn read(json: &[u8], image: &Digest) -> Result<Bundle, String> {
    let bundle: Bundle =
        serde_json::from_slice(json).map_err(|error| format!("it is not a bundle of Sigstore: {error}"))?;
    match &bundle.content {
        SignatureContent::DsseEnvelope(envelope) if envelope.payload_type == STATEMENT => {
            check(envelope.payload.as_bytes(), image)?;
        }
        SignatureContent::DsseEnvelope(envelope) => {
            return Err(format!("it signs a payload of the type {}, and not an image", envelope.payload_type));
        }
        // The message is the manifest itself.
        SignatureContent::MessageSignature(_) => {}
        _ => return Err("it has an unknown kind of content".to_owned()),
    }
    Ok(bundle)
}

fn check(statement: &[u8], image: &Digest) -> Result<(), String> {
    let statement: Statement =
        serde_json::from_slice(statement).map_err(|error| format!("its statement cannot be read: {error}"))?;
    if !STATEMENTS.contains(&statement.kind.as_str()) {
        return Err(format!("its statement has the type {}", statement.kind));
    }
    if statement.predicate_type != SIGNS {
        return Err(format!("it is an attestation of the type {}, and not a signature", statement.predicate_type));
    }
    let mut digests = statement.subject.iter().map(|subject| subject.digest.sha256.as_deref());
    if digests.any(|digest| digest == Some(image.hex())) { Ok(()) } else { Err("it is for another image".to_owned()) }
}
