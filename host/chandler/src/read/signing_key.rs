//! A private key that signs artifacts.

use std::path::Path;

use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};

use super::file;
use crate::{CommandError, view::text::one_line};

/// The largest file, in bytes.
const KEY_BYTES: u64 = 16 << 10;

/// A private key. It is never printed.
pub enum SigningKey {
    /// ECDSA on the curve P-256, with SHA-256.
    Ecdsa(EcdsaKeyPair),
    /// Ed25519.
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Signs a message.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Ecdsa(key) => key
                .sign(&SystemRandom::new(), message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| CommandError::failed("failed to sign: the system has no randomness")),
            Self::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }

    /// Whether a signature of this message is by this key.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Ecdsa(key) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.public_key()).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key.public_key()).verify(message, signature),
        };
        verified.is_ok()
    }
}

/// Reads a private key as PEM (PKCS#8).
///
/// # Errors
/// Other users can read or write the file, or it has no such key.
pub fn read(path: &Path) -> Result<SigningKey, CommandError> {
    let bytes = file::read_private(path, KEY_BYTES)?;
    let shown = one_line(&path.display().to_string());
    parse(&bytes).map_err(|(problem, hint)| {
        CommandError::usage(format!("{shown} has no key that this command can sign with")).cause(problem).hint(hint)
    })
}

/// How to make a key.
const MAKE: &str = "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem` makes a key";

fn parse(bytes: &[u8]) -> Result<SigningKey, (&'static str, &'static str)> {
    let pem = pem::parse(bytes).map_err(|_| ("it is not PEM", MAKE))?;
    match pem.tag() {
        "PRIVATE KEY" => {}
        "EC PRIVATE KEY" => {
            return Err((
                "it is not in the format PKCS#8",
                "convert it: `openssl pkcs8 -topk8 -nocrypt -in OLD -out key.pem`",
            ));
        }
        tag if tag.starts_with("ENCRYPTED") => {
            return Err(("it is encrypted", "sign with `cosign sign --key FILE`, or decrypt the key"));
        }
        _ => return Err(("it is not a private key", MAKE)),
    }
    let der = pem.contents();
    if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new()) {
        return Ok(SigningKey::Ecdsa(key));
    }
    // OpenSSL writes no public key beside the private one.
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
    key.map(SigningKey::Ed25519).map_err(|_| ("its algorithm is neither ECDSA P-256 nor Ed25519", MAKE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_pem_of_a_known_algorithm() {
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
            let key = rcgen::KeyPair::generate_for(algorithm).unwrap().serialize_pem();
            let key = parse(key.as_bytes()).ok().unwrap();
            let signature = key.sign(b"message").unwrap();
            assert!(key.has_signed(b"message", &signature));
            assert!(!key.has_signed(b"other", &signature) && !key.has_signed(b"message", b"x"));
        }
        let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        let block = |tag: &str| pem::encode(&pem::Pem::new(tag, b"x".to_vec()));
        for (text, part) in [
            (other.serialize_pem(), "neither ECDSA P-256 nor Ed25519"),
            (other.public_key_pem(), "not a private key"),
            (block("ENCRYPTED SIGSTORE PRIVATE KEY"), "encrypted"),
            (block("EC PRIVATE KEY"), "PKCS#8"),
            ("text".to_owned(), "not PEM"),
        ] {
            let (problem, _) = parse(text.as_bytes()).err().unwrap();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
