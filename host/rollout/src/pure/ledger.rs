//! The storage for the record of an owner, provided by the caller.

use std::{fmt, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;

use crate::pure::{
    holdings::{Holdings, Intent, Settlement},
    older_record::OlderRecord,
    seal::Seal,
};

/// The record could not be written. Nothing is done that was not recorded first.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LedgerError {
    /// What happened, where, and how to fix it.
    pub message: String,
    /// Whether a retry may succeed.
    pub transient: bool,
}

/// The record of one owner. An implementation must write it where only the controller can.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// The current record.
    fn holdings(&self) -> Arc<Holdings>;

    /// Records what is about to be done: every check has passed, and nothing was written yet. The record must be stored when
    /// the future completes.
    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>>;

    /// The newest revision that the stored record has. 0 for an owner without revisions.
    fn recorded_revision(&self) -> u64 {
        0
    }

    /// The revision that objects are written for: the one that begins with the next write, or else the newest that is recorded.
    /// [`begin`](Self::begin) records it before any object is written.
    fn written_revision(&self) -> u64 {
        self.recorded_revision()
    }

    /// An object in the cluster shows that the record is older. The implementation must refuse to record anything from then on,
    /// because every decision from this record is wrong.
    fn refute(&self, _found: &OlderRecord) {}

    /// Records what has been done.
    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>>;
}

/// A ledger in memory, for tests.
#[derive(Debug)]
pub struct InMemory(Mutex<Arc<Holdings>>);

impl InMemory {
    /// The ledger of an owner without objects.
    pub fn new(owner: &str) -> Self {
        Self::with(Holdings::new(owner, Seal::new([1; 32])))
    }

    /// A ledger that begins with this record.
    pub fn with(holdings: Holdings) -> Self {
        Self(Mutex::new(Arc::new(holdings)))
    }

    fn change(&self, change: impl FnOnce(&Holdings) -> Holdings) {
        let mut holdings = self.0.lock();
        *holdings = Arc::new(change(&holdings));
    }
}

impl Ledger for InMemory {
    fn holdings(&self) -> Arc<Holdings> {
        Arc::clone(&self.0.lock())
    }

    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
        self.change(|holdings| holdings.intending(&intent));
        async { Ok(()) }.boxed()
    }

    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
        self.change(|holdings| holdings.settled(&settlement));
        async { Ok(()) }.boxed()
    }
}
