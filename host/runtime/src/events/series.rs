//! Which Events recur. Pure: the clock comes in as an argument.
//!
//! An Event recurs if everything that a user sees of it is the same: object, type, reason, action and note. kube's recorder leaves
//! the note out, so that twelve repairs of twelve objects become one Event that names one of them and counts twelve.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chandler_core::Digest;

/// An Event that was published this long ago does not recur: a new one is created, as client-go does.
const SERIES_ENDS: Duration = Duration::from_mins(6);
/// How many Events are remembered. An Event that was forgotten is created anew.
const REMEMBERED: usize = 1000;

/// The Events that were published lately.
#[derive(Debug, Default)]
pub(super) struct Published(HashMap<Digest, Entry>);

#[derive(Debug)]
struct Entry {
    name: String,
    count: i32,
    last: Instant,
}

/// What to write for an Event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// A new Event.
    Create,
    /// It is the Event of this name again, and was published so often by now.
    Count { name: String, count: i32 },
}

impl Published {
    /// What to write for an Event with this content.
    pub(super) fn write(&mut self, content: &Digest, now: Instant) -> Write {
        let Some(entry) = self.0.get_mut(content).filter(|entry| now.duration_since(entry.last) < SERIES_ENDS) else {
            return Write::Create;
        };
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        Write::Count { name: entry.name.clone(), count: entry.count }
    }

    /// Notes that an Event was created.
    pub(super) fn created(&mut self, content: Digest, name: String, now: Instant) {
        if self.0.len() >= REMEMBERED {
            // The next time of those that are forgotten is far away.
            super::make_room(&mut self.0, now, |entry| entry.last + SERIES_ENDS);
        }
        self.0.insert(content, Entry { name, count: 1, last: now });
    }

    /// Forgets an Event that no longer exists.
    pub(super) fn forget(&mut self, content: &Digest) {
        self.0.remove(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_recurs_for_six_minutes_after_the_last_time() {
        let (mut published, content, start) = (Published::default(), Digest::of(b"a"), Instant::now());
        assert_eq!(published.write(&content, start), Write::Create);
        published.created(content.clone(), "a.1".to_owned(), start);
        for count in 2..5 {
            let now = start + Duration::from_mins(5) * (count - 1);
            let count = i32::try_from(count).unwrap();
            assert_eq!(published.write(&content, now), Write::Count { name: "a.1".to_owned(), count });
        }
        assert_eq!(published.write(&Digest::of(b"b"), start), Write::Create, "it has another note");
        assert_eq!(published.write(&content, start + Duration::from_mins(21)), Write::Create);
        published.created(content.clone(), "a.2".to_owned(), start);
        published.forget(&content);
        assert_eq!(published.write(&content, start), Write::Create);
    }

    #[test]
    fn the_oldest_events_are_forgotten() {
        let (mut published, start) = (Published::default(), Instant::now());
        let content = |number: usize| Digest::of(number.to_string().as_bytes());
        for number in 0..3 * REMEMBERED {
            let now = start + Duration::from_millis(number as u64);
            published.created(content(number), String::new(), now);
            assert!(published.0.len() <= REMEMBERED);
        }
        let now = start + Duration::from_secs(4);
        assert_eq!(published.write(&content(0), now), Write::Create);
        assert!(matches!(published.write(&content(3 * REMEMBERED - 1), now), Write::Count { count: 2, .. }));
    }
}
