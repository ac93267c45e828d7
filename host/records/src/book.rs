//! The record of one BundleDeployment.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chandler_api::Revision;
use chandler_core::{Digest, Release};
use chandler_rollout::{Holdings, Intent, Ledger, LedgerError, Settlement};
use futures::{FutureExt as _, future::BoxFuture};

use crate::{error::RecordError, kept, records::Secrets, state::State};

/// How often a change is made again to a record that somebody else, another controller, say, has changed meanwhile.
const ATTEMPTS: usize = 3;

/// A revision that begins with the next write to the cluster, if that comes.
pub struct Opening {
    /// The revisions, with the new one.
    pub history: Vec<Revision>,
    /// Its release.
    pub release: Arc<Release>,
    /// What is done once that is recorded, before anything is written to the cluster.
    pub announce: BoxFuture<'static, ()>,
}

/// The record of one BundleDeployment. It is in memory as it is stored, and written before what it is about is done.
pub struct Book {
    secrets: Secrets,
    known: Mutex<Known>,
    /// One write at a time.
    writing: tokio::sync::Mutex<()>,
    opening: Mutex<Option<Opening>>,
}

struct Known {
    state: Arc<State>,
    holdings: Arc<Holdings>,
    /// The version of the Secret; none where there is none.
    version: Option<String>,
    /// Whether something is in memory only: that an object is gone, which is found out again where it is lost.
    is_ahead: bool,
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").field("name", &self.state().name).finish_non_exhaustive()
    }
}

impl Book {
    pub(crate) fn new(secrets: Secrets, state: State, version: Option<String>) -> Self {
        let holdings = Arc::new(state.holdings.clone());
        let known = Known { state: Arc::new(state), holdings, version, is_ahead: false };
        Self { secrets, known: Mutex::new(known), writing: tokio::sync::Mutex::default(), opening: Mutex::default() }
    }

    /// What it says.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.known().state)
    }

    /// Has a revision begin with the next write to the cluster; none where no revision is to begin any more.
    pub fn open_revision(&self, opening: Option<Opening>) {
        *self.opening.lock().unwrap_or_else(PoisonError::into_inner) = opening;
    }

    /// Begins the revision that was to begin with the next write, if there is one.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn begin_revision(&self) -> Result<(), RecordError> {
        self.begin_with(Intent::default()).await
    }

    async fn begin_with(&self, intent: Intent) -> Result<(), RecordError> {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Opening { history, release, announce }) = opening else {
            return self.change(|state| State { holdings: state.holdings.intending(&intent), ..state.clone() }).await;
        };
        let parts = self.keep(&release).await?;
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

    /// Keeps the bytes of a release where they are not kept yet.
    ///
    /// # Errors
    /// They cannot be written.
    pub async fn keep_release(&self, release: &Release) -> Result<(), RecordError> {
        let parts = self.keep(release).await?;
        let digest = release.digest();
        self.change(|state| {
            let mut state = state.clone();
            state.releases.insert(digest.clone(), parts);
            state
        })
        .await
    }

    async fn keep(&self, release: &Release) -> Result<usize, RecordError> {
        let state = self.state();
        match state.releases.get(release.digest()) {
            Some(parts) => Ok(*parts),
            None => kept::keep(&self.secrets, &state.name, state.holdings.owner(), release).await,
        }
    }

    /// Whether the bytes of a release are kept.
    pub fn keeps(&self, digest: &Digest) -> bool {
        self.state().releases.contains_key(digest)
    }

    /// A release whose bytes are kept; none where they are not.
    ///
    /// # Errors
    /// They cannot be read, or are not what they were.
    pub async fn release(&self, digest: &Digest) -> Result<Option<Release>, RecordError> {
        let state = self.state();
        match state.releases.get(digest) {
            Some(parts) => kept::read(&self.secrets, state.holdings.owner(), digest, *parts).await,
            None => Ok(None),
        }
    }

    /// Notes how revisions went, and drops the releases that nobody may need again.
    ///
    /// # Errors
    /// The record cannot be written, or a release not removed.
    pub async fn write_history(&self, history: &[Revision]) -> Result<(), RecordError> {
        self.change(|state| State { history: history.to_vec(), ..state.clone() }).await?;
        let state = self.state();
        let surplus = state.surplus();
        if surplus.is_empty() {
            return Ok(());
        }
        for (digest, parts) in &surplus {
            kept::remove(&self.secrets, state.holdings.owner(), digest, *parts).await?;
        }
        self.change(|state| {
            let mut state = state.clone();
            state.releases.retain(|digest, _| !surplus.iter().any(|(gone, _)| gone == digest));
            state
        })
        .await
    }

    /// Notes that everything was left behind.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn leave_all(&self) -> Result<(), RecordError> {
        self.change(|state| State { holdings: state.holdings.all_orphaned(), ..state.clone() }).await
    }

    /// Removes the releases that are kept under this name, of whichever owner. One is kept before the record says so, and a
    /// controller that died in between left it: what the record names is not all.
    pub(crate) async fn forget_releases(&self) -> Result<(), RecordError> {
        self.secrets.delete_releases(&self.state().name).await?;
        let mut known = self.known();
        let state = State { releases: std::collections::BTreeMap::new(), ..State::clone(&known.state) };
        known.set(state);
        Ok(())
    }

    /// Removes everything but what was left behind.
    pub(crate) async fn close(&self) -> Result<(), RecordError> {
        self.forget_releases().await?;
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

    /// Writes what is in memory.
    pub(crate) async fn write(&self) -> Result<(), RecordError> {
        self.known().is_ahead = true;
        self.change(State::clone).await
    }

    /// Changes what is stored; nothing is written where nothing changes. Where the Secret was changed or removed by somebody
    /// else, the change is made to what is stored now, or to what is known.
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

impl Ledger for Book {
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
