//! Candidates that cannot be had, until it is time to try again.
//!
//! Whatever wakes a reconcile, an object of the release that was deleted, say, must not have a registry asked that is away: what
//! runs would wait for the answer. What may help, a newer spec, a Secret, a ConfigMap, a class or a tag that moved, has the
//! candidate tried at once.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chandler_core::Digest;

use super::assessment::{Assessment, Reached};

/// Candidates that cannot be had, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Stalled(Mutex<HashMap<String, Entry>>);

struct Entry {
    /// What was asked for.
    asked: Digest,
    /// When it is tried again; none where only a change helps.
    until: Option<Instant>,
    found: Assessment,
}

/// How long it is until the next try where only a change helps: the next look at anything comes first.
const LONGEST: Duration = Duration::from_hours(24);

impl Stalled {
    /// What was found when the candidate was tried last, if it is not to be tried now.
    pub(super) fn of(&self, name: &str, asked: &Digest) -> Option<Assessment> {
        let all = self.all();
        let entry = all.get(name).filter(|entry| entry.asked == *asked)?;
        let left = match entry.until {
            Some(until) => until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?,
            None => LONGEST,
        };
        Some(Assessment { stalled: Some(left), ..entry.found.clone() })
    }

    /// Notes what was found, and how long it is until the next try.
    pub(super) fn note(&self, name: &str, asked: Digest, pause: Option<Duration>, found: &Assessment) {
        if !matches!(found.reached, Reached::NoProvisioner(_) | Reached::NotUnpacked(_) | Reached::NotRendered(_)) {
            self.clear(name);
            return;
        }
        // What was seen of the release that runs is seen anew each time.
        let found = Assessment {
            running: None,
            contest: None,
            renewal: None,
            repaired: Vec::new(),
            kept: Vec::new(),
            ..found.clone()
        };
        let until = pause.map(|pause| Instant::now() + pause);
        self.all().insert(name.to_owned(), Entry { asked, until, found });
    }

    /// Has a candidate tried at the next reconcile: something changed that may help.
    pub(crate) fn clear(&self, name: &str) {
        self.all().remove(name);
    }

    /// The same for all of them.
    pub(crate) fn clear_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::Reason;

    use super::*;
    use crate::problem::Problem;

    #[test]
    fn a_candidate_is_tried_again_when_it_is_time_or_something_changed() {
        let (stalled, asked, other) = (Stalled::default(), Digest::of(b"1"), Digest::of(b"2"));
        let away = Assessment::early(Reached::NotUnpacked(Problem::passing(Reason::UnpackFailed, "away")));
        stalled.note("a", asked.clone(), Some(Duration::from_hours(1)), &away);
        assert_eq!(stalled.of("a", &asked).unwrap().reached, away.reached);
        assert!(stalled.of("a", &other).is_none(), "something else is asked for");
        stalled.clear("a");
        assert!(stalled.of("a", &asked).is_none());

        stalled.note("a", asked.clone(), Some(Duration::ZERO), &away);
        assert!(stalled.of("a", &asked).is_none(), "it is time");
        stalled.note("a", asked.clone(), None, &away);
        assert!(stalled.of("a", &asked).is_some(), "only a change helps");
        stalled.note("a", asked.clone(), None, &Assessment::early(Reached::Applied(vec![])));
        assert!(stalled.of("a", &asked).is_none(), "it was had");
    }
}
