//! The requests and results of the store.

use std::sync::Arc;

use crate::store::{Key, Object};

/// The precondition of a write on the stored object.
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
    /// The requested revision.
    pub requested: u64,
    /// The oldest revision that can be requested.
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
    /// The change.
    pub change: Change,
    /// Where.
    pub key: Key,
    /// The new state, or the last state of a deleted object.
    pub object: Arc<Object>,
    /// The state before, except for [`Change::Added`].
    pub previous: Option<Arc<Object>>,
}

/// Objects as they were at one revision, ordered by resource, namespace and name.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<(Key, Arc<Object>)>,
    /// The revision.
    pub revision: u64,
}

/// Which part of a listing is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRequest<'a> {
    /// The revision to list at; `None` means the current state.
    pub revision: Option<u64>,
    /// Only what comes after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// The most objects; `None` means all.
    pub limit: Option<usize>,
}

/// A part of a listing.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects, as in [`Listing::objects`].
    pub objects: Vec<(Key, Arc<Object>)>,
    /// The revision.
    pub revision: u64,
    /// How many objects come after these.
    pub remaining: usize,
}

/// How much is kept in memory beyond the objects themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Revisions of history; for a while it may be twice as long.
    pub revisions: u64,
    /// Approximate bytes of superseded versions.
    pub bytes: usize,
    /// Approximate bytes of [parsed](Object::value) objects, beyond which they are kept as JSON only.
    pub parsed_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { revisions: 10_000, bytes: 64 << 20, parsed_bytes: 32 << 20 }
    }
}
