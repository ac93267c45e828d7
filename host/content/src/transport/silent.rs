//! The servers that did not answer last, and the news that one answers again.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::ServerFailure;

/// The most servers that are remembered: users name them.
const REMEMBERED: usize = 1000;
/// How many returns a receiver may be late.
const BUFFER: usize = 64;

/// The servers that did not answer last, as references write them.
#[derive(Debug)]
pub(crate) struct Silent {
    servers: Mutex<HashSet<String>>,
    returns: broadcast::Sender<String>,
}

impl Default for Silent {
    fn default() -> Self {
        Self { servers: Mutex::default(), returns: broadcast::Sender::new(BUFFER) }
    }
}

impl Silent {
    /// A request to a server failed. An answer that refuses it is none of silence.
    pub(crate) fn failed(&self, server: &str, failure: ServerFailure) {
        if failure.is_silence() {
            let mut servers = self.servers.lock();
            if servers.len() < REMEMBERED {
                servers.insert(server.to_owned());
            }
        }
    }

    /// A server answered.
    pub(crate) fn answered(&self, server: &str) {
        let was_silent = self.servers.lock().remove(server);
        if was_silent {
            // An error means that the request was given up.
            let _ = self.returns.send(server.to_owned());
        }
    }

    /// Receives each server that answers again.
    pub(crate) fn returns(&self) -> broadcast::Receiver<String> {
        self.returns.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_was_silent_returns() {
        let silent = Silent::default();
        let mut returns = silent.returns();
        silent.answered("a");
        silent.failed("b", ServerFailure::NotFound);
        silent.answered("b");
        assert!(returns.try_recv().is_err());
        silent.failed("a", ServerFailure::Network);
        silent.failed("a", ServerFailure::Unavailable);
        silent.answered("b");
        assert!(returns.try_recv().is_err());
        silent.answered("a");
        assert_eq!(returns.try_recv().as_deref(), Ok("a"));
        silent.answered("a");
        assert!(returns.try_recv().is_err(), "it is news only once");
        for number in 0..2 * REMEMBERED {
            silent.failed(&number.to_string(), ServerFailure::Network);
        }
        assert_eq!(silent.servers.lock().len(), REMEMBERED);
    }
}
