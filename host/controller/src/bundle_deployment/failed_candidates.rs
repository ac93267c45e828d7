//! Candidates that failed, until the controller tries them again.
//!
//! Whatever triggers a reconcile, such as an object of the release that another client deleted, must not send a request to a registry that
//! is down: the release that runs would wait for the answer. A change that may help makes the candidate due at once: a newer spec, a
//! Secret, a ConfigMap, a class or a tag that moved.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chandler_core::Digest;
use chandler_decisions::assessment::{Assessment, ReconcileOutcome};
use parking_lot::{Mutex, MutexGuard};

/// Candidates that failed, by BundleDeployment.
#[derive(Default)]
pub(crate) struct FailedCandidates(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_name: HashMap<String, Entry>,
    /// How often something changed that may help.
    changes: u64,
}

/// How many changes there were when a reconcile began: a change since then may help, although the reconcile did not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeCount(u64);

struct Entry {
    /// What was requested.
    requested: Digest,
    /// When the controller tries again; `None` if only a change helps.
    until: Option<Instant>,
    failure: Assessment,
}

/// How long it is until the next try if only a change helps: some other timer always comes first.
const LONGEST: Duration = Duration::from_hours(24);

impl FailedCandidates {
    /// The number of changes so far, for the start of a reconcile.
    pub(super) fn changes(&self) -> ChangeCount {
        ChangeCount(self.all().changes)
    }

    /// How the candidate failed last, if it is not due for another try.
    pub(super) fn get(&self, name: &str, requested: &Digest) -> Option<Assessment> {
        let all = self.all();
        let entry = all.by_name.get(name).filter(|entry| entry.requested == *requested)?;
        let left = match entry.until {
            Some(until) => until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?,
            None => LONGEST,
        };
        Some(Assessment { retry_in: Some(left), ..entry.failure.clone() })
    }

    /// Notes what a reconcile found, and how long it is until the next try. A candidate that did not fail is forgotten.
    pub(super) fn note(
        &self,
        name: &str,
        began: ChangeCount,
        requested: Digest,
        pause: Option<Duration>,
        found: &Assessment,
    ) {
        let failed = matches!(
            found.outcome,
            ReconcileOutcome::ProvisionerUnavailable(_)
                | ReconcileOutcome::UnpackFailed(_)
                | ReconcileOutcome::RenderFailed(_)
        );
        // Locked until the end: a change in between would be lost, and the candidate would not be tried again.
        let mut all = self.all();
        if !failed || all.changes != began.0 {
            all.by_name.remove(name);
            return;
        }
        // Each reconcile looks at the release that runs anew.
        let failure = Assessment::of_selection(found.selection.clone(), found.outcome.clone());
        let until = pause.map(|pause| Instant::now() + pause);
        all.by_name.insert(name.to_owned(), Entry { requested, until, failure });
    }

    /// Makes a candidate due at the next reconcile: something that may help has changed.
    pub(crate) fn clear(&self, name: &str) {
        let mut all = self.all();
        all.changes = all.changes.wrapping_add(1);
        all.by_name.remove(name);
    }

    /// Like [`clear`](Self::clear), for several candidates. A reconcile of another BundleDeployment that is in progress may have missed the
    /// change, and tries again, too.
    pub(crate) fn clear_those(&self, names: &[String]) {
        let mut all = self.all();
        all.changes = all.changes.wrapping_add(1);
        all.by_name.retain(|name, _| !names.contains(name));
    }

    fn all(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::Reason;
    use chandler_decisions::problem::Problem;

    use super::*;

    #[test]
    fn a_candidate_is_tried_again_when_it_is_due_or_something_changed() {
        let (failed, requested, other) = (FailedCandidates::default(), Digest::of(b"1"), Digest::of(b"2"));
        let away = Assessment::early(ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "away")));
        let note = |requested: &Digest, pause, found: &Assessment| {
            failed.note("a", failed.changes(), requested.clone(), pause, found);
        };
        note(&requested, Some(Duration::from_hours(1)), &away);
        assert_eq!(failed.get("a", &requested).unwrap().outcome, away.outcome);
        assert!(failed.get("a", &other).is_none(), "another candidate is requested");
        failed.clear("a");
        assert!(failed.get("a", &requested).is_none());

        note(&requested, Some(Duration::ZERO), &away);
        assert!(failed.get("a", &requested).is_none(), "it is due");
        note(&requested, None, &away);
        assert!(failed.get("a", &requested).is_some(), "only a change helps");
        note(&requested, None, &Assessment::early(ReconcileOutcome::Applied(vec![])));
        assert!(failed.get("a", &requested).is_none(), "it did not fail");

        let clears: [fn(&FailedCandidates); 2] = [|failed| failed.clear("a"), |failed| failed.clear_those(&[])];
        for clear in clears {
            let began = failed.changes();
            clear(&failed);
            failed.note("a", began, requested.clone(), None, &away);
            assert!(failed.get("a", &requested).is_none(), "something changed while it was tried");
        }

        for name in ["a", "b"] {
            failed.note(name, failed.changes(), requested.clone(), None, &away);
        }
        failed.clear_those(&["b".to_owned()]);
        assert!(failed.get("a", &requested).is_some() && failed.get("b", &requested).is_none());
    }

    #[test]
    fn a_change_while_a_failure_is_noted_is_not_lost() {
        let failed = FailedCandidates::default();
        let (requested, away) = (
            Digest::of(b"1"),
            Assessment::early(ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "away"))),
        );
        for _ in 0..2000 {
            let (began, together) = (failed.changes(), std::sync::Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    together.wait();
                    failed.clear("a");
                });
                together.wait();
                failed.note("a", began, requested.clone(), None, &away);
            });
            assert!(failed.get("a", &requested).is_none());
        }
    }
}
