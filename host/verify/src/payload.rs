//! The form of cosign 1 and 2: a payload in the form of simple signing, and annotations with the signature and its proofs.
//!
//! The payload is brought into the form of a bundle, so that one verifier checks both forms.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use chandler_core::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use sigstore_verify::types::{Bundle, DerCertificate};

use crate::signature::Annotations;

/// The types of payloads that sign an image.
const TYPES: &[&str] = &["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];
/// The bundle form that allows a chain of certificates, and a log entry without a proof of inclusion if it has a promise.
const FORM: &str = "application/vnd.dev.sigstore.bundle+json;version=0.1";
/// The most certificates of a chain.
const CERTIFICATES: usize = 8;

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

/// The name of the image (`identity`) is not read: the author of a signature chooses it, and a mirror has another.
#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// An entry of Rekor, as cosign stores it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogEntry {
    signed_entry_timestamp: String,
    payload: EntryPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryPayload {
    body: String,
    integrated_time: i64,
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryBody {
    api_version: String,
    kind: String,
}

#[derive(Deserialize)]
struct Timestamp {
    #[serde(rename = "SignedRFC3161Timestamp")]
    token: String,
}

/// Whether a payload is for the image with this digest.
pub(crate) fn check(payload: &[u8], image: &Digest) -> Result<(), String> {
    let payload: Payload =
        serde_json::from_slice(payload).map_err(|error| format!("its payload cannot be read: {error}"))?;
    let Critical { image: Image { digest }, kind } = payload.critical;
    if !TYPES.contains(&kind.as_str()) {
        return Err(format!("its payload has the type {kind}"));
    }
    if digest == image.as_str() { Ok(()) } else { Err("it is for another image".to_owned()) }
}

/// The annotations as a bundle whose message is the payload.
pub(crate) fn bundle(payload: &[u8], annotations: &Annotations) -> Result<Bundle, String> {
    let Some(signature) = &annotations.signature else {
        return Err("it has no annotation with a signature".to_owned());
    };
    let material = match &annotations.certificate {
        Some(certificate) => json!({"x509CertificateChain": {"certificates": chain(certificate, annotations)?}}),
        None => json!({"publicKey": {}}),
    };
    let entries: Vec<Value> = annotations.bundle.as_deref().map(log_entry).transpose()?.into_iter().collect();
    let timestamps: Vec<Value> = annotations.timestamp.as_deref().map(timestamp).transpose()?.into_iter().collect();
    let mut bundle = json!({
        "mediaType": FORM,
        "verificationMaterial": {
            "tlogEntries": entries,
            "timestampVerificationData": {"rfc3161Timestamps": timestamps},
        },
        "messageSignature": {
            // cosign signs payloads with SHA-256, whatever the size of the key.
            "messageDigest": {"algorithm": "SHA2_256", "digest": BASE64.encode(ring::digest::digest(&ring::digest::SHA256, payload))},
            "signature": signature.trim(),
        },
    });
    if let (Some(Value::Object(parts)), Value::Object(material)) = (bundle.get_mut("verificationMaterial"), material) {
        parts.extend(material);
    }
    serde_json::from_value(bundle).map_err(|error| format!("its annotations cannot be read: {error}"))
}

/// The certificate of the signer, and those above it.
fn chain(certificate: &str, annotations: &Annotations) -> Result<Vec<Value>, String> {
    let texts = [certificate, annotations.chain.as_deref().unwrap_or_default()];
    let blocks = texts.iter().flat_map(|text| text.split_inclusive("-----END CERTIFICATE-----"));
    let blocks: Vec<&str> = blocks.map(str::trim).filter(|block| !block.is_empty()).collect();
    if blocks.len() > CERTIFICATES {
        return Err(format!("it has more than {CERTIFICATES} certificates"));
    }
    let read = |block: &&str| {
        let der = DerCertificate::from_pem(block).map_err(|_| "its certificate is not PEM".to_owned())?;
        Ok(json!({"rawBytes": BASE64.encode(der.as_bytes())}))
    };
    blocks.iter().map(read).collect()
}

fn log_entry(text: &str) -> Result<Value, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("its log entry cannot be read: {error}");
    let entry: LogEntry = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let EntryPayload { body, integrated_time, log_index, log_id } = entry.payload;
    let log = hex::decode(&log_id).map_err(|error| unreadable(&error))?;
    let json = BASE64.decode(&body).map_err(|error| unreadable(&error))?;
    let EntryBody { api_version, kind } = serde_json::from_slice(&json).map_err(|error| unreadable(&error))?;
    Ok(json!({
        "logIndex": log_index.to_string(),
        "logId": {"keyId": BASE64.encode(log)},
        "kindVersion": {"kind": kind, "version": api_version},
        "integratedTime": integrated_time.to_string(),
        "inclusionPromise": {"signedEntryTimestamp": entry.signed_entry_timestamp},
        "canonicalizedBody": body,
    }))
}

fn timestamp(text: &str) -> Result<Value, String> {
    let Timestamp { token } =
        serde_json::from_str(text).map_err(|error| format!("its timestamp cannot be read: {error}"))?;
    Ok(json!({"signedTimestamp": token}))
}
