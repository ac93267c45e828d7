//! Turns: of several callers that want to ask the same question, one asks at a time.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// The requests that are in flight, by key.
pub(crate) struct Turns<K> {
    asked: Mutex<HashMap<K, Arc<Turn<()>>>>,
}

impl<K: Clone + Eq + Hash> Turns<K> {
    pub(crate) fn new() -> Self {
        Self { asked: Mutex::default() }
    }

    /// Waits until no other caller asks about this key. The caller then looks whether the answer is known by now. When the last
    /// caller is gone, so is the entry.
    pub(crate) async fn take<'a>(&'a self, key: &'a K) -> InTurn<'a, K> {
        let turn = Arc::clone(self.asked().entry(key.clone()).or_default());
        let mut taken = InTurn { turns: self, key, turn, guard: None };
        taken.guard = Some(Arc::clone(&taken.turn).lock_owned().await);
        taken
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<K, Arc<Turn<()>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.asked().is_empty()
    }
}

/// A caller that asks, or waits for another one that does.
pub(crate) struct InTurn<'a, K: Clone + Eq + Hash> {
    turns: &'a Turns<K>,
    key: &'a K,
    turn: Arc<Turn<()>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl<K: Clone + Eq + Hash> Drop for InTurn<'_, K> {
    fn drop(&mut self) {
        // The guard refers to the turn too.
        self.guard = None;
        let mut asked = self.turns.asked();
        // The map and this caller.
        if Arc::strong_count(&self.turn) <= 2 {
            asked.remove(self.key);
        }
    }
}
