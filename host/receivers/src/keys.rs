//! The public keys of an issuer (JSON Web Key Set, RFC 7517), the signatures that they verify, and how often they are fetched.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

use crate::identity::{Presented, Unproven};

/// The most keys of an issuer that are used.
pub const MOST_KEYS: usize = 32;
/// How long keys are used before they are fetched again.
const FRESH: Duration = Duration::from_hours(1);
/// How long keys are used while they cannot be fetched again.
const STALE: Duration = Duration::from_hours(24);
/// The shortest time between two fetches, whatever the requests contain.
const PAUSE: Duration = Duration::from_mins(1);

/// An accepted algorithm. `none` and algorithms with a secret (HS256) are not among them: the keys of an issuer are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
}

impl Algorithm {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// The keys of an issuer.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Key>);

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

/// The kind of a key decides which algorithm it verifies, so that a token cannot choose another one.
#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
}

/// The document is not a set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer's document is not a set of keys")]
pub struct NotKeys;

#[derive(Deserialize)]
struct Set {
    keys: Vec<Jwk>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// The key; `None` if it has another purpose, kind or algorithm.
    fn key(self) -> Option<Key> {
        if self.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: unsigned(bytes(&self.n)?), e: unsigned(bytes(&self.e)?) },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&self.x)?, bytes(&self.y)?);
                // A point without compression.
                Material::P256(
                    (x.len() == 32 && y.len() == 32).then(|| [&[4][..], x.as_slice(), y.as_slice()].concat())?,
                )
            }
            _ => return None,
        };
        let key = Key { id: self.kid, material };
        // The issuer may name the only algorithm of a key.
        let is_accepted = |name: &str| Algorithm::from_name(name) == Some(key.algorithm());
        self.alg.as_deref().is_none_or(is_accepted).then_some(key)
    }
}

/// A number without leading zeros.
fn unsigned(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

impl Keys {
    /// Reads a set of keys. Keys with another purpose, kind or algorithm are left out, and so are keys beyond [`MOST_KEYS`].
    ///
    /// # Errors
    /// The text is not a set of keys.
    pub fn parse(text: &[u8]) -> Result<Self, NotKeys> {
        let set: Set = serde_json::from_slice(text).map_err(|_| NotKeys)?;
        Ok(Self(set.keys.into_iter().filter_map(Jwk::key).take(MOST_KEYS).collect()))
    }

    /// Verifies the signature of a token, with one key: a token that names none fits only the single key of its kind.
    ///
    /// # Errors
    /// [`Unproven::UnknownKey`] if newer keys may verify it; [`Unproven::Signature`] if the signature does not fit.
    pub fn verify(&self, token: &Presented<'_>) -> Result<(), Unproven> {
        let is_candidate =
            |key: &&Key| key.algorithm() == token.algorithm && (token.key.is_none() || key.id == token.key);
        let mut candidates = self.0.iter().filter(is_candidate);
        let key = candidates.next().ok_or(Unproven::UnknownKey)?;
        match (key.verify(token), &token.key) {
            (true, Some(_)) => Ok(()),
            (true, None) if candidates.next().is_none() => Ok(()),
            (false, Some(_)) => Err(Unproven::Signature),
            // Without a name, the key may be a newer one.
            (_, None) => Err(Unproven::UnknownKey),
        }
    }
}

impl Key {
    fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
        }
    }

    fn verify(&self, token: &Presented<'_>) -> bool {
        let (signed, signature) = (token.signed.as_bytes(), &token.signature);
        let verified = match &self.material {
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature),
        };
        verified.is_ok()
    }
}

/// The keys of one issuer, as long as they may be used. The clock comes in as an argument: the time since any fixed beginning.
#[derive(Debug, Default)]
pub struct KeyCache {
    keys: Option<(Arc<Keys>, Duration)>,
    tried: Option<Duration>,
}

impl KeyCache {
    /// The keys, if they may still be used.
    pub fn keys(&self, now: Duration) -> Option<Arc<Keys>> {
        let (keys, fetched) = self.keys.as_ref()?;
        (now.saturating_sub(*fetched) < STALE).then(|| Arc::clone(keys))
    }

    /// Whether to fetch the keys now: they are old or missing, or a token names another one (`is_unknown`). Not within a minute of the last
    /// attempt, so that no request can cause more fetches.
    pub fn is_due(&self, is_unknown: bool, now: Duration) -> bool {
        let is_fresh = self.keys.as_ref().is_some_and(|(_, fetched)| now.saturating_sub(*fetched) < FRESH);
        let is_allowed = self.tried.is_none_or(|tried| now.saturating_sub(tried) >= PAUSE);
        is_allowed && (is_unknown || !is_fresh)
    }

    /// Notes that the keys are about to be fetched.
    pub fn trying(&mut self, now: Duration) {
        self.tried = Some(now);
    }

    /// Notes keys that were fetched.
    pub fn fetched(&mut self, keys: Keys, now: Duration) {
        self.keys = Some((Arc::new(keys), now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_at_most_once_a_minute_and_used_for_a_day() {
        let (mut cache, mut now) = (KeyCache::default(), Duration::ZERO);
        assert!(cache.keys(now).is_none() && cache.is_due(false, now));
        cache.trying(now);
        assert!(!cache.is_due(true, now), "the attempt failed just now");
        now += PAUSE;
        assert!(cache.is_due(false, now));
        cache.trying(now);
        cache.fetched(Keys::default(), now);
        let mut fetches = 0;
        for second in 0..3600 {
            let now = now + Duration::from_secs(second);
            if cache.is_due(true, now) {
                cache.trying(now);
                fetches += 1;
            }
            assert!(cache.keys(now).is_some());
        }
        assert_eq!(fetches, 59, "whatever keys tokens name");
        assert!(!cache.is_due(false, now + FRESH / 2));
        assert!(cache.is_due(false, now + FRESH));
        let second = Duration::from_secs(1);
        assert!(cache.keys(now + STALE.saturating_sub(second)).is_some() && cache.keys(now + STALE).is_none());
    }

    #[test]
    fn only_keys_for_signatures_with_accepted_algorithms_are_read() {
        let of = |text: &str| Keys::parse(text.as_bytes()).map(|keys| keys.0.len());
        assert_eq!(of("{"), Err(NotKeys));
        assert_eq!(of("[]"), Err(NotKeys));
        let point = URL_SAFE_NO_PAD.encode([1; 32]);
        let key =
            |more: &str| format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","x":"{point}","y":"{point}"{more}}}]}}"#);
        for (more, number) in [
            ("", 1),
            (r#","use":"sig","x5c":["ignored"]"#, 1),
            (r#","alg":"ES256""#, 1),
            (r#","use":"enc""#, 0),
            (r#","alg":"RS256""#, 0),
            (r#","alg":"ES512""#, 0),
        ] {
            assert_eq!(of(&key(more)), Ok(number), "{more}");
        }
        assert_eq!(
            of(r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{}]}"#),
            Ok(0)
        );
        let many = vec![r#"{"kty":"RSA","n":"AQ","e":"AQAB"}"#; 100].join(",");
        assert_eq!(of(&format!(r#"{{"keys":[{many}]}}"#)), Ok(MOST_KEYS));
    }
}
