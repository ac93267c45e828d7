//! How many new Events an object has. Pure: the clock comes in as an argument.
//!
//! A tenant that edits an object without end, each time with another problem, would fill etcd with Events: each has another note, so that none is
//! counted in a series. client-go limits them in the same way, per object (`EventSourceObjectSpamFilter`).

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chandler_core::Digest;

/// How many new Events of an object are published at once.
const AT_ONCE: u32 = 50;
/// Another one is published after this time.
const EVERY: Duration = Duration::from_mins(1);
/// How many objects are remembered: the ones with the most Events.
const REMEMBERED: usize = 4096;

/// When the Events of each object would have been published at an even rate.
#[derive(Debug, Default)]
pub(super) struct Rates(HashMap<Digest, Instant>);

impl Rates {
    /// Whether a new Event of this object is published now, and then counts.
    pub(super) fn allow(&mut self, object: Digest, now: Instant) -> bool {
        let due = self.0.get(&object).copied().unwrap_or(now).max(now);
        if due.saturating_duration_since(now) > EVERY * (AT_ONCE - 1) {
            return false;
        }
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&object) {
            super::make_room(&mut self.0, now, |due| *due);
        }
        self.0.insert(object, due + EVERY);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: usize) -> Digest {
        Digest::of(number.to_string().as_bytes())
    }

    #[test]
    fn an_object_has_fifty_events_at_once_and_then_one_a_minute() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let count = |rates: &mut Rates, at: Duration| (0..1000).filter(|_| rates.allow(object(1), start + at)).count();
        assert_eq!(count(&mut rates, Duration::ZERO), 50);
        assert_eq!(count(&mut rates, Duration::from_secs(59)), 0);
        assert_eq!(count(&mut rates, Duration::from_mins(1)), 1);
        assert_eq!(count(&mut rates, Duration::from_mins(11)), 10);
        assert!(rates.allow(object(2), start), "another object has its own");
        assert_eq!(count(&mut rates, Duration::from_hours(2)), 50);
    }

    #[test]
    fn the_objects_with_the_most_events_are_remembered() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        while rates.allow(object(0), start) {}
        for number in 1..4 * REMEMBERED {
            assert!(rates.allow(object(number), start));
            assert!(rates.0.len() <= REMEMBERED);
        }
        assert!(!rates.allow(object(0), start));
    }
}
