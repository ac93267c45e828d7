//! The store, shared.

use std::{fs::File, path::Path, sync::Arc};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;

use crate::store::{
    Batch, Compacted, Expected, Failure, Key, Limits, Listing, Mismatch, Object, OpenError, Page, PageRequest,
    Recovered, Scope, Watch,
    disk::{Database, Disk, Journal},
    state::{Committed, Restored, Snapshot, State},
};

/// The store. Clones share the contents.
#[derive(Clone, Debug, Default)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: RwLock<State>,
    /// Where writes go to be kept; `None` in memory.
    journal: Option<Journal>,
    recovered: Option<Recovered>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: RwLock::new(State::new(Limits::default())), journal: None, recovered: None }
    }
}

impl Store {
    /// An empty store in memory.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { state: RwLock::new(State::new(limits)), journal: None, recovered: None }))
    }

    /// A store in a file.
    pub(crate) fn open(path: &Path, file: File, limits: Limits) -> Result<Self, OpenError> {
        let database = Database::open(path, file)?;
        let restored = database.load()?;
        Self::restore(Box::new(database), restored, limits)
    }

    pub(crate) fn restore(disk: Box<dyn Disk>, mut restored: Restored, limits: Limits) -> Result<Self, OpenError> {
        let path = disk.path().to_owned();
        let journal = Journal::start(disk, restored.revision).map_err(|source| OpenError::Io { path, source })?;
        let recovered = restored.recovered.take();
        let state = RwLock::new(State::restore(limits, restored));
        Ok(Self(Arc::new(Shared { state, journal: Some(journal), recovered })))
    }

    /// The recovered state, if the store was not closed cleanly.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.0.recovered.as_ref()
    }

    /// The revision of the last write; never zero.
    pub fn revision(&self) -> u64 {
        self.read().revision()
    }

    /// The current object at a place.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.read().get(key).map(|version| Arc::clone(&version.object))
    }

    /// The objects of a scope at a revision, or now.
    ///
    /// # Errors
    /// When the revision is older than the history. A revision that has not happened yet lists the current state.
    pub fn list(&self, scope: &Scope, revision: Option<u64>) -> Result<Listing, Compacted> {
        self.read().list(scope, revision)
    }

    /// The objects of a scope now.
    pub fn list_now(&self, scope: &Scope) -> Listing {
        self.read().list_now(scope)
    }

    /// A part of the objects of a resource, in one namespace or in all: pages at one revision are of one snapshot.
    ///
    /// # Errors
    /// When the revision is older than the history.
    pub fn page(
        &self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        request: PageRequest<'_>,
    ) -> Result<Page, Compacted> {
        self.read().page(resource, namespace, request)
    }

    /// Writes an object; its `metadata.resourceVersion` becomes the new revision.
    ///
    /// # Errors
    /// When the stored object is not as expected.
    pub fn put(&self, key: Key, expected: Expected, value: Value) -> Result<Arc<Object>, Mismatch> {
        self.commit(|state| state.put(key, expected, value, None))
    }

    /// Writes an object that is deleted by the first [`expire`](Self::expire) at or after a time, in seconds since 1970, unless
    /// it is written again before.
    ///
    /// # Errors
    /// When the stored object is not as expected.
    pub fn put_until(&self, key: Key, expected: Expected, value: Value, expires: i64) -> Result<Arc<Object>, Mismatch> {
        self.commit(|state| state.put(key, expected, value, Some(expires)))
    }

    /// Deletes an object that has this revision; the result is its last state, with the revision of the deletion.
    ///
    /// `last` is that state if it differs from the stored object.
    ///
    /// # Errors
    /// When the object is absent or has another revision.
    pub fn delete(&self, key: &Key, revision: u64, last: Option<Value>) -> Result<Arc<Object>, Mismatch> {
        self.commit(|state| state.delete(key, revision, last))
    }

    /// Deletes what was to be deleted by a time, in seconds since 1970; returns how many objects that were.
    pub fn expire(&self, now: i64) -> usize {
        let expired = self.read().expired(now);
        // Objects that were written again in between stay.
        expired.into_iter().filter(|(key, revision)| self.delete(key, *revision, None).is_ok()).count()
    }

    /// When [`expire`](Self::expire) deletes the next object, in seconds since 1970.
    pub fn next_expiry(&self) -> Option<i64> {
        self.read().next_expiry()
    }

    /// Starts to watch a scope for changes after a revision.
    ///
    /// # Errors
    /// When the revision is older than the history.
    pub fn watch(&self, scope: Scope, after: u64) -> Result<Watch, Compacted> {
        let mut state = self.write();
        let (changed, restorations) = (state.subscribe(&scope, after)?, state.restorations());
        drop(state);
        Ok(Watch::new(self.clone(), scope, after, changed, restorations))
    }

    /// Lists a scope and starts to watch it from there, with nothing between.
    pub fn list_and_watch(&self, scope: Scope) -> (Listing, Watch) {
        let mut state = self.write();
        let listing = state.list_now(&scope);
        let (changed, restorations) = (state.subscribe_now(&scope), state.restorations());
        drop(state);
        let after = listing.revision;
        (listing, Watch::new(self.clone(), scope, after, changed, restorations))
    }

    /// The current objects and revision.
    pub fn snapshot(&self) -> Snapshot {
        self.read().snapshot()
    }

    /// Takes the state of an earlier snapshot, as etcd does that is restored from one: later writes are lost, and their revisions are
    /// given again. Watches from before end with [`Compacted`]; a new watch from a revision after the snapshot's is silent until the
    /// store gets there. Returns false, and changes nothing, if the store is in a file: restore a copy of the file instead.
    pub fn rewind(&self, snapshot: &Snapshot) -> bool {
        if self.0.journal.is_none() {
            self.write().rewind(snapshot);
        }
        self.0.journal.is_none()
    }

    /// Forgets the history up to a revision, as etcd's compaction does.
    pub fn compact(&self, revision: u64) {
        self.write().compact(revision);
    }

    /// Waits until a revision is on disk. In memory there is nothing to wait for.
    ///
    /// # Errors
    /// When it will not come there.
    pub async fn durable(&self, revision: u64) -> Result<(), Arc<Failure>> {
        let Some(journal) = &self.0.journal else { return Ok(()) };
        if journal.durable() >= revision {
            return Ok(());
        }
        let mut progress = journal.progress();
        let reached = progress.wait_for(|progress| progress.durable >= revision || progress.failure.is_some()).await;
        match reached.map(|progress| (progress.durable, progress.failure.clone())) {
            Ok((durable, _)) if durable >= revision => Ok(()),
            Ok((_, Some(failure))) => Err(failure),
            // The sender lives as long as the journal, and a failure is what else is waited for.
            Ok((_, None)) | Err(_) => std::future::pending().await,
        }
    }

    /// Why writes do not reach the disk any more.
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.0.journal.as_ref()?.failure()
    }

    /// Writes everything to disk and closes the file; later writes are not persisted. Blocks until it is done.
    pub fn close(&self) {
        if let Some(journal) = &self.0.journal {
            journal.close();
        }
    }

    /// The events after a revision, for a watch that began after so many restorations.
    pub(crate) fn batch(&self, scope: &Scope, after: u64, limit: usize, restorations: u64) -> Result<Batch, Compacted> {
        let visible = self.0.journal.as_ref().map_or(u64::MAX, Journal::durable);
        let state = self.read();
        if state.restorations() != restorations {
            return Err(Compacted { requested: after, oldest: state.revision() });
        }
        state.batch(scope, after, visible, limit)
    }

    fn commit(&self, write: impl FnOnce(&mut State) -> Result<Committed, Mismatch>) -> Result<Arc<Object>, Mismatch> {
        let mut state = self.write();
        let committed = write(&mut state)?;
        let object = Arc::clone(&committed.version.object);
        if let Some(journal) = &self.0.journal {
            // Under the lock, so that events are in the order of revisions.
            journal.push(committed);
            drop(state);
            journal.throttle();
        } else {
            drop(state);
            committed.notify();
        }
        Ok(object)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        let state = self.0.state.read();
        if !state.has_too_much_parsed() {
            return state;
        }
        drop(state);
        drop(self.write());
        self.0.state.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        let mut state = self.0.state.write();
        if state.has_too_much_parsed() {
            state.drop_parsed();
        }
        state
    }
}
