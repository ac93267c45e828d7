//! A cursor over the change log.

use crate::store::{Compacted, Event, Scope, Store, state::Changed};

/// Events after the last batch, in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The events; empty when only the revision moved on.
    pub events: Vec<Event>,
    /// All events of the scope up to this revision have been delivered.
    pub revision: u64,
}

/// Delivers every change of a scope once and in order, however slowly it is read.
///
/// A reader that falls behind the history gets [`Compacted`] and has to list again.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    scope: Scope,
    after: u64,
    changed: Changed,
    /// How often the store had been restored when it began.
    restorations: u64,
}

impl Watch {
    /// The most events in a batch: bounds the time under the lock and the memory of a slow reader.
    const BATCH: usize = 256;

    pub(crate) fn new(store: Store, scope: Scope, after: u64, changed: Changed, restorations: u64) -> Self {
        Self { store, scope, after, changed, restorations }
    }

    /// The events since the last batch, without waiting.
    ///
    /// # Errors
    /// When the reader has fallen behind the history.
    pub fn ready(&mut self) -> Result<Batch, Compacted> {
        self.changed.mark_unchanged();
        let batch = self.store.batch(&self.scope, self.after, Self::BATCH, self.restorations)?;
        self.after = self.after.max(batch.revision);
        Ok(batch)
    }

    /// Whether something has happened since the last batch. Costs next to nothing.
    pub fn is_behind(&self) -> bool {
        self.changed.has_changed().unwrap_or(true)
    }

    /// Waits for at least one event. Cancelling loses nothing.
    ///
    /// # Errors
    /// When the reader has fallen behind the history.
    pub async fn next(&mut self) -> Result<Batch, Compacted> {
        loop {
            let batch = self.ready()?;
            if !batch.events.is_empty() {
                return Ok(batch);
            }
            if self.changed.changed().await.is_err() {
                // The store is held by this watch, so its sender lives; should it not, nothing will happen any more.
                std::future::pending::<()>().await;
            }
        }
    }
}
