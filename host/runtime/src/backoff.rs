//! Retry with exponential backoff and jitter, per object.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

/// The delay after the first failure.
const INITIAL_DELAY: Duration = Duration::from_secs(1);
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_mins(5);
/// Jitter shortens a delay by less than one part in this many, so that objects which failed together do not all retry together.
const JITTER_PARTS: u32 = 5;

/// Counts consecutive failures by object, and computes the delay before the next retry.
///
/// `S` is the source of the jitter: randomly seeded for each process by default, fixed in tests.
#[derive(Default)]
pub struct Backoff<S = RandomState> {
    failures: Mutex<HashMap<String, u32>>,
    jitter: S,
}

impl<S: BuildHasher> Backoff<S> {
    /// Counts a failure, and returns the delay before the next retry.
    pub fn failed(&self, key: &str) -> Duration {
        self.failed_at_most(key, MAX_DELAY)
    }

    /// Like [`failed`](Self::failed), with another longest delay, before jitter. The count does not grow beyond that delay, so that a
    /// later failure of another kind is still retried soon.
    pub fn failed_at_most(&self, key: &str, longest: Duration) -> Duration {
        let mut failures = self.lock();
        let count = failures.entry(key.to_owned()).or_default();
        let full = delay(*count);
        let delay = jittered(full.min(longest), self.jitter.hash_one((key, *count)));
        if full < longest || longest >= MAX_DELAY {
            *count = count.saturating_add(1);
        }
        delay
    }

    /// The number of consecutive failures of an object.
    pub fn failures(&self, key: &str) -> u32 {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// Resets the count of an object.
    pub fn succeeded(&self, key: &str) {
        self.lock().remove(key);
    }

    /// Resets all counts. Returns the objects that had one.
    pub fn reset(&self) -> Vec<String> {
        self.lock().drain().map(|(key, _)| key).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.failures.lock()
    }
}

/// The delay after this many earlier failures, without jitter.
fn delay(failures: u32) -> Duration {
    INITIAL_DELAY.saturating_mul(2u32.saturating_pow(failures)).min(MAX_DELAY)
}

/// A delay shortened by a share that `hash` selects.
fn jittered(delay: Duration, hash: u64) -> Duration {
    let [a, b, ..] = hash.to_le_bytes();
    let share = u32::from(u16::from_le_bytes([a, b]));
    delay.saturating_sub(delay.saturating_mul(share) / (JITTER_PARTS * (u32::from(u16::MAX) + 1)))
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, DefaultHasher};

    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let delays: Vec<u64> = (0..10).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(delay(u32::MAX), MAX_DELAY);
    }

    #[test]
    fn jitter_shortens_a_delay_by_less_than_a_fifth() {
        let second = Duration::from_secs(1);
        assert_eq!(jittered(second, 0), second);
        assert_eq!(jittered(second, 0x8000), Duration::from_millis(900));
        let shortest = jittered(MAX_DELAY, u64::MAX);
        assert!(MAX_DELAY * 4 / 5 < shortest && shortest < MAX_DELAY, "{shortest:?}");
    }

    #[test]
    fn a_longest_delay_limits_the_count_too() {
        let backoff = Backoff::<BuildHasherDefault<DefaultHasher>>::default();
        let longest = Duration::from_secs(8);
        let delays: Vec<Duration> = (0..20).map(|_| backoff.failed_at_most("a", longest)).collect();
        assert!(delays.iter().all(|delay| *delay <= longest), "{delays:?}");
        assert!(delays.iter().skip(3).all(|delay| *delay > longest * 4 / 5), "{delays:?}");
        assert!(backoff.failed("a") <= longest && backoff.failed("a") <= longest * 2);
    }

    #[test]
    fn failures_are_counted_by_object_and_retried_at_different_times() {
        let backoff = Backoff::<BuildHasherDefault<DefaultHasher>>::default();
        let first = backoff.failed("a");
        assert!(first <= INITIAL_DELAY && backoff.failed("a") > INITIAL_DELAY);
        assert_ne!(backoff.failed("b"), first, "objects that fail together retry apart");
        assert_eq!((backoff.failures("a"), backoff.failures("b")), (2, 1));
        backoff.succeeded("a");
        assert_eq!((backoff.failures("a"), backoff.failed("a")), (0, first));
        let mut failed = backoff.reset();
        failed.sort();
        assert_eq!((failed, backoff.failures("a")), (vec!["a".to_owned(), "b".to_owned()], 0));
    }
}
