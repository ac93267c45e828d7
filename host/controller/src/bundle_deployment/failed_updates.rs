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
    message: String,
    since: Instant,
}

impl FailedUpdates {
    /// How the rendering from these inputs failed.
    pub(super) fn get(&self, name: &str, inputs: &Digest) -> Option<String> {
        self.get_at(name, inputs, Instant::now())
    }

    fn get_at(&self, name: &str, inputs: &Digest, now: Instant) -> Option<String> {
        let all = self.all();
        let failure = all.get(name).filter(|failure| failure.inputs == *inputs)?;
        (now.saturating_duration_since(failure.since) < COUNTS).then(|| failure.message.clone())
    }

    /// Notes a failure.
    pub(super) fn note(&self, name: &str, inputs: Digest, message: String) {
        self.all().insert(name.to_owned(), Failure { inputs, message, since: Instant::now() });
    }

    /// Forgets a BundleDeployment, or makes its update due again.
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
        failed.note("one", a.clone(), "it timed out".into());
        assert_eq!(failed.get("one", &a).as_deref(), Some("it timed out"));
        assert_eq!((failed.get("one", &b), failed.get("two", &a)), (None, None));
        assert_eq!(failed.get_at("one", &a, Instant::now() + COUNTS), None);
        failed.forget("one");
        assert_eq!(failed.get("one", &a), None);
    }
}
