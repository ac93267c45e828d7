//! What was asked about targets when releases were made of the same inputs.
//!
//! A release is a function of its inputs (content, component and configuration) and of the answers that its provisioner got.
//! Which answers matter is known only after it was made. So under the inputs lists of questions are kept, and a release under
//! the inputs together with the answers to such a list.
//!
//! ```text
//! chandler questions 1 LF
//! JSON: the lists, the one used last first
//! ```

use std::collections::HashMap;

use chandler_core::{Digest, Questions, Target};

/// Names the format.
const MAGIC: &[u8] = b"chandler questions 1\n";
/// How many lists are kept for the same inputs. A provisioner that always asks the same has one.
const LISTS: usize = 8;
/// For how many inputs the lists are remembered.
const REMEMBERED: usize = 4096;

/// The digest under which a release is kept that was made of these inputs for a target that was asked these questions.
pub(crate) fn key(inputs: &Digest, asked: &Questions, target: &Target) -> Digest {
    Digest::of_json(&(inputs, asked.answered(target)))
}

/// Lists of questions, the one used last first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists(Vec<Questions>);

impl Lists {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes.strip_prefix(MAGIC)?).ok().map(Self)
    }

    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        serde_json::to_writer(&mut bytes, &self.0).ok()?;
        Some(bytes)
    }

    /// Puts a list in front; whether that changed anything.
    pub(crate) fn put(&mut self, asked: &Questions) -> bool {
        if self.0.first() == Some(asked) {
            return false;
        }
        self.0.retain(|known| known != asked);
        self.0.insert(0, asked.clone());
        self.0.truncate(LISTS);
        true
    }

    /// The digests under which a release for this target may be kept.
    pub(crate) fn keys(&self, inputs: &Digest, target: &Target) -> Vec<Digest> {
        self.0.iter().map(|asked| key(inputs, asked, target)).collect()
    }
}

/// The lists of the inputs that were used since the process began, by inputs.
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
    use chandler_core::Question;

    use super::*;

    fn asked(kind: &str) -> Questions {
        [Question::Serves { api_version: "v1".into(), kind: kind.into() }].into_iter().collect()
    }

    #[test]
    fn lists_are_few_and_come_back_as_they_were() {
        let mut lists = Lists::default();
        for number in 0..20 {
            assert!(lists.put(&asked(&format!("K{number}"))));
        }
        assert!(!lists.put(&asked("K19")) && lists.put(&asked("K18")));
        assert_eq!((lists.0.len(), &lists.0[0], &lists.0[1]), (LISTS, &asked("K18"), &asked("K19")));
        assert_eq!(Lists::decode(&lists.encode().unwrap()), Some(lists));
        for damaged in [&b""[..], b"chandler questions 1\n{", b"chandler release 2\n[]"] {
            assert_eq!(Lists::decode(damaged), None);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = Known::default();
        for number in 0..3 * REMEMBERED {
            known.insert(Digest::of(&number.to_be_bytes()), Lists::default());
            assert!(known.0.len() <= REMEMBERED);
        }
    }
}
