//! A signature, read: what was signed, and what proves who signed it. Nothing of it is verified but that it is for the image.

use chandler_core::Digest;
use sigstore_verify::{
    crypto::{KeyAlgorithm, verify_signature},
    types::{Artifact, Bundle, SignatureContent},
};

use crate::{Signature, bundle, payload, requirement::Key};

/// Why a signature does not count for a key.
const OTHER_KEY: &str = "it is not made with this key";

/// A signature that claims to be for the image.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    /// The message that was signed, if it is not in the bundle itself.
    signed: &'a [u8],
    /// The signature in the form of a bundle, whatever its form in the registry.
    bundle: Bundle,
}

impl<'a> Evidence<'a> {
    /// Reads a signature for the image with this manifest and digest, or returns why it is not one.
    pub(crate) fn read(signature: &'a Signature, manifest: &'a [u8], image: &Digest) -> Result<Self, String> {
        Ok(match signature {
            Signature::Payload { payload, annotations } => {
                payload::check(payload, image)?;
                Self { signed: payload, bundle: payload::bundle(payload, annotations)? }
            }
            Signature::Bundle(json) => Self { signed: manifest, bundle: bundle::read(json, image)? },
            Signature::Unreadable(why) => return Err(why.clone()),
        })
    }

    pub(crate) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    pub(crate) fn artifact(&self) -> Artifact<'a> {
        self.signed.into()
    }

    /// Whether it claims to be in a transparency log.
    pub(crate) fn has_log_entry(&self) -> bool {
        !self.bundle.verification_material.tlog_entries.is_empty()
    }

    /// Whether the key made the signature. The log is not looked at.
    pub(crate) fn is_by(&self, key: &Key) -> Result<(), String> {
        let der = key.der();
        let algorithm = KeyAlgorithm::from_spki(&der).map_err(|error| error.to_string())?;
        let verified = match &self.bundle.content {
            SignatureContent::DsseEnvelope(envelope) => {
                verify_signature(&der, &envelope.pae(), &envelope.signature.sig, algorithm.default_signing_scheme())
            }
            SignatureContent::MessageSignature(message) => {
                let hash = message.message_digest.as_ref().map(|digest| digest.algorithm);
                let named = hash.and_then(|hash| algorithm.resolve_signing_scheme(hash).ok());
                // cosign 2 hashed with SHA-256 at first, whatever the key, and later as the key has it.
                let schemes = named.into_iter().chain([algorithm.default_signing_scheme()]);
                let mut verified =
                    schemes.map(|scheme| verify_signature(&der, self.signed, &message.signature, scheme));
                return if verified.any(|verified| verified.is_ok()) { Ok(()) } else { Err(OTHER_KEY.to_owned()) };
            }
            _ => return Err("it has an unknown kind of content".to_owned()),
        };
        verified.map_err(|_| OTHER_KEY.to_owned())
    }
}
