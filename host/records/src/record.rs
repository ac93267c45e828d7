//! The record of one BundleDeployment.

use std::{fmt, sync::Arc};

use chandler_api::Revision;
use chandler_core::{Digest, Release};
use chandler_releases::format::to_bytes;
use chandler_rollout::{Holdings, Intent, Ledger, LedgerError, OlderRecord, Settlement};
use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    error::RecordError,
    records::Secrets,
    release_store::{self, Stored},
    state::{State, newest},
    storage::Full,
};

/// How often a change is retried after another client, such as a second controller, has changed the record.
const ATTEMPTS: usize = 3;

/// A revision that begins with the next write to the cluster.
pub struct PendingRevision {
    /// The history including the new revision.
    pub history: Vec<Revision>,
    /// Its release.
    pub release: Arc<Release>,
    /// Runs once the revision is recorded, before anything is written to the cluster.
    pub announce: BoxFuture<'static, ()>,
}

/// The record of one BundleDeployment: cached in memory, and written before the actions that it records are taken.
pub struct Record {
    secrets: Secrets,
    known: Mutex<Known>,
    /// Serializes writes.
    writing: tokio::sync::Mutex<()>,
    pending: Mutex<Option<PendingRevision>>,
    /// The object that shows that this record is older than the cluster.
    refuted: Mutex<Option<OlderRecord>>,
}

struct Known {
    state: Arc<State>,
    holdings: Arc<Holdings>,
    /// The resource version of the Secret, or `None` if it does not exist.
    version: Option<String>,
    ahead: Ahead,
}

/// How far the memory is ahead of the Secret. Whatever is lost in a crash is detected again: an object that is gone by its absence,
/// a created object by its seal and by the intent, which is stored before anything is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ahead {
    /// The Secret holds the same.
    No,
    /// Recorded with the next write: objects that are gone, and a record that is still empty.
    Lazily,
    /// Recorded at the end of the reconcile, with the history: what was settled, and a record that must exist.
    Settled,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("name", &self.state().name).finish_non_exhaustive()
    }
}

impl Record {
    pub(crate) fn new(secrets: Secrets, state: State, version: Option<String>) -> Self {
        secrets.storage.note(&state);
        let holdings = Arc::new(state.holdings.clone());
        let ahead = if version.is_some() { Ahead::No } else { Ahead::Lazily };
        let known = Known { state: Arc::new(state), holdings, version, ahead };
        Self {
            secrets,
            known: Mutex::new(known),
            writing: tokio::sync::Mutex::default(),
            pending: Mutex::default(),
            refuted: Mutex::default(),
        }
    }

    /// Fails if an object in the cluster showed that this record is older: an administrator has to decide what to do. Nothing can be
    /// recorded any more, and so nothing can be written to the cluster.
    ///
    /// # Errors
    /// The record is older than the objects in the cluster.
    pub fn check(&self) -> Result<(), RecordError> {
        let found = self.refuted.lock().clone();
        found.map_or(Ok(()), |found| Err(self.secrets.older(&self.state().name, found)))
    }

