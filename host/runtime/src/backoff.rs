//! When to try again: exponentially later with each failure in a row.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_mins(5);

/// Failures in a row, by object.
#[derive(Default)]
pub(crate) struct Backoff(Mutex<HashMap<String, u32>>);

impl Backoff {
    /// Counts a failure and tells how long to wait.
    pub(crate) fn failed(&self, key: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key.to_owned()).or_default();
        let pause = pause(*count);
        *count = count.saturating_add(1);
        pause
    }

    /// How often an object failed in a row.
    pub(crate) fn failures(&self, key: &str) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied().unwrap_or_default()
    }

    /// Forgets the failures of an object.
    pub(crate) fn succeeded(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

fn pause(failures: u32) -> Duration {
    FIRST.saturating_mul(2u32.saturating_pow(failures)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let pauses: Vec<u64> = (0..10).map(|_| backoff.failed("a").as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(backoff.failed("b").as_secs(), 1);
        backoff.succeeded("a");
        assert_eq!(backoff.failed("a").as_secs(), 1);
        assert_eq!(pause(u32::MAX), LONGEST);
    }
}
