//! Updates of provisioners that did not render. While one waits, its BundleDeployment is reconciled as usual, and a component that uses all
//! the time that it may use must not do so in each reconcile.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chandler_core::Digest;
use parking_lot::{Mutex, MutexGuard};

/// How long a failure counts: the machine may have been the cause.
const COUNTS: Duration = Duration::from_mins(5);

/// The last failure of each BundleDeployment.
#[derive(Default)]
pub(crate) struct FailedUpdates(Mutex<HashMap<String, Failure>>);

struct Failure {
    /// What the release was rendered from.
    inputs: Digest,
    /// The digest of the component that did not render them.
    component: String,
    message: String,
    /// `None` if the update is due again.
    since: Option<Instant>,
}

impl FailedUpdates {
    /// How the rendering from these inputs failed.
    pub(super) fn get(&self, name: &str, inputs: &Digest) -> Option<String> {
        self.get_at(name, inputs, Instant::now())
    }

    fn get_at(&self, name: &str, inputs: &Digest, now: Instant) -> Option<String> {
        let all = self.all();
        let failure = all.get(name).filter(|failure| failure.inputs == *inputs)?;
        let counts = failure.since.is_some_and(|since| now.saturating_duration_since(since) < COUNTS);
        counts.then(|| failure.message.clone())
    }

    /// Notes that a component did not render these inputs.
    pub(super) fn note(&self, name: &str, (inputs, component): (Digest, &str), message: String) {
        let component = component.to_owned();
        self.all().insert(name.to_owned(), Failure { inputs, component, message, since: Some(Instant::now()) });
    }

    /// Notes that the cluster refused what a component rendered, before anything was written.
    pub(super) fn refused(&self, name: &str, component: &str) {
        self.note(name, (Digest::of(b""), component), String::new());
    }

    /// Whether this component did not render the bundle of a BundleDeployment when it was last tried, or the cluster refused what it rendered.
    pub(crate) fn is_refused(&self, name: &str, component: &str) -> bool {
        self.all().get(name).is_some_and(|failure| failure.component == component)
    }

    /// Makes the update of a BundleDeployment due again. Until it is tried, it counts as refused.
    pub(crate) fn try_again(&self, name: &str) {
        if let Some(failure) = self.all().get_mut(name) {
            failure.since = None;
        }
    }

    /// Notes that the update renders.
    pub(super) fn rendered(&self, name: &str) {
        self.forget(name);
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Failure>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_for_the_same_inputs_and_for_a_while() {
        let (failed, a, b) = (FailedUpdates::default(), Digest::of(b"a"), Digest::of(b"b"));
        failed.note("one", (a.clone(), "new"), "it timed out".into());
        assert!(
            failed.is_refused("one", "new") && !failed.is_refused("one", "newer") && !failed.is_refused("two", "new")
        );
        assert_eq!(failed.get("one", &a).as_deref(), Some("it timed out"));
        assert_eq!((failed.get("one", &b), failed.get("two", &a)), (None, None));
        assert_eq!(failed.get_at("one", &a, Instant::now() + COUNTS), None);
        failed.try_again("one");
        assert_eq!((failed.get("one", &a), failed.is_refused("one", "new")), (None, true));
        failed.rendered("one");
        assert!(!failed.is_refused("one", "new"));
    }
}
