//! Why a reconcile ended early, as the status reports it.

use std::time::Duration;

use chandler_api::{MissingPermissions, Reason};
use chandler_content::{ContentError, FailureClass};
use chandler_core::ObjectKey;
use chandler_engine::{CallError, LoadError, Retry};
use chandler_source::SourceError;

/// Why a reconcile ended early.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The reason for the conditions.
    pub(crate) reason: Reason,
    /// The cause, the object, and what helps.
    pub(crate) message: String,
    /// Whether only a change of the spec, the content or the class helps, so that the controller does not retry.
    pub(crate) terminal: bool,
    /// Whether a permission, an account or a namespace is missing. A user may add it at any time, and the controller may not be able to
    /// watch these.
    pub(crate) needs_grant: bool,
    /// Who refused, if that is the problem and may not last.
    pub(crate) refusal: Option<Refusal>,
    /// The permissions that a ServiceAccount lacks, where that is the problem.
    pub(crate) missing_permissions: Vec<MissingPermissions>,
    /// How long the server asked the controller to wait (`Retry-After`); zero where it did not.
    pub(crate) retry_after: Duration,
    /// The registry that did not answer, where that is the problem.
    pub(crate) silent_registry: Option<String>,
    /// The objects of other owners that are in the way, where that is the problem.
    pub(crate) collisions: Vec<ObjectKey>,
}

/// A refusal that the controller tries again, although time alone seldom helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The source has no such content, or denies access. It may be published or granted later.
    Source,
    /// The API server found the content of objects invalid.
    Validation,
}

impl Problem {
    /// A problem that the controller retries.
    pub(crate) fn transient(reason: Reason, message: impl Into<String>) -> Self {
        let (message, missing_permissions) = (message.into(), Vec::new());
        Self {
            reason,
            message,
            terminal: false,
            needs_grant: false,
            refusal: None,
            missing_permissions,
            retry_after: Duration::ZERO,
            silent_registry: None,
            collisions: Vec::new(),
        }
    }

    /// A problem that only a change by the user fixes.
    pub(crate) fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self { terminal: true, ..Self::transient(reason, message) }
    }

    /// Whether the API server did not answer or another client was faster, so that the next try is likely to succeed.
    pub(crate) fn is_api_unavailable(&self) -> bool {
        self.reason == Reason::Retrying
    }
}

/// The reason for a request that the API server refused.
pub(crate) fn refused(answer: &kube::core::Status) -> Reason {
    if answer.code == 403 { Reason::Forbidden } else { Reason::Retrying }
}

/// Content that could not be fetched; `reason` is that of the object's own condition.
pub(crate) fn content(reason: Reason, error: &ContentError) -> Problem {
    let (terminal, refusal) = judged(error.class());
    let retry_after = error.retry_after().unwrap_or_default();
    let silent_registry = error.silent_registry().map(str::to_owned);
    Problem { terminal, refusal, retry_after, silent_registry, ..Problem::transient(reason, error.to_string()) }
}

/// Whether a failure is terminal, and whether the source refused.
fn judged(class: FailureClass) -> (bool, Option<Refusal>) {
    (class == FailureClass::Permanent, (class == FailureClass::Unavailable).then_some(Refusal::Source))
}

/// A source whose content could not be fetched, verified or unpacked.
pub(crate) fn unpack(error: &SourceError) -> Problem {
    let reason = match error {
        SourceError::Content(ContentError::Unverified { .. }) => Reason::NoMatchingSignature,
        _ => Reason::UnpackFailed,
    };
    source(reason, error)
}

/// A source whose content is not available; `reason` is that of the object's own condition.
pub(crate) fn source(reason: Reason, error: &SourceError) -> Problem {
    let (terminal, refusal) = judged(error.class());
    let retry_after = error.retry_after().unwrap_or_default();
    let silent_registry = error.silent_registry().map(str::to_owned);
    Problem { terminal, refusal, retry_after, silent_registry, ..Problem::transient(reason, error.to_string()) }
}

impl From<&CallError> for Problem {
    fn from(error: &CallError) -> Self {
        Self { terminal: error.retry() == Retry::OnChange, ..Self::transient(error.reason(), error.to_string()) }
    }
}

impl From<&LoadError> for Problem {
    fn from(error: &LoadError) -> Self {
        Self { terminal: error.retry() == Retry::OnChange, ..Self::transient(error.reason(), error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use chandler_content::{RegistryError, ServerFailure};

    use super::*;

    #[test]
    fn how_long_and_for_which_registry_to_wait_is_part_of_the_problem() {
        let refused = |failure, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let (image, message) = ("example.com/a:v1".into(), "no".into());
            let error = RegistryError { image, failure, message, is_plain: false, retry_after };
            let problem = content(Reason::UnpackFailed, &error.into());
            assert_eq!(
                problem.silent_registry.as_deref(),
                (failure == ServerFailure::Network).then_some("example.com")
            );
            (problem.terminal, problem.retry_after.as_secs())
        };
        assert_eq!(refused(ServerFailure::RateLimited, Some(600)), (false, 600));
        assert_eq!(refused(ServerFailure::RateLimited, None), (false, 0));
        assert_eq!(refused(ServerFailure::Protocol, None), (true, 0));
        assert_eq!(refused(ServerFailure::Network, None), (false, 0));
    }
}
