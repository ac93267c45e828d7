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
pub(crate) struct Stalled(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_name: HashMap<String, Entry>,
    /// How often something changed that may help.
    changes: u64,
}

/// When a pass began: what changed since then may help, although the pass did not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun(u64);

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
    /// Now, for the beginning of a pass.
    pub(super) fn begin(&self) -> Begun {
        Begun(self.all().changes)
    }

    /// What was found when the candidate was tried last, if it is not to be tried now.
    pub(super) fn of(&self, name: &str, asked: &Digest) -> Option<Assessment> {
        let all = self.all();
        let entry = all.by_name.get(name).filter(|entry| entry.asked == *asked)?;
        let left = match entry.until {
            Some(until) => until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?,
            None => LONGEST,
        };
        Some(Assessment { stalled: Some(left), ..entry.found.clone() })
    }

    /// Notes what was found, and how long it is until the next try.
    pub(super) fn note(&self, name: &str, begun: Begun, asked: Digest, pause: Option<Duration>, found: &Assessment) {
        let failed =
            matches!(found.reached, Reached::NoProvisioner(_) | Reached::NotUnpacked(_) | Reached::NotRendered(_));
        if !failed || self.begin() != begun {
            self.all().by_name.remove(name);
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
        self.all().by_name.insert(name.to_owned(), Entry { asked, until, found });
    }

    /// Has a candidate tried at the next reconcile: something changed that may help.
    pub(crate) fn clear(&self, name: &str) {
        let mut all = self.all();
        all.changes = all.changes.wrapping_add(1);
        all.by_name.remove(name);
    }

    /// The same for these. A pass that is under way for another one is not sure what it saw of the change either, and tries
    /// again, too.
    pub(crate) fn clear_those(&self, names: &[String]) {
        let mut all = self.all();
        all.changes = all.changes.wrapping_add(1);
        all.by_name.retain(|name, _| !names.contains(name));
    }

    fn all(&self) -> MutexGuard<'_, Entries> {
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
        let note =
            |asked: &Digest, pause, found: &Assessment| stalled.note("a", stalled.begin(), asked.clone(), pause, found);
        note(&asked, Some(Duration::from_hours(1)), &away);
        assert_eq!(stalled.of("a", &asked).unwrap().reached, away.reached);
        assert!(stalled.of("a", &other).is_none(), "something else is asked for");
        stalled.clear("a");
        assert!(stalled.of("a", &asked).is_none());

        note(&asked, Some(Duration::ZERO), &away);
        assert!(stalled.of("a", &asked).is_none(), "it is time");
        note(&asked, None, &away);
        assert!(stalled.of("a", &asked).is_some(), "only a change helps");
        note(&asked, None, &Assessment::early(Reached::Applied(vec![])));
        assert!(stalled.of("a", &asked).is_none(), "it was had");

        let clears: [fn(&Stalled); 2] = [|stalled| stalled.clear("a"), |stalled| stalled.clear_those(&[])];
        for clear in clears {
            let begun = stalled.begin();
            clear(&stalled);
            stalled.note("a", begun, asked.clone(), None, &away);
            assert!(stalled.of("a", &asked).is_none(), "something changed while it was tried");
        }

        for name in ["a", "b"] {
            stalled.note(name, stalled.begin(), asked.clone(), None, &away);
        }
        stalled.clear_those(&["b".to_owned()]);
        assert!(stalled.of("a", &asked).is_some() && stalled.of("b", &asked).is_none());
    }
}
