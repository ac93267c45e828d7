//! Limits concurrent requests to one server.
//!
//! Few requests wait for a slow server at the same time, so that it cannot hold sockets and memory without bound. Requests to
//! other servers do not wait.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use chandler_registries::normalized;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most concurrent requests to one server.
const AT_ONCE: usize = 8;

/// The running requests by server.
#[derive(Default)]
pub(crate) struct Crowd(Mutex<HashMap<String, Weak<Semaphore>>>);

impl Crowd {
    /// Waits for a free slot at a server (`host` or `host:port`), and holds it while the permit lives.
    pub(crate) async fn enter(&self, server: &str) -> Option<OwnedSemaphorePermit> {
        // Other spellings of its name give no further slots.
        let server = normalized(server);
        let room = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Permits and waiters keep the semaphore alive.
            all.retain(|_, room| room.strong_count() > 0);
            let known = all.get(&server).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let room = Arc::new(Semaphore::new(AT_ONCE));
                all.insert(server, Arc::downgrade(&room));
                room
            })
        };
        // It is never closed.
        room.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn requests_to_one_server_do_not_block_another() {
        let crowd = Crowd::default();
        let mut inside = Vec::new();
        for _ in 0..AT_ONCE {
            inside.push(crowd.enter("slow.example.com").await);
        }
        for spelling in ["slow.example.com", "SLOW.example.com", "slow.example.com:443"] {
            assert!(crowd.enter(spelling).now_or_never().is_none(), "{spelling}");
        }
        assert!(crowd.enter("other.example.com").now_or_never().flatten().is_some());
        inside.pop();
        assert!(crowd.enter("slow.example.com").now_or_never().flatten().is_some());
        inside.clear();
        drop(crowd.enter("other.example.com").await);
        assert_eq!(crowd.0.lock().unwrap_or_else(PoisonError::into_inner).len(), 1, "unused servers are removed");
    }
}
