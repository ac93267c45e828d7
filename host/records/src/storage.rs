//! What the Secrets with the records and releases of each tenant take, and the limit on their sum. Pure.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::state::State;

/// The limit on the Secrets of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimit {
    /// The bytes of all of its records and releases. A revision whose release would exceed that does not begin.
    pub bytes: u64,
    /// Whether each ServiceAccount is a tenant, since only administrators create accounts. Otherwise all accounts of a namespace are one.
    pub by_account: bool,
}

/// What each record and its releases take.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    limit: Option<StorageLimit>,
    used: Mutex<HashMap<String, Used>>,
}

/// What the Secrets for one BundleDeployment take, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Used {
    /// `None` for what is installed with the permissions of the controller: its authors are administrators.
    tenant: Option<String>,
    record: u64,
    releases: u64,
    /// For a release that is about to be stored.
    reserved: u64,
}

impl Used {
    fn sum(&self) -> u64 {
        self.record.saturating_add(self.releases).saturating_add(self.reserved)
    }
}

/// A release does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) tenant: String,
    pub(crate) limit: u64,
    /// How much would fit.
    pub(crate) left: u64,
}

impl Storage {
    /// With a limit for each tenant.
    pub(crate) fn new(limit: StorageLimit) -> Self {
        Self { limit: Some(limit), used: Mutex::default() }
    }

    /// Notes what a record has stored.
    pub(crate) fn note(&self, state: &State) {
        let mut used = self.used.lock();
        let entry = used.entry(state.name.clone()).or_default();
        entry.tenant = self.tenant(state);
        entry.releases = state.stored_bytes();
    }

    /// Notes the size of the Secret of a record.
    pub(crate) fn note_record(&self, name: &str, bytes: usize) {
        self.used.lock().entry(name.to_owned()).or_default().record = u64::try_from(bytes).unwrap_or(u64::MAX);
    }

    /// Forgets a record that was deleted.
    pub(crate) fn forget(&self, name: &str) {
        self.used.lock().remove(name);
    }

    /// Gives up what was reserved for this record, and not stored.
    pub(crate) fn release(&self, name: &str) {
        if let Some(used) = self.used.lock().get_mut(name) {
            used.reserved = 0;
        }
    }

    /// Reserves so many bytes for a release of this record, instead of what it had reserved before.
    pub(crate) fn reserve(&self, state: &State, bytes: u64) -> Result<(), Full> {
        let (Some(limit), Some(tenant)) = (self.limit, self.tenant(state)) else { return Ok(()) };
        let mut used = self.used.lock();
        let others = used.iter().filter(|(name, _)| **name != state.name).map(|(_, used)| used);
        let others = others.filter(|used| used.tenant.as_ref() == Some(&tenant)).map(Used::sum);
        let others = others.fold(0, u64::saturating_add);
        let own = used.entry(state.name.clone()).or_default();
        *own = Used { tenant: Some(tenant.clone()), releases: state.stored_bytes(), reserved: 0, ..own.clone() };
        let left = limit.bytes.saturating_sub(others.saturating_add(own.sum()));
        if bytes > left {
            return Err(Full { tenant, limit: limit.bytes, left });
        }
        own.reserved = bytes;
        Ok(())
    }

    /// Who shares a limit with this record.
    fn tenant(&self, state: &State) -> Option<String> {
        let account = state.account.as_deref()?;
        let by_account = self.limit.is_some_and(|limit| limit.by_account);
        let (namespace, _) = account.split_once('/').filter(|_| !by_account).unwrap_or((account, ""));
        Some(namespace.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{Outcome, Revision};
    use chandler_core::Digest;
    use chandler_rollout::{Holdings, Seal};

    use super::*;
    use crate::release_store::Stored;

    const LIMIT: StorageLimit = StorageLimit { bytes: 1000, by_account: false };

    /// A record whose one release has so many bytes.
    fn state(name: &str, account: Option<&str>, bytes: u64) -> State {
        let digest = Digest::of(name.as_bytes());
        let mut state = State::new(name, Holdings::new("u", Seal::new([0; 32])));
        state.account = account.map(str::to_owned);
        let release_digest = digest.to_string();
        state.history = vec![Revision { release_digest, outcome: Outcome::Succeeded, ..Revision::default() }];
        state.stored(digest, Stored { parts: 1, bytes: Some(bytes) });
        state
    }

    #[test]
    fn the_records_and_releases_of_a_namespace_share_a_limit() {
        let storage = Storage::new(LIMIT);
        storage.note(&state("a", Some("n/one"), 300));
        storage.note_record("a", 100);
        storage.note(&state("b", Some("n/two"), 300));
        let (own, other) = (state("c", Some("n/two"), 50), state("d", Some("other/one"), 0));
        assert_eq!(storage.reserve(&own, 251), Err(Full { tenant: "n".to_owned(), limit: 1000, left: 250 }));
        assert_eq!(storage.reserve(&own, 250), Ok(()));
        assert_eq!(storage.reserve(&own, 250), Ok(()), "instead of what it had");
        assert!(storage.reserve(&state("e", Some("n/one"), 0), 1).is_err(), "what is about to be stored counts");
        storage.release("c");
        assert_eq!(storage.reserve(&state("e", Some("n/one"), 0), 1), Ok(()));
        assert_eq!(storage.reserve(&other, 1000), Ok(()), "another namespace");
        // A release that is gone makes room.
        storage.forget("a");
        assert_eq!(storage.reserve(&own, 649), Ok(()));
        // Administrators, and installations without a limit.
        assert_eq!(storage.reserve(&state("f", None, 0), u64::MAX), Ok(()));
        assert_eq!(Storage::default().reserve(&own, u64::MAX), Ok(()));
    }

    #[test]
    fn where_administrators_create_the_accounts_each_has_the_limit() {
        let storage = Storage::new(StorageLimit { by_account: true, ..LIMIT });
        storage.note(&state("a", Some("n/one"), 900));
        assert_eq!(storage.reserve(&state("b", Some("n/two"), 0), 1000), Ok(()));
        assert!(storage.reserve(&state("c", Some("n/one"), 0), 101).is_err());
    }

    #[test]
    fn releases_of_unknown_size_count_by_their_full_secrets() {
        let mut state = state("a", Some("n/one"), 10);
        state.stored(Digest::of(b"earlier"), Stored { parts: 3, bytes: None });
        assert_eq!(state.stored_bytes(), 2_000_010);
    }
}
