//! Signed tokens: JWS in its compact form (RFC 7515) with ES256, the only supported algorithm.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::KeyPair;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The algorithm: ECDSA over P-256 with SHA-256.
pub const ALGORITHM: &str = "ES256";

/// The bytes before the point in the DER of a P-256 public key (`SubjectPublicKeyInfo`, RFC 5480).
const KEY_INFO: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be made or read.
    #[error("failed to create or read the key that signs tokens")]
    Key(#[from] rcgen::Error),
    /// It is not a P-256 key.
    #[error("the key that signs tokens is not a P-256 key: {0}")]
    Kind(String),
}

/// Why a token is not accepted as signed by the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not in the format of a signed token.
    #[error("it is not a signed token")]
    Form,
    /// Another key or algorithm is named.
    #[error("invalid signature, no keys found")]
    Key,
    /// The signature does not fit.
    #[error("invalid signature")]
    Signature,
}

/// The key with which a cluster signs tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    pem: String,
    id: String,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// A new key.
    ///
    /// # Errors
    /// When the cryptography fails.
    pub fn generate() -> Result<Self, KeyError> {
        Self::of(&KeyPair::generate()?)
    }

    /// A key that was kept with [`pem`](Self::pem).
    ///
    /// # Errors
    /// If the text is not a P-256 key.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        Self::of(&KeyPair::from_pem(pem)?)
    }

    fn of(key: &KeyPair) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der(), &random);
        let pair = pair.map_err(|error| KeyError::Kind(error.to_string()))?;
        let digest = Sha256::new().chain_update(KEY_INFO).chain_update(pair.public_key().as_ref()).finalize();
        Ok(Self { pair, pem: key.serialize_pem(), id: URL_SAFE_NO_PAD.encode(digest) })
    }

    /// The private key, to keep it. It is a secret.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The key's name in tokens: made from the public key, and not to be turned back.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs claims.
    ///
    /// # Errors
    /// When the cryptography fails.
    pub fn sign(&self, claims: &impl serde::Serialize) -> Result<String, String> {
        let claims = serde_json::to_vec(claims).map_err(|error| error.to_string())?;
        let header = json!({"alg": ALGORITHM, "kid": self.id}).to_string();
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|error| error.to_string())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this key has signed.
    ///
    /// # Errors
    /// When it is not such a token. What it claims is not looked at.
    pub fn verify(&self, token: &str) -> Result<Value, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Form)?;
        let header = parse(header)?;
        let named = |field: &str| header.get(field).and_then(Value::as_str);
        if named("alg") != Some(ALGORITHM) || named("kid").is_some_and(|id| id != self.id) {
            return Err(TokenError::Key);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Form)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(signed.as_bytes(), &signature).map_err(|_| TokenError::Signature)?;
        parse(claims)
    }

    /// The public key as a set of keys (RFC 7517).
    pub fn key_set(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let point = self.pair.public_key().as_ref();
        let coordinate = |at: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(point.get(at).unwrap_or_default());
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": ALGORITHM,
            "x": coordinate(1..33), "y": coordinate(33..65),
        }]})
    }
}

fn parse(part: &str) -> Result<Value, TokenError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Form)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| TokenError::Form)?;
    if value.is_object() { Ok(value) } else { Err(TokenError::Form) }
}

/// The issuer that an unverified token claims; to select the validator before the signature is checked.
pub fn claimed_issuer(token: &str) -> Option<String> {
    let claims = parse(token.split('.').nth(1)?).ok()?;
    Some(claims.get("iss")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_tokens_signed_by_the_key_are_accepted() {
        let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let claims = json!({"iss": "me", "sub": "x"});
        let token = key.sign(&claims).unwrap();
        assert_eq!(key.verify(&token), Ok(claims.clone()));
        assert_eq!(claimed_issuer(&token).as_deref(), Some("me"));
        assert_eq!(other.verify(&token), Err(TokenError::Key));

        let parts: Vec<&str> = token.split('.').collect();
        let [header, payload, signature] = parts.as_slice() else { panic!("{token}") };
        let forged = URL_SAFE_NO_PAD.encode(json!({"iss": "me", "sub": "admin"}).to_string());
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let unnamed = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        let cases = [
            (format!("{header}.{forged}.{signature}"), TokenError::Signature),
            (format!("{none}.{payload}."), TokenError::Key),
            (format!("{unnamed}.{payload}.{signature}"), TokenError::Signature),
            (format!("{header}.{payload}"), TokenError::Form),
            (format!("{header}.{payload}.!"), TokenError::Form),
            (String::new(), TokenError::Form),
        ];
        for (token, expected) in cases {
            assert_eq!(key.verify(&token), Err(expected), "{token}");
        }
    }

    #[test]
    fn a_kept_key_is_the_same_key() {
        let key = SigningKey::generate().unwrap();
        let kept = SigningKey::from_pem(key.pem()).unwrap();
        assert_eq!((kept.id(), kept.key_set()), (key.id(), key.key_set()));
        assert!(kept.verify(&key.sign(&json!({})).unwrap()).is_ok());
        assert!(SigningKey::from_pem("nothing").is_err());
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-zA-Z0-9_.-]{0,80}") {
            let key = SigningKey::generate().unwrap();
            prop_assert!(key.verify(&text).is_err());
            let _ = claimed_issuer(&text);
        }
    }
}
