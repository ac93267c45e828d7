//! What a reconcile found, and when the next one is due.

use std::time::Duration;

use kube::runtime::controller::Action;

use crate::Backoff;

/// What a reconcile found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<S> {
    /// The new status. It is written if it differs. `None` if there is nothing to report, or the reconciler wrote the status itself.
    pub status: Option<S>,
    /// When to reconcile again.
    pub next: Next,
}

/// When to reconcile an object again without a trigger. It takes effect once the status is written; if the status cannot be written, the
/// reconcile fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// When something changes. The failures before this reconcile no longer count.
    Change,
    /// After this time. The failures before this reconcile no longer count.
    After(Duration),
    /// With backoff: what the reconcile tried did not succeed.
    Retry {
        /// The shortest pause.
        at_least: Duration,
        /// The longest pause that the backoff may reach. Default: as for [`Backoff::failed`].
        at_most: Option<Duration>,
    },
    /// As the reconciler decided, which counts failures itself.
    Decided(Action),
}

impl<S> Report<S> {
    /// Writes the status, and waits for a change.
    pub fn settled(status: S) -> Self {
        Self { status: Some(status), next: Next::Change }
    }

    /// Reports nothing, and waits for a change. Earlier failures still count.
    pub fn nothing() -> Self {
        Self { status: None, next: Next::Decided(Action::await_change()) }
    }
}

impl Next {
    /// The action, once the status is written.
    pub(crate) fn action(self, name: &str, backoff: &Backoff) -> Action {
        match self {
            Self::Change => {
                backoff.succeeded(name);
                Action::await_change()
            }
            Self::After(pause) => {
                backoff.succeeded(name);
                Action::requeue(pause)
            }
            Self::Retry { at_least, at_most } => {
                let pause =
                    at_most.map_or_else(|| backoff.failed(name), |longest| backoff.failed_at_most(name, longest));
                Action::requeue(pause.max(at_least))
            }
            Self::Decided(action) => action,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reconcile_that_succeeded_forgets_failures() {
        let backoff = Backoff::default();
        let count = |next: Next| {
            backoff.failed("a");
            next.action("a", &backoff);
            let count = backoff.failures("a");
            backoff.succeeded("a");
            count
        };
        assert_eq!(count(Next::Change), 0);
        assert_eq!(count(Next::After(Duration::ZERO)), 0);
        assert_eq!(count(Next::Retry { at_least: Duration::ZERO, at_most: None }), 2);
        assert_eq!(count(Next::Decided(Action::await_change())), 1);
    }

    #[test]
    fn a_retry_waits_as_long_as_was_asked_for() {
        let (backoff, hour) = (Backoff::default(), Duration::from_hours(1));
        let at_most = Some(Duration::from_secs(3));
        assert_eq!(Next::Retry { at_least: hour, at_most }.action("a", &backoff), Action::requeue(hour));
    }
}
