//! The content of a record. Pure.

use std::collections::BTreeMap;

use chandler_api::Revision;
use chandler_core::Digest;
use chandler_rollout::Holdings;
use serde::{Deserialize, Serialize};

use crate::release_store::{PART_BYTES, Stored};

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The name of the BundleDeployment.
    pub name: String,
    /// The ServiceAccount on whose behalf it was installed last, as `NAMESPACE/NAME`; none for the permissions of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The cluster that holds its objects, by the UID of the namespace kube-system; none for the cluster of the BundleDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The objects that it created or adopted.
    pub holdings: Holdings,
    /// Its revisions, oldest first.
    #[serde(default)]
    pub history: Vec<Revision>,
    /// The stored releases, with the number of Secrets of each.
    #[serde(default)]
    pub releases: BTreeMap<Digest, usize>,
    /// The bytes of the stored releases; of those that an earlier version stored, they are unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<Digest, u64>,
}

impl State {
    /// The state of a BundleDeployment without a history.
    pub fn new(name: impl Into<String>, holdings: Holdings) -> Self {
        Self {
            name: name.into(),
            account: None,
            target: None,
            holdings,
            history: Vec::new(),
            releases: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    /// The number of the newest revision; 0 if there is none.
    pub(crate) fn revision(&self) -> u64 {
        newest(&self.history)
    }

    /// The releases that must stay stored: the current revision's, and the last one that succeeded.
    pub(crate) fn needed(&self) -> Vec<Digest> {
        let succeeded = |revision: &&Revision| revision.outcome == chandler_api::Outcome::Succeeded;
        let newest = [self.history.last(), self.history.iter().rfind(succeeded)];
        newest.into_iter().flatten().filter_map(|revision| revision.release_digest.parse().ok()).collect()
    }

    /// Notes that a release is stored.
    pub(crate) fn stored(&mut self, digest: Digest, Stored { parts, bytes }: Stored) {
        if let Some(bytes) = bytes {
            self.sizes.insert(digest.clone(), bytes);
        }
        self.releases.insert(digest, parts);
    }

    /// Keeps only the stored releases for which this holds.
    pub(crate) fn retain_releases(&mut self, keeps: impl Fn(&Digest) -> bool) {
        self.releases.retain(|digest, _| keeps(digest));
        self.sizes.retain(|digest, _| keeps(digest));
    }

    /// The bytes of the stored releases. Where a size is unknown, all Secrets but the last one are full.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let bytes = self.releases.iter().map(|(digest, parts)| {
            let full = u64::try_from(parts.saturating_sub(1).saturating_mul(PART_BYTES)).unwrap_or(u64::MAX);
            self.sizes.get(digest).copied().unwrap_or(full)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// Whether a release need not be stored any longer.
    pub(crate) fn is_surplus(&self, digest: &Digest) -> bool {
        !self.needed().contains(digest)
    }

    /// The stored releases that are no longer needed.
    pub(crate) fn surplus(&self) -> Vec<(Digest, usize)> {
        let surplus = self.releases.iter().filter(|(digest, _)| self.is_surplus(digest));
        surplus.map(|(digest, parts)| (digest.clone(), *parts)).collect()
    }
}

/// The number of the newest of these revisions; 0 if there is none.
pub(crate) fn newest(history: &[Revision]) -> u64 {
    history.last().and_then(|revision| u64::try_from(revision.number).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use chandler_api::Outcome;
    use chandler_rollout::Seal;

    use super::*;

    #[test]
    fn the_current_and_the_last_successful_release_are_kept() {
        let digest = |name: &str| Digest::of(name.as_bytes());
        let revision =
            |name: &str, outcome| Revision { release_digest: digest(name).to_string(), outcome, ..Revision::default() };
        let mut state = State::new("a", Holdings::new("u", Seal::new([0; 32])));
        for name in ["a", "b", "c", "d"] {
            state.releases.insert(digest(name), 1);
        }
        assert_eq!(state.surplus().len(), 4);
        state.history = vec![
            revision("a", Outcome::Succeeded),
            revision("b", Outcome::Succeeded),
            revision("c", Outcome::Failed),
            revision("d", Outcome::RollingOut),
        ];
        let mut surplus: Vec<Digest> = state.surplus().into_iter().map(|(digest, _)| digest).collect();
        surplus.sort();
        let mut expected = vec![digest("a"), digest("c")];
        expected.sort();
        assert_eq!(surplus, expected);
    }
}
