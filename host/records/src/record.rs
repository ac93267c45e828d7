//! The record of one BundleDeployment.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chandler_api::Revision;
use chandler_core::{Digest, Release};
use chandler_rollout::{Holdings, Intent, Ledger, LedgerError, Settlement};
use futures::{FutureExt as _, future::BoxFuture};

use crate::{error::RecordError, records::Secrets, release_store, state::State};

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
}

struct Known {
    state: Arc<State>,
    holdings: Arc<Holdings>,
    /// The resource version of the Secret; none if it does not exist.
    version: Option<String>,
    /// Whether the memory is ahead of the Secret: objects that are gone are recorded with the next write, since their
    /// absence is detected again if that is lost.
    is_ahead: bool,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("name", &self.state().name).finish_non_exhaustive()
    }
}

impl Record {
    pub(crate) fn new(secrets: Secrets, state: State, version: Option<String>) -> Self {
        let holdings = Arc::new(state.holdings.clone());
        let known = Known { state: Arc::new(state), holdings, version, is_ahead: false };
        Self { secrets, known: Mutex::new(known), writing: tokio::sync::Mutex::default(), pending: Mutex::default() }
    }

    /// The content of the record.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.known().state)
    }

    /// Sets the revision that begins with the next write to the cluster, or none.
    pub fn open_revision(&self, pending: Option<PendingRevision>) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = pending;
    }

    /// Begins the pending revision, if there is one.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn begin_revision(&self) -> Result<(), RecordError> {
        self.begin_with(Intent::default()).await
    }

    async fn begin_with(&self, intent: Intent) -> Result<(), RecordError> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(PendingRevision { history, release, announce }) = pending else {
            return self.change(|state| State { holdings: state.holdings.intending(&intent), ..state.clone() }).await;
        };
        let parts = self.store(&release).await?;
        self.change(|state| {
            let mut state =
                State { holdings: state.holdings.intending(&intent), history: history.clone(), ..state.clone() };
            state.releases.insert(release.digest().clone(), parts);
            state
        })
        .await?;
        announce.await;
        Ok(())
    }

    /// Stores a release unless it is stored already.
    ///
    /// # Errors
    /// The release cannot be written.
    pub async fn keep_release(&self, release: &Release) -> Result<(), RecordError> {
        let parts = self.store(release).await?;
        let digest = release.digest();
        self.change(|state| {
            let mut state = state.clone();
            state.releases.insert(digest.clone(), parts);
            state
        })
        .await
    }

    async fn store(&self, release: &Release) -> Result<usize, RecordError> {
        let state = self.state();
        match state.releases.get(release.digest()) {
            Some(parts) => Ok(*parts),
            None => release_store::store(&self.secrets, &state.name, state.holdings.owner(), release).await,
        }
    }

    /// Whether a release is stored.
    pub fn keeps(&self, digest: &Digest) -> bool {
        self.state().releases.contains_key(digest)
    }

    /// Reads a stored release; none if it is not stored.
    ///
    /// # Errors
    /// The release cannot be read, or is corrupt.
    pub async fn release(&self, digest: &Digest) -> Result<Option<Release>, RecordError> {
        let state = self.state();
        match state.releases.get(digest) {
            Some(parts) => release_store::read(&self.secrets, state.holdings.owner(), digest, *parts).await,
            None => Ok(None),
        }
    }

    /// Writes the history and deletes releases that are no longer needed.
    ///
    /// # Errors
    /// The record cannot be written, or a release cannot be deleted.
    pub async fn write_history(&self, history: &[Revision]) -> Result<(), RecordError> {
        self.change(|state| State { history: history.to_vec(), ..state.clone() }).await?;
        let state = self.state();
        let surplus = state.surplus();
        if surplus.is_empty() {
            return Ok(());
        }
        for (digest, parts) in &surplus {
            release_store::delete(&self.secrets, state.holdings.owner(), digest, *parts).await?;
        }
        self.change(|state| {
            let mut state = state.clone();
            state.releases.retain(|digest, _| !surplus.iter().any(|(gone, _)| gone == digest));
            state
        })
        .await
    }

    /// Records that all objects were orphaned.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn leave_all(&self) -> Result<(), RecordError> {
        self.change(|state| State { holdings: state.holdings.all_orphaned(), ..state.clone() }).await
    }

    /// Deletes all releases stored under this name, of any owner. A release is stored before the record refers to it,
    /// so after a crash the record may not refer to all of them.
    pub(crate) async fn delete_releases(&self) -> Result<(), RecordError> {
        self.secrets.delete_releases(&self.state().name).await?;
        let mut known = self.known();
        let state = State { releases: std::collections::BTreeMap::new(), ..State::clone(&known.state) };
        known.set(state);
        Ok(())
    }

    /// Deletes everything except the orphaned objects.
    pub(crate) async fn close(&self) -> Result<(), RecordError> {
        self.delete_releases().await?;
        let state = self.state();
        if state.holdings.has_orphaned() {
            self.known().is_ahead = true;
            return self.change(|state| State { history: Vec::new(), ..state.clone() }).await;
        }
        if self.known().version.is_some() {
            self.secrets.delete_record(&state.name).await?;
        }
        Ok(())
    }

    /// Writes the content in memory.
    pub(crate) async fn write(&self) -> Result<(), RecordError> {
        self.known().is_ahead = true;
        self.change(State::clone).await
    }

    /// Changes the stored record; writes only if something changes. If another client changed or deleted the Secret,
    /// the change is applied to the current record, or to the one in memory.
    async fn change(&self, change: impl Fn(&State) -> State + Send) -> Result<(), RecordError> {
        let _one = self.writing.lock().await;
        for _ in 0..ATTEMPTS {
            let (before, version, is_ahead) = {
                let known = self.known();
                (Arc::clone(&known.state), known.version.clone(), known.is_ahead)
            };
            let after = change(&before);
            if after == *before && version.is_some() && !is_ahead {
                return Ok(());
            }
            if let Some(version) = self.secrets.write(&after, version.as_deref()).await? {
                let mut known = self.known();
                known.set(after);
                (known.version, known.is_ahead) = (Some(version), false);
                return Ok(());
            }
            let stored = self.secrets.record(&before.name).await?;
            let mut known = self.known();
            match stored {
                Some((state, version)) if state.holdings.owner() == before.holdings.owner() => {
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
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn set(&mut self, state: State) {
        self.holdings = Arc::new(state.holdings.clone());
        self.state = Arc::new(state);
    }
}

impl Ledger for Record {
    fn holdings(&self) -> Arc<Holdings> {
        Arc::clone(&self.known().holdings)
    }

    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
        async move { Ok(self.begin_with(intent).await?) }.boxed()
    }

    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
        async move {
            let only_gone = settlement.held.is_empty() && settlement.orphaned.is_empty() && !settlement.complete;
            if only_gone {
                let mut known = self.known();
                let state = State { holdings: known.state.holdings.settled(&settlement), ..State::clone(&known.state) };
                known.set(state);
                known.is_ahead = true;
                return Ok(());
            }
            Ok(self.change(|state| State { holdings: state.holdings.settled(&settlement), ..state.clone() }).await?)
        }
        .boxed()
    }
}
