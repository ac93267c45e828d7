//! How many requests wait for one registry at the same time.
//!
//! A registry that takes its time is waited for by few at once, so that it holds neither sockets nor memory without bound;
//! those of other registries do not wait for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many things are fetched from one registry at once.
const AT_ONCE: usize = 8;

/// Who is at which registry.
#[derive(Default)]
pub(super) struct Crowd(Mutex<HashMap<String, Weak<Semaphore>>>);

impl Crowd {
    /// Waits until there is room at a registry (`host` or `host:port`), and takes it while the value lives.
    pub(super) async fn enter(&self, registry: &str) -> Option<OwnedSemaphorePermit> {
        let room = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A permit keeps the semaphore alive, and so does who waits for one.
            all.retain(|_, room| room.strong_count() > 0);
            let known = all.get(registry).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let room = Arc::new(Semaphore::new(AT_ONCE));
                all.insert(registry.to_owned(), Arc::downgrade(&room));
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
    async fn a_crowd_at_one_registry_keeps_nobody_from_another() {
        let crowd = Crowd::default();
        let mut inside = Vec::new();
        for _ in 0..AT_ONCE {
            inside.push(crowd.enter("slow.example.com").await);
        }
        assert!(crowd.enter("slow.example.com").now_or_never().is_none());
        assert!(crowd.enter("other.example.com").now_or_never().flatten().is_some());
        inside.pop();
        assert!(crowd.enter("slow.example.com").now_or_never().flatten().is_some());
        inside.clear();
        drop(crowd.enter("other.example.com").await);
        assert_eq!(crowd.0.lock().unwrap_or_else(PoisonError::into_inner).len(), 1, "what nobody uses is forgotten");
    }
}
