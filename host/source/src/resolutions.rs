//! What each source that can move resolved to last. Losing it costs a request for each source.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use crate::{Pinned, Source};

/// The last resolution of each source that can move, by the name of the object that has it: all objects are of one kind.
#[derive(Default)]
pub struct Resolutions(Mutex<BTreeMap<String, Resolution>>);

/// What a source resolved to, and when.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The source.
    pub source: Source,
    /// The content that it resolved to.
    pub pinned: Pinned,
    when: Instant,
}

impl Resolutions {
    /// What a source resolved to, if that was within the interval.
    pub fn recent(&self, name: &str, source: &Source, interval: Duration) -> Option<Pinned> {
        let known = self.known();
        let known = known.get(name).filter(|known| known.source == *source && known.when.elapsed() < interval)?;
        Some(known.pinned.clone())
    }

    /// What a source resolved to last, however long ago.
    pub fn last(&self, name: &str, source: &Source) -> Option<Resolution> {
        self.known().get(name).filter(|known| known.source == *source).cloned()
    }

    /// Stores what a source resolves to now.
    pub fn remember(&self, name: String, source: Source, pinned: Pinned) {
        self.known().insert(name, Resolution { source, pinned, when: Instant::now() });
    }

    /// Whether there is a resolution of this source, so that it is polled.
    pub fn is_polled(&self, name: &str, source: &Source) -> bool {
        self.known().get(name).is_some_and(|known| known.source == *source)
    }

    /// The resolutions that are older than the interval, and the time until the next one is.
    pub fn due(&self, interval: Duration) -> (Vec<(String, Resolution)>, Duration) {
        let (mut due, mut next) = (Vec::new(), interval);
        for (name, resolution) in &*self.known() {
            match interval.checked_sub(resolution.when.elapsed()).filter(|left| !left.is_zero()) {
                Some(left) => next = next.min(left),
                None => due.push((name.clone(), resolution.clone())),
            }
        }
        (due, next)
    }

    /// Replaces a resolution with the outcome of a poll, or removes it. Returns false, and changes nothing, if the source was
    /// resolved after the poll began.
    pub fn renew(&self, name: &str, asked: &Resolution, now: Option<Pinned>) -> bool {
        let mut known = self.known();
        let Some(place) = known.get_mut(name).filter(|known| known.when == asked.when) else { return false };
        match now {
            Some(pinned) => *place = Resolution { pinned, when: Instant::now(), ..place.clone() },
            None => drop(known.remove(name)),
        }
        true
    }

    /// Removes the resolution of an object.
    pub fn forget(&self, name: &str) {
        self.known().remove(name);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Resolution>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{BundleSource, ImageSource};
    use chandler_core::Digest;

    use super::*;

    fn source(reference: &str) -> Source {
        let image = ImageSource { reference: reference.to_owned(), ..ImageSource::default() };
        Source::parse(&BundleSource::image(image)).unwrap()
    }

    fn pinned(content: &str) -> Pinned {
        let digest = Digest::of(content.as_bytes());
        source("example.com/a:v1").recorded_pin(&source(&format!("example.com/a@{digest}"))).unwrap()
    }

    #[test]
    fn sources_are_due_after_the_interval_and_not_before() {
        let (hour, source) = (Duration::from_hours(1), source("example.com/a:v1"));
        let resolutions = Resolutions::default();
        assert_eq!(resolutions.due(hour).1, hour);
        resolutions.remember("one".to_owned(), source.clone(), pinned("x"));
        let (due, next) = resolutions.due(hour);
        assert!(due.is_empty() && next <= hour);
        assert_eq!(resolutions.recent("one", &source, hour), Some(pinned("x")));
        let (due, _) = resolutions.due(Duration::ZERO);
        assert_eq!(due.len(), 1);
        assert_eq!(resolutions.recent("one", &source, Duration::ZERO), None);
        assert!(resolutions.is_polled("one", &source) && !resolutions.is_polled("two", &source));
    }

    #[test]
    fn a_late_poll_changes_nothing() {
        let (hour, old, new) = (Duration::from_hours(1), source("example.com/a:v1"), source("example.com/b:v1"));
        let resolutions = Resolutions::default();
        resolutions.remember("one".to_owned(), old.clone(), pinned("x"));
        let asked = resolutions.due(Duration::ZERO).0.remove(0).1;
        assert!(resolutions.renew("one", &asked, Some(pinned("y"))));
        assert_eq!(resolutions.recent("one", &old, hour), Some(pinned("y")));
        resolutions.remember("one".to_owned(), new.clone(), pinned("z"));
        assert!(!resolutions.renew("one", &asked, Some(pinned("y"))));
        assert!(!resolutions.renew("one", &asked, None));
        assert_eq!(resolutions.recent("one", &new, hour), Some(pinned("z")));
        let asked = resolutions.due(Duration::ZERO).0.remove(0).1;
        assert!(resolutions.renew("one", &asked, None));
        assert!(!resolutions.is_polled("one", &new));
    }
}
