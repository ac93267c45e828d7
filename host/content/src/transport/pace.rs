//! The rate of a body. Pure.

use std::time::Duration;

/// The number of slots of the window.
const SLOTS: usize = 16;

/// The minimum rate of a body. Without it, a server that sends single bytes could delay a fetch until its total timeout.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The least bytes in a window.
    least: u64,
    slot: Duration,
    /// The time spent waiting for bytes. The time to process them does not count.
    waited: Duration,
    latest: u128,
    slots: [u64; SLOTS],
}

impl Pace {
    /// At least `rate` bytes per second over the last `window`.
    pub(crate) fn new(rate: u64, window: Duration) -> Self {
        let slot = window / u32::try_from(SLOTS).unwrap_or(1);
        let least = u128::from(rate).saturating_mul(window.as_millis()) / 1000;
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        Self { least, slot, waited: Duration::ZERO, latest: 0, slots: [0; SLOTS] }
    }

    /// Adds bytes and the time spent waiting for them. Returns whether the rate is still sufficient.
    #[must_use]
    pub(crate) fn note(&mut self, waited: Duration, bytes: usize) -> bool {
        self.waited = self.waited.saturating_add(waited);
        let now = self.waited.as_nanos() / self.slot.as_nanos().max(1);
        let passed = usize::try_from(now - self.latest).unwrap_or(SLOTS).min(SLOTS);
        // The newest slot is the first.
        self.slots.rotate_right(passed);
        self.slots.iter_mut().take(passed).for_each(|slot| *slot = 0);
        self.latest = now;
        if let Some(newest) = self.slots.first_mut() {
            *newest = newest.saturating_add(bytes as u64);
        }
        let window_is_full = now >= SLOTS as u128;
        !window_is_full || self.slots.iter().fold(0, |sum: u64, slot| sum.saturating_add(*slot)) >= self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(30);

    /// How long a body lasts that sends so many bytes after each interval of so many seconds, or `None` if it does not end.
    fn lasts(seconds: f64, bytes: usize) -> Option<f64> {
        let mut pace = Pace::new(1024, WINDOW);
        let pause = Duration::from_secs_f64(seconds);
        (1..100_000).find(|_| !pace.note(pause, bytes)).map(|count| f64::from(count) * seconds)
    }

    #[test]
    fn drips_end_and_streams_go_on() {
        for (seconds, bytes) in [(9.0, 1), (29.0, 1), (0.1, 1), (1.0, 500), (0.001, 0)] {
            let lasted = lasts(seconds, bytes).expect("it ends");
            assert!(lasted <= 60.0, "{bytes} bytes each {seconds} s lasted {lasted} s");
        }
        for (seconds, bytes) in [(0.1, 200), (1.0, 1200), (9.0, 20_000), (25.0, 64 << 10), (0.0, 0)] {
            assert_eq!(lasts(seconds, bytes), None, "{bytes} bytes each {seconds} s");
        }
    }

    #[test]
    fn a_fast_start_does_not_count_for_ever() {
        let mut pace = Pace::new(1024, WINDOW);
        assert!(pace.note(Duration::from_secs(1), 100 << 20));
        let dripped = (1..100).find(|_| !pace.note(Duration::from_secs(9), 1)).expect("it ends");
        assert!(dripped <= 4, "{dripped}");
    }

    #[test]
    fn a_short_body_is_never_too_slow() {
        let mut pace = Pace::new(1024, WINDOW);
        assert!(pace.note(Duration::from_secs(28), 10));
    }
}
