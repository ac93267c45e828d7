//! The facts that provisioners read when they rendered the same inputs.
//!
//! A release is a function of its inputs (content, component and configuration) and of the facts that its provisioner read.
//! Which facts these are is known only after rendering. The cache therefore stores lists of facts under the inputs, and a
//! release under the inputs together with the values of such a list.
//!
//! ```text
//! chandler questions 1 LF
//! JSON: the lists, the most recently used one first
//! ```

use std::collections::HashMap;

use chandler_core::{Digest, RecordedFacts, Target};

/// Identifies the format. The name is older than [`RecordedFacts`].
const MAGIC: &[u8] = b"chandler questions 1\n";
/// How many lists are kept for the same inputs. A provisioner that always reads the same facts has one.
const LISTS: usize = 8;
/// How many inputs have their lists in memory.
const REMEMBERED: usize = 4096;

/// The digest under which a release is cached: a digest of the inputs and of the facts with their values for a target.
pub(crate) fn key(inputs: &Digest, asked: &RecordedFacts, target: &Target) -> Digest {
    Digest::of_json(&(inputs, asked.values(target)))
}

/// Lists of facts, the most recently used one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists(Vec<RecordedFacts>);

impl Lists {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes.strip_prefix(MAGIC)?).ok().map(Self)
    }

    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        serde_json::to_writer(&mut bytes, &self.0).ok()?;
        Some(bytes)
    }

    /// Puts a list in front. Returns whether that changed anything.
    pub(crate) fn put(&mut self, asked: &RecordedFacts) -> bool {
        if self.0.first() == Some(asked) {
            return false;
        }
        self.0.retain(|known| known != asked);
        self.0.insert(0, asked.clone());
        self.0.truncate(LISTS);
        true
    }

    /// The digests under which a release for this target may be cached.
    pub(crate) fn keys(&self, inputs: &Digest, target: &Target) -> Vec<Digest> {
        self.0.iter().map(|asked| key(inputs, asked, target)).collect()
    }
}

/// The lists that were used since the process started, by inputs.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<Digest, Lists>);

impl Known {
    pub(crate) fn get(&self, inputs: &Digest) -> Option<&Lists> {
        self.0.get(inputs)
    }

    pub(crate) fn insert(&mut self, inputs: Digest, lists: Lists) {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&inputs) {
            self.0.clear();
        }
        self.0.insert(inputs, lists);
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Fact;

    use super::*;

    fn facts(kind: &str) -> RecordedFacts {
        [Fact::Serves { api_version: "v1".into(), kind: kind.into() }].into_iter().collect()
    }

    #[test]
    fn lists_are_bounded_and_round_trip() {
        let mut lists = Lists::default();
        for number in 0..20 {
            assert!(lists.put(&facts(&format!("K{number}"))));
        }
        assert!(!lists.put(&facts("K19")) && lists.put(&facts("K18")));
        assert_eq!((lists.0.len(), &lists.0[0], &lists.0[1]), (LISTS, &facts("K18"), &facts("K19")));
        assert_eq!(Lists::decode(&lists.encode().unwrap()), Some(lists));
        for damaged in [&b""[..], b"chandler questions 1\n{", b"chandler release 2\n[]"] {
            assert_eq!(Lists::decode(damaged), None);
        }
    }

    #[test]
    fn the_lists_in_memory_are_bounded() {
        let mut known = Known::default();
        for number in 0..3 * REMEMBERED {
            known.insert(Digest::of(&number.to_be_bytes()), Lists::default());
            assert!(known.0.len() <= REMEMBERED);
        }
    }
}
