//! The queue of objects to reconcile, now or later.
//!
//! An object is in the queue only once and is processed by one worker at a time. Delays use the cluster's clock, retries the
//! system clock: a manual clock that does not move must not block the retry of a failed write.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use super::kind::Key;
use crate::clock::Moment;

/// The first wait after a failure; each further one is twice as long.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// The longest wait after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Key>,
    waiting: HashSet<Key>,
    working: HashSet<Key>,
    delayed: BTreeSet<(Moment, Key)>,
    due: HashMap<Key, Moment>,
    retries: BTreeSet<(Instant, Key)>,
    failures: HashMap<Key, u32>,
}

impl Queue {
    /// Something about the object changed.
    pub(super) fn add(&mut self, key: Key) {
        if self.waiting.insert(key.clone()) && !self.working.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// Schedules the object for this time, unless it is processed earlier.
    pub(super) fn add_at(&mut self, key: Key, moment: Moment) {
        if let Some(earlier) = self.due.insert(key.clone(), moment) {
            self.delayed.remove(&(earlier, key.clone()));
        }
        self.delayed.insert((moment, key));
    }

    /// The next object to work on.
    pub(super) fn take(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.waiting.remove(&key);
        self.working.insert(key.clone());
        if let Some(moment) = self.due.remove(&key) {
            self.delayed.remove(&(moment, key.clone()));
        }
        Some(key)
    }

    /// Work on an object has ended.
    pub(super) fn done(&mut self, key: Key) {
        self.failures.remove(&key);
        self.end(key);
    }

    /// Work on an object has failed; it is tried again after a while.
    pub(super) fn failed(&mut self, key: Key) {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY.saturating_mul(1 << (*failures).min(20)).min(LONGEST_RETRY);
        *failures = failures.saturating_add(1);
        self.retries.insert((Instant::now() + wait, key.clone()));
        self.end(key);
    }

    fn end(&mut self, key: Key) {
        self.working.remove(&key);
        if self.waiting.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// When the first delay ends.
    pub(super) fn next_delay(&self) -> Option<Moment> {
        self.delayed.first().map(|(moment, _)| *moment)
    }

    /// When the first retry is due.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.retries.first().map(|(instant, _)| *instant)
    }

    /// Moves due objects to the end of the queue.
    pub(super) fn promote(&mut self, moment: Moment, instant: Instant) {
        while let Some((due, _)) = self.delayed.first()
            && *due <= moment
        {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.due.remove(&key);
                self.add(key);
            }
        }
        while let Some((due, _)) = self.retries.first()
            && *due <= instant
        {
            if let Some((_, key)) = self.retries.pop_first() {
                self.add(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Clock, workloads::kind::Kind};

    fn key(name: &str) -> Key {
        Key::new(Kind::Pod, "n", name)
    }

    #[test]
    fn an_object_is_queued_once_and_processed_by_one_worker() {
        let mut queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.take(), Some(key("a")));
        queue.add(key("a"));
        assert_eq!(queue.take(), Some(key("b")));
        assert_eq!(queue.take(), None, "a is being worked on");
        queue.done(key("a"));
        assert_eq!(queue.take(), Some(key("a")), "it changed meanwhile");
        queue.done(key("a"));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn delays_go_by_the_clock_and_the_last_one_counts() {
        let clock = Clock::manual(time::OffsetDateTime::UNIX_EPOCH);
        let mut queue = Queue::default();
        let later = |seconds: u64| clock.moment() + Duration::from_secs(seconds);
        queue.add_at(key("a"), later(5));
        queue.add_at(key("a"), later(9));
        assert_eq!(queue.next_delay(), Some(later(9)));
        queue.promote(later(8), Instant::now());
        assert_eq!(queue.take(), None);
        queue.promote(later(9), Instant::now());
        assert_eq!(queue.take(), Some(key("a")));
        assert_eq!(queue.next_delay(), None);
    }

    #[test]
    fn failures_wait_ever_longer_and_are_forgotten_after_a_success() {
        let clock = Clock::manual(time::OffsetDateTime::UNIX_EPOCH);
        let mut queue = Queue::default();
        let mut last = Duration::ZERO;
        for _ in 0..40 {
            queue.add(key("a"));
            let _ = queue.take();
            let now = Instant::now();
            queue.failed(key("a"));
            let wait = queue.next_retry().unwrap() - now;
            assert!(wait >= last.min(LONGEST_RETRY) && wait <= LONGEST_RETRY + Duration::from_secs(1));
            last = wait / 2;
            queue.promote(clock.moment(), now + LONGEST_RETRY + Duration::from_secs(2));
            assert_eq!(queue.take(), Some(key("a")));
        }
        queue.done(key("a"));
        assert!(queue.failures.is_empty() && queue.retries.is_empty());
    }
}
