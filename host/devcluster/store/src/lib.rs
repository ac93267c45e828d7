//! A multi-version store in memory: what etcd and the watch cache are to kube-apiserver.
//!
//! Every write gets the next revision. Superseded versions and the change log are kept for a window, so that a list can be
//! taken at a past revision and a watch can start there; beyond the window both answer [`Compacted`]. Nothing in here
//! knows HTTP or Kubernetes, except that the revision is written to `metadata.resourceVersion`.
//!
//! | module | holds |
//! |---|---|
//! | [`object`] | one stored version and its cached JSON |
//! | `state` | the versions and the log, without locks |
//! | [`watch`] | a cursor over the log that waits for changes |

pub mod object;
mod state;
pub mod watch;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch::Receiver;

use self::state::State;
pub use self::{
    object::Object,
    watch::{Batch, Watch},
};

/// Where an object is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The group resource, e.g. `deployments.apps`.
    pub resource: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Names a place.
    pub fn new(resource: Arc<str>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { resource, namespace: namespace.into(), name: name.into() }
    }
}

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The group resource; `None` means every resource.
    pub resource: Option<Arc<str>>,
    /// The namespace; `None` means every namespace.
    pub namespace: Option<String>,
}

impl Scope {
    /// Every object of every resource.
    pub fn everything() -> Self {
        Self { resource: None, namespace: None }
    }

    fn contains(&self, key: &Key) -> bool {
        self.resource.as_ref().is_none_or(|resource| *resource == key.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// What must be true of the stored object for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There is none.
    Absent,
    /// It has this revision.
    Revision(u64),
}

/// The stored object was not as [`Expected`]; nothing was written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the stored object has changed")]
pub struct Mismatch;

/// The revision is older than the history that is kept.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("revision {requested} is older than the history, which begins at {oldest}")]
pub struct Compacted {
    /// The revision asked for.
    pub requested: u64,
    /// The oldest revision that can be asked for.
    pub oldest: u64,
}

/// How a change looks to a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There was no such object before.
    Added,
    /// It replaced an earlier version.
    Modified,
    /// It is gone; the event holds its last state with the revision of the deletion.
    Deleted,
}

/// One entry of the change log.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// Where.
    pub key: Key,
    /// The new state, or the last state of a deleted object.
    pub object: Arc<Object>,
    /// The state before, except for [`Change::Added`].
    pub previous: Option<Arc<Object>>,
}

/// Objects as they were at one revision, ordered by namespace and name.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<(Key, Arc<Object>)>,
    /// The revision.
    pub revision: u64,
}

/// How much history is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Revisions; the history may for a while be twice as long.
    pub revisions: u64,
    /// Approximate bytes of superseded versions.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { revisions: 10_000, bytes: 128 << 20 }
    }
}

/// The store. Clones share the contents.
#[derive(Clone, Debug, Default)]
pub struct Store {
    state: Arc<RwLock<State>>,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self { state: Arc::new(RwLock::new(State::new(limits))) }
    }

    /// The revision of the last write; never zero.
    pub fn revision(&self) -> u64 {
        self.read().revision()
    }

    /// The current object at a place.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.read().get(key)
    }

    /// The objects of a scope at a revision, or now.
    ///
    /// # Errors
    /// When the revision is older than the history. A revision that has not happened yet lists the present.
    pub fn list(&self, scope: &Scope, revision: Option<u64>) -> Result<Listing, Compacted> {
        self.read().list(scope, revision)
    }

    /// The objects of a scope now.
    pub fn list_now(&self, scope: &Scope) -> Listing {
        self.read().list_now(scope)
    }

    /// Writes an object; its `metadata.resourceVersion` becomes the new revision.
    ///
    /// # Errors
    /// When the stored object is not as expected.
    pub fn put(&self, key: Key, expected: Expected, value: Value) -> Result<Arc<Object>, Mismatch> {
        self.write().put(key, expected, value)
    }

    /// Deletes an object that has this revision; the result is its last state, with the revision of the deletion.
    ///
    /// `last` is that state where it differs from what is stored.
    ///
    /// # Errors
    /// When the object is absent or has another revision.
    pub fn delete(&self, key: &Key, revision: u64, last: Option<Value>) -> Result<Arc<Object>, Mismatch> {
        self.write().delete(key, revision, last)
    }

    /// Starts to watch a scope for changes after a revision.
    ///
    /// # Errors
    /// When the revision is older than the history.
    pub fn watch(&self, scope: Scope, after: u64) -> Result<Watch, Compacted> {
        let changed = self.write().subscribe(&scope, after)?;
        Ok(Watch::new(self.clone(), scope, after, changed))
    }

    /// Lists a scope and starts to watch it from there, with nothing between.
    pub fn list_and_watch(&self, scope: Scope) -> (Listing, Watch) {
        let mut state = self.write();
        let listing = state.list_now(&scope);
        let changed = state.subscribe_now(&scope);
        drop(state);
        let after = listing.revision;
        (listing, Watch::new(self.clone(), scope, after, changed))
    }

    /// Forgets the history up to a revision, as etcd's compaction does.
    pub fn compact(&self, revision: u64) {
        self.write().compact(revision);
    }

    fn batch(&self, scope: &Scope, after: u64, limit: usize) -> Result<Batch, Compacted> {
        self.read().batch(scope, after, limit)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells that something in a scope may have changed; the value is a revision.
type Changed = Receiver<u64>;

#[cfg(test)]
mod tests;
