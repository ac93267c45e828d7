//! The registries that did not answer last, and the news that one answers again.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use tokio::sync::broadcast;

use super::RegistryFailure;

/// The most registries that are remembered: users name them.
const REMEMBERED: usize = 1000;
/// How many returns a receiver may be late.
const BUFFER: usize = 64;

/// The registries that did not answer last, as references write them.
#[derive(Debug)]
pub(super) struct Silent {
    registries: Mutex<HashSet<String>>,
    returns: broadcast::Sender<String>,
}

impl Default for Silent {
    fn default() -> Self {
        Self { registries: Mutex::default(), returns: broadcast::Sender::new(BUFFER) }
    }
}

impl Silent {
    /// A request to a registry failed. An answer that refuses it is none of silence.
    pub(super) fn failed(&self, registry: &str, failure: RegistryFailure) {
        if failure.is_silence() {
            let mut registries = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
            if registries.len() < REMEMBERED {
                registries.insert(registry.to_owned());
            }
        }
    }

    /// A registry answered.
    pub(super) fn answered(&self, registry: &str) {
        let was_silent = self.registries.lock().unwrap_or_else(PoisonError::into_inner).remove(registry);
        if was_silent {
            // An error means that the receiver is gone.
            let _ = self.returns.send(registry.to_owned());
        }
    }

    /// Receives each registry that answers again.
    pub(super) fn returns(&self) -> broadcast::Receiver<String> {
        self.returns.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_registry_that_was_silent_returns() {
        let silent = Silent::default();
        let mut returns = silent.returns();
        silent.answered("a");
        silent.failed("b", RegistryFailure::NotFound);
        silent.answered("b");
        assert!(returns.try_recv().is_err());
        silent.failed("a", RegistryFailure::Network);
        silent.failed("a", RegistryFailure::Unavailable);
        silent.answered("b");
        assert!(returns.try_recv().is_err());
        silent.answered("a");
        assert_eq!(returns.try_recv().as_deref(), Ok("a"));
        silent.answered("a");
        assert!(returns.try_recv().is_err(), "it is news only once");
        for number in 0..2 * REMEMBERED {
            silent.failed(&number.to_string(), RegistryFailure::Network);
        }
        assert_eq!(silent.registries.lock().unwrap().len(), REMEMBERED);
    }
}
