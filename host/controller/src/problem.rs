//! The problems that errors of other crates are.

use chandler_api::Reason;
use chandler_content::{ContentError, FailureClass};
use chandler_decisions::problem::{Problem, Refusal};
use chandler_engine::{CallError, LoadError, Retry};
use chandler_source::SourceError;

/// The reason for a request that the API server refused.
pub(crate) fn refused(answer: &kube::core::Status) -> Reason {
    if answer.code == 403 { Reason::Forbidden } else { Reason::Retrying }
}

/// A source whose content could not be fetched, verified or unpacked.
pub(crate) fn unpack(error: &SourceError) -> Problem {
    let reason = match error {
        SourceError::Content(ContentError::Unverified { .. }) => Reason::NoMatchingSignature,
        SourceError::Content(ContentError::CacheFull(_)) => Reason::ContentCacheFull,
        error if error.is_pending() => Reason::UploadPending,
        _ => Reason::UnpackFailed,
    };
    source(reason, error)
}

/// A source whose content is not available; `reason` is the reason of the object's own condition.
pub(crate) fn source(reason: Reason, error: &SourceError) -> Problem {
    let class = error.class();
    let terminal = class == FailureClass::Permanent;
    let refusal = (class == FailureClass::Unavailable).then_some(Refusal::Source);
    let retry_after = error.retry_after().unwrap_or_default();
    let silent_registry = error.silent_registry().map(str::to_owned);
    Problem { terminal, refusal, retry_after, silent_registry, ..Problem::transient(reason, error.to_string()) }
}

/// A call of a provisioner that failed.
pub(crate) fn called(error: &CallError) -> Problem {
    retried(error.retry(), error.reason(), error)
}

/// A component that could not be loaded.
pub(crate) fn loaded(error: &LoadError) -> Problem {
    retried(error.retry(), error.reason(), error)
}

fn retried(retry: Retry, reason: Reason, error: &dyn std::error::Error) -> Problem {
    Problem { terminal: retry == Retry::OnChange, ..Problem::transient(reason, error.to_string()) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chandler_content::{RegistryError, ServerFailure};

    use super::*;

    #[test]
    fn how_long_and_for_which_registry_to_wait_is_part_of_the_problem() {
        let refused = |failure, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let (image, message) = ("example.com/a:v1".into(), "no".into());
            let error = RegistryError { image, failure, message, is_plain: false, retry_after };
            let problem = source(Reason::UnpackFailed, &ContentError::from(error).into());
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
