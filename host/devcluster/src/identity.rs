//! The source of uids and suffixes of generated names.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::store::Key;

/// The characters of generated names: without vowels and look-alikes (`k8s.io/apimachinery/pkg/util/rand`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The length of the suffix of a generated name.
const SUFFIX: usize = 5;

/// Makes uids and names. Clones share their state.
///
/// With a seed they depend on nothing but the seed, the place of the object and how often something was made for that place:
/// what other objects come and go in between, and on which task, does not matter.
#[derive(Clone, Debug, Default)]
pub struct Identities(Option<Arc<Seeded>>);

#[derive(Debug)]
struct Seeded {
    seed: u64,
    /// How often something was made, by the digest of what it was made for.
    made: Mutex<HashMap<[u8; 32], u64>>,
}

impl Identities {
    /// Random ones, as in every cluster.
    pub fn random() -> Self {
        Self(None)
    }

    /// Deterministic ones from a seed. They can be guessed, so never use them as secrets.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Seeded { seed, made: Mutex::default() })))
    }

    /// A uid for a new object: a UUID of version 4.
    pub fn uid(&self, key: &Key) -> String {
        Builder::from_random_bytes(self.bytes("uid", key)).into_uuid().to_string()
    }

    /// The suffix for `generateName`; `key` has the prefix for a name.
    pub fn suffix(&self, key: &Key) -> String {
        let bytes = self.bytes("name", key);
        let characters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
        characters.take(SUFFIX).map(|byte| char::from(*byte)).collect()
    }

    fn bytes(&self, purpose: &str, key: &Key) -> [u8; 16] {
        let Some(seeded) = &self.0 else { return Uuid::new_v4().into_bytes() };
        let mut digest = Sha256::new();
        for part in [purpose, &*key.resource, &key.namespace, &key.name] {
            // None of the parts holds a zero byte.
            digest.update(part);
            digest.update([0]);
        }
        digest.update(seeded.seed.to_le_bytes());
        let place: [u8; 32] = digest.finalize().into();
        let count = {
            let mut made = seeded.made.lock();
            let count = made.entry(place).or_default();
            *count += 1;
            *count
        };
        let digest: [u8; 32] = Sha256::new().chain_update(place).chain_update(count.to_le_bytes()).finalize().into();
        digest.first_chunk().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_identities_whatever_else_is_made_in_between() {
        let keys = ["a", "b"].map(|name| Key::new("pods".into(), "default", name));
        let (one, other) = (Identities::seeded(7), Identities::seeded(7));
        let [first, second] = &keys;
        let made = (one.uid(first), one.uid(second), one.suffix(first), one.uid(first));
        let (b, a, again) = (other.uid(second), other.uid(first), other.uid(first));
        assert_eq!((made.0.clone(), made.1, made.2, made.3.clone()), (a, b, other.suffix(first), again));
        assert_ne!(made.0, made.3);
        assert_ne!(Identities::seeded(8).uid(first), made.0);
        assert_ne!(Identities::random().uid(first), Identities::random().uid(first));
        assert_eq!(Uuid::parse_str(&made.0).unwrap().get_version_num(), 4);
    }

    #[test]
    fn suffixes_have_five_characters_of_the_alphabet() {
        let key = Key::new("pods".into(), "default", "web-");
        for identities in [Identities::random(), Identities::seeded(0)] {
            let suffix = identities.suffix(&key);
            assert_eq!(suffix.len(), 5);
            assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{suffix}");
        }
    }
}
