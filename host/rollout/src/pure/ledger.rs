//! Where the caller keeps what an owner holds.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{FutureExt as _, future::BoxFuture};

use crate::pure::holdings::{Holdings, Intent, Seal, Settlement};

/// Why something could not be noted. Nothing is done that was not noted first.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LedgerError {
    /// What happened, where, and what helps.
    pub message: String,
    /// Whether trying again may help by itself.
    pub transient: bool,
}

/// The record of one owner. Whoever implements it writes it where nobody else can.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// What is known now.
    fn holdings(&self) -> Arc<Holdings>;

    /// Notes what is about to be done: every check has passed, and nothing was written yet. Must have been stored when it is
    /// ready.
    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>>;

    /// Notes what has been done.
    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>>;
}

/// A ledger that is lost with the process, for tests.
#[derive(Debug)]
pub struct InMemory(Mutex<Arc<Holdings>>);

impl InMemory {
    /// That of an owner that holds nothing.
    pub fn new(owner: &str) -> Self {
        Self::with(Holdings::new(owner, Seal::new([1; 32])))
    }

    /// One that begins with these.
    pub fn with(holdings: Holdings) -> Self {
        Self(Mutex::new(Arc::new(holdings)))
    }

    fn change(&self, change: impl FnOnce(&Holdings) -> Holdings) {
        let mut holdings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *holdings = Arc::new(change(&holdings));
    }
}

impl Ledger for InMemory {
    fn holdings(&self) -> Arc<Holdings> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