    /// The content of the record.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.known().state)
    }

    /// Sets the revision that begins with the next write to the cluster, and reserves room for its release.
    ///
    /// # Errors
    /// [`RecordError::StorageFull`] if the release does not fit beside what else the tenant has stored.
    pub fn open_revision(&self, pending: PendingRevision) -> Result<(), RecordError> {
        self.reserve(&pending.release)?;
        *self.pending.lock() = Some(pending);
        Ok(())
    }

    /// No revision begins with the next write to the cluster.
    pub fn close_revision(&self) {
        self.secrets.storage.release(&self.state().name);
        *self.pending.lock() = None;
    }

    /// Reserves room for a release unless it is stored already. It is encoded only if there is little room.
    fn reserve(&self, release: &Release) -> Result<(), RecordError> {
        if self.keeps(release.digest()) {
            return Ok(());
        }
        let (state, storage) = (self.state(), &self.secrets.storage);
        let bytes = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let reserved = match storage.reserve(&state, bytes(release.memory())) {
            Err(full) if full.left > 0 => storage.reserve(&state, bytes(to_bytes(release)?.len())),
            reserved => reserved,
        };
        reserved.map_err(|Full { tenant, limit, .. }| RecordError::StorageFull {
            owner: state.name.clone(),
            tenant,
            limit,
        })
    }

    /// Begins the pending revision, if there is one.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn begin_revision(&self) -> Result<(), RecordError> {
        match self.take_pending() {
            Some(pending) => self.begin_with(pending, Intent::default()).await,
            None => Ok(()),
        }
    }

    fn take_pending(&self) -> Option<PendingRevision> {
        self.pending.lock().take()
    }

    async fn begin_with(&self, pending: PendingRevision, intent: Intent) -> Result<(), RecordError> {
        let PendingRevision { history, release, announce } = pending;
        let stored = self.store(&release).await?;
        self.change(|state| {
            let mut state =
                State { holdings: state.holdings.intending(&intent), history: history.clone(), ..state.clone() };
            state.stored(release.digest().clone(), stored);
            state
        })
        .await?;
        self.secrets.storage.release(&self.state().name);
        announce.await;
        Ok(())
    }

    /// Stores a release unless it is stored already.
    ///
    /// # Errors
    /// The release cannot be written.
    pub async fn keep_release(&self, release: &Release) -> Result<(), RecordError> {
        let stored = self.store(release).await?;
        let digest = release.digest();
        self.change(|state| {
            let mut state = state.clone();
            state.stored(digest.clone(), stored);
            state
        })
        .await
    }

    async fn store(&self, release: &Release) -> Result<Stored, RecordError> {
        let (state, digest) = (self.state(), release.digest());
        match state.releases.get(digest) {
            // One that was not needed may be deleted already.
            Some(&parts) if !state.is_surplus(digest) => Ok(Stored { parts, bytes: state.sizes.get(digest).copied() }),
            _ => release_store::store(&self.secrets, &state.name, state.holdings.identity(), release).await,
        }
    }

    /// Whether a release is stored, and stays so.
    pub fn keeps(&self, digest: &Digest) -> bool {
        let state = self.state();
        state.releases.contains_key(digest) && !state.is_surplus(digest)
    }

    /// Reads a stored release. Returns `None` if it is not stored.
    ///
    /// # Errors
    /// The release cannot be read, or is corrupt.
    pub async fn release(&self, digest: &Digest) -> Result<Option<Release>, RecordError> {
        let state = self.state();
        match state.releases.get(digest) {
            Some(parts) => release_store::read(&self.secrets, state.holdings.identity(), digest, *parts).await,
            None => Ok(None),
        }
    }

    /// Writes the history, with everything that was settled before, and deletes releases that are no longer needed.
    ///
    /// # Errors
    /// The record cannot be written, or a release cannot be deleted.
    pub async fn write_history(&self, history: &[Revision]) -> Result<(), RecordError> {
        self.change(|state| State { history: history.to_vec(), ..state.clone() }).await?;
        self.delete_surplus().await
    }

    /// Writes what was settled, and a record that must exist, unless a later write has done so.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn flush(&self) -> Result<(), RecordError> {
        if self.known().ahead == Ahead::Settled { self.change(State::clone).await } else { Ok(()) }
    }

    /// Deletes releases that are no longer needed. The next write of the record reports it, and until then they count as deleted.
    async fn delete_surplus(&self) -> Result<(), RecordError> {
        let state = self.state();
        let surplus = state.surplus();
        for (digest, parts) in &surplus {
            release_store::delete(&self.secrets, state.holdings.identity(), digest, *parts).await?;
        }
        if !surplus.is_empty() {
            let _one = self.writing.lock().await;
            let mut known = self.known();
            let mut state = State::clone(&known.state);
            state.retain_releases(|digest| !surplus.iter().any(|(gone, _)| gone == digest));
            self.secrets.storage.note(&state);
            known.set(state);
            known.lag(Ahead::Lazily);
        }
        Ok(())
    }

    /// Records that all objects were orphaned.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn leave_all(&self) -> Result<(), RecordError> {
        // All objects stay, so that even a record that is older than the objects does no harm.
        *self.refuted.lock() = None;
        if !self.is_stored() && self.state().holdings.is_empty() {
            return Ok(());
        }
        self.change(|state| State { holdings: state.holdings.all_orphaned(), ..state.clone() }).await
    }

    /// Deletes all releases stored under this name, of any owner. A release is stored before the record refers to it,
    /// so after a crash the record may not refer to all of them.
    pub(crate) async fn delete_releases(&self) -> Result<(), RecordError> {
        self.secrets.delete_releases(&self.state().name).await?;
        let mut known = self.known();
        let mut state = State::clone(&known.state);
        state.retain_releases(|_| false);
        self.secrets.storage.note(&state);
        known.set(state);
        known.lag(Ahead::Lazily);
        Ok(())
    }

    /// Deletes everything except the orphaned objects.
    pub(crate) async fn close(&self) -> Result<(), RecordError> {
        self.delete_releases().await?;
        let state = self.state();
        if state.holdings.has_orphaned() {
            self.known().lag(Ahead::Lazily);
            return self.change(|state| State { history: Vec::new(), ..state.clone() }).await;
        }
        if self.known().version.is_some() {
            self.secrets.delete_record(&state.name).await?;
        }
        self.secrets.storage.forget(&state.name);
        Ok(())
    }

    /// Requests that the end of the reconcile creates the Secret if there is none: without it, the status would decide whether a record was
    /// lost.
    pub(crate) fn require(&self) {
        let mut known = self.known();
        if known.version.is_none() {
            known.lag(Ahead::Settled);
        }
    }

    /// Records the ServiceAccount, with the end of the reconcile.
    pub(crate) fn note_account(&self, account: Option<&str>) {
        let mut known = self.known();
        if known.state.account.as_deref() != account {
            let state = State { account: account.map(str::to_owned), ..State::clone(&known.state) };
            self.secrets.storage.note(&state);
            known.set(state);
            // Without a Secret, the first write has it.
            if known.version.is_some() {
                known.lag(Ahead::Settled);
            }
        }
    }

    /// Records the cluster that gets the objects, before anything is written there: a record that is not stored is stored with its first
    /// intent.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn note_target(&self, target: &str) -> Result<(), RecordError> {
        let noted = |state: &State| State { target: Some(target.to_owned()), ..state.clone() };
        if self.state().target.as_deref() == Some(target) {
            return Ok(());
        }
        if self.is_stored() {
            return self.change(noted).await;
        }
        let mut known = self.known();
        let state = noted(&known.state);
        known.set(state);
        Ok(())
    }

    /// Whether its Secret exists.
    pub fn is_stored(&self) -> bool {
        self.known().version.is_some()
    }

    /// Writes the content in memory.
    pub(crate) async fn write(&self) -> Result<(), RecordError> {
        self.known().lag(Ahead::Lazily);
        self.change(State::clone).await
    }

    /// Changes the stored record; writes only if something changes. If another client changed or deleted the Secret,
    /// the change is applied to the current record, or to the one in memory if the Secret is gone or lacks revisions.
    async fn change(&self, change: impl Fn(&State) -> State + Send) -> Result<(), RecordError> {
        let _one = self.writing.lock().await;
        self.check()?;
        for _ in 0..ATTEMPTS {
            let (before, version, ahead) = {
                let known = self.known();
                (Arc::clone(&known.state), known.version.clone(), known.ahead)
            };
            let after = change(&before);
            if after == *before && version.is_some() && ahead == Ahead::No {
                return Ok(());
            }
            if let Some(version) = self.secrets.write(&after, version.as_deref()).await? {
                self.secrets.storage.note(&after);
                let mut known = self.known();
                known.set(after);
                (known.version, known.ahead) = (Some(version), Ahead::No);
                return Ok(());
            }
            let stored = self.secrets.record(&before.name).await?;
            let mut known = self.known();
            match stored {
                // A Secret that lacks revisions was restored from a backup: the memory knows more.
                Some((state, version))
                    if state.holdings.owner() == before.holdings.owner() && state.revision() >= before.revision() =>
                {
                    known.set(state);
                    known.version = Some(version);
                }
                Some((_, version)) => known.version = Some(version),
                None => known.version = None,
            }
        }
        Err(self.secrets.contended(&self.state().name))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Known {
    /// Notes that the memory is at least this far ahead.
    fn lag(&mut self, ahead: Ahead) {
        self.ahead = self.ahead.max(ahead);
    }

    fn set(&mut self, state: State) {
        self.holdings = Arc::new(state.holdings.clone());
        self.state = Arc::new(state);
    }
}

impl Ledger for Record {
    fn holdings(&self) -> Arc<Holdings> {
        Arc::clone(&self.known().holdings)
    }

    fn recorded_revision(&self) -> u64 {
        self.known().state.revision()
    }

    fn written_revision(&self) -> u64 {
        let pending = self.pending.lock();
        let pending = pending.as_ref().map(|pending| newest(&pending.history));
        pending.unwrap_or_default().max(self.recorded_revision())
    }

    fn refute(&self, found: &OlderRecord) {
        *self.refuted.lock() = Some(found.clone());
    }

    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
        async move {
            if let Some(pending) = self.take_pending() {
                return Ok(self.begin_with(pending, intent).await?);
            }
            // An intent is stored before it is in memory, so one that is known already needs no write.
            let state = self.state();
            let is_behind = intent.again && self.known().ahead == Ahead::Settled;
            if self.is_stored() && !is_behind && state.holdings.intending(&intent) == state.holdings {
                return Ok(());
            }
            let begun = |state: &State| State { holdings: state.holdings.intending(&intent), ..state.clone() };
            Ok(self.change(begun).await?)
        }
        .boxed()
    }

    /// Stored at the end of the reconcile ([`Record::flush`], [`Record::write_history`]), or with the next write. Orphaned objects
    /// are stored at once: they have lost the marks by which a created object is recognized.
    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
        async move {
            let settled = |state: &State| State { holdings: state.holdings.settled(&settlement), ..state.clone() };
            if !settlement.orphaned.is_empty() {
                return Ok(self.change(settled).await?);
            }
            let only_gone = settlement.held.is_empty() && !settlement.complete;
            let _one = self.writing.lock().await;
            let mut known = self.known();
            let state = settled(&known.state);
            known.set(state);
            known.lag(if only_gone { Ahead::Lazily } else { Ahead::Settled });
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
