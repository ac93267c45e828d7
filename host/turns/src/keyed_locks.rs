//! Locks by key: of several tasks that want to do the same work, one does it at a time.
//!
//! The others then find its result wherever the caller keeps it, so the work is done once (single flight). A lock has no value: results here are
//! on disk or live as long as they are used, and whether they are valid depends on who asks. A cache with single flight, such as moka, would
//! keep a second copy of them.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

/// One lock for each key that a task holds or waits for; no other keys are listed. Tasks get a lock in the order in which they asked for it.
pub struct KeyedLocks<K>(Mutex<HashMap<K, Weak<Lock<()>>>>);

/// Holds the lock of a key until it is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct KeyedGuard<'a, K: Eq + Hash> {
    /// Released before `_user` removes the lock.
    _guard: OwnedMutexGuard<()>,
    _user: User<'a, K>,
}

/// A task that holds the lock or waits for it.
struct User<'a, K: Eq + Hash> {
    locks: &'a KeyedLocks<K>,
    key: K,
    /// `None` only while this is dropped.
    lock: Option<Arc<Lock<()>>>,
}

impl<K: Clone + Eq + Hash> KeyedLocks<K> {
    /// Waits until no other task holds the lock of this key, and holds it.
    ///
    /// A task that stops waiting, or that is cancelled while it holds the lock, leaves it to the next one.
    pub async fn lock(&self, key: &K) -> KeyedGuard<'_, K> {
        let (user, lock) = self.join(key);
        let guard = lock.lock_owned().await;
        KeyedGuard { _guard: guard, _user: user }
    }

    fn join(&self, key: &K) -> (User<'_, K>, Arc<Lock<()>>) {
        let mut locks = self.locks();
        let lock = locks.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::default();
            locks.insert(key.clone(), Arc::downgrade(&lock));
            lock
        });
        (User { locks: self, key: key.clone(), lock: Some(Arc::clone(&lock)) }, lock)
    }
}

impl<K> KeyedLocks<K> {
    /// The number of keys whose lock is held or waited for.
    pub fn len(&self) -> usize {
        self.locks().len()
    }

    /// Whether no lock is held or waited for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<K, Weak<Lock<()>>>> {
        self.0.lock()
    }
}

impl<K> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> fmt::Debug for KeyedLocks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLocks").field("len", &self.len()).finish()
    }
}

impl<K: Eq + Hash> fmt::Debug for KeyedGuard<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGuard").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash> Drop for User<'_, K> {
    fn drop(&mut self) {
        let mut locks = self.locks.locks();
        // Under the lock of the map: of two users that leave at the same time, the second one sees that it is the last.
        self.lock = None;
        if locks.get(&self.key).is_some_and(|lock| lock.strong_count() == 0) {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn one_task_holds_the_lock_of_a_key() {
        let locks = KeyedLocks::default();
        let first = locks.lock(&"a").await;
        let mut second = pin!(locks.lock(&"a"));
        assert!(poll!(&mut second).is_pending());
        assert!(locks.lock(&"b").now_or_never().is_some(), "another key is free");
        drop(first);
        assert!(poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn tasks_get_the_lock_in_order() {
        let locks = KeyedLocks::default();
        let first = locks.lock(&"a").await;
        let mut second = pin!(locks.lock(&"a"));
        let mut third = pin!(locks.lock(&"a"));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        drop(first);
        assert!(poll!(&mut third).is_pending(), "the second asked before");
        drop(second.await);
        assert!(poll!(&mut third).is_ready());
    }

    #[tokio::test]
    async fn a_waiter_that_is_cancelled_leaves_its_place() {
        let locks = KeyedLocks::default();
        let first = locks.lock(&"a").await;
        let mut cancelled = Box::pin(locks.lock(&"a"));
        let mut third = pin!(locks.lock(&"a"));
        assert!(poll!(&mut cancelled).is_pending() && poll!(&mut third).is_pending());
        drop(cancelled);
        assert_eq!(locks.len(), 1, "two others have it still");
        drop(first);
        assert!(poll!(&mut third).is_ready());
    }

    #[tokio::test]
    async fn a_waiter_that_is_cancelled_when_it_was_served_passes_the_lock_on() {
        let locks = KeyedLocks::default();
        let first = locks.lock(&"a").await;
        let mut cancelled = Box::pin(locks.lock(&"a"));
        let mut third = pin!(locks.lock(&"a"));
        assert!(poll!(&mut cancelled).is_pending() && poll!(&mut third).is_pending());
        drop(first);
        drop(cancelled);
        assert!(poll!(&mut third).is_ready());
    }

    #[tokio::test]
    async fn a_task_that_is_aborted_releases_its_lock() {
        let locks = Arc::new(KeyedLocks::default());
        let (held, holds) = tokio::sync::oneshot::channel();
        let task = tokio::spawn({
            let locks = Arc::clone(&locks);
            async move {
                let _guard = locks.lock(&"a").await;
                held.send(()).unwrap();
                std::future::pending::<()>().await;
            }
        });
        holds.await.unwrap();
        task.abort();
        task.await.unwrap_err();
        assert!(locks.is_empty());
    }

    #[tokio::test]
    async fn keys_are_listed_while_they_are_used() {
        let locks = KeyedLocks::default();
        assert!(locks.is_empty());
        let (a, b) = (locks.lock(&"a").await, locks.lock(&"b").await);
        assert_eq!(locks.len(), 2);
        drop(a);
        assert_eq!(locks.len(), 1);
        {
            let mut cancelled = pin!(locks.lock(&"b"));
            assert!(poll!(&mut cancelled).is_pending());
            drop(b);
            assert_eq!(locks.len(), 1, "the waiter has it");
        }
        assert!(locks.is_empty());
    }

    #[test]
    fn threads_that_leave_together_leave_no_key_behind() {
        let locks = KeyedLocks::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        drop(futures::executor::block_on(locks.lock(&"a")));
                    }
                });
            }
        });
        assert!(locks.is_empty());
    }
}
