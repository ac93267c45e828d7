//! Why a step failed, in the words of the status.

use std::time::Duration;

use chandler_api::{MissingPermissions, Reason};
use chandler_content::{ContentError, FailureClass};
use chandler_engine::{CallError, LoadError, Retry};
use chandler_source::SourceError;

/// Why a pass ended early.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The reason for the conditions.
    pub(crate) reason: Reason,
    /// What happened, where, and what would help.
    pub(crate) message: String,
    /// Whether only a change of the specification, the content or the class helps, so that trying again is pointless.
    pub(crate) terminal: bool,
    /// The permissions that a ServiceAccount lacks, where that is the problem.
    pub(crate) missing_permissions: Vec<MissingPermissions>,
    /// How long whoever was asked wants to be left alone; zero where he did not say so.
    pub(crate) retry_after: Duration,
}

impl Problem {
    /// Something that may pass.
    pub(crate) fn passing(reason: Reason, message: impl Into<String>) -> Self {
        let (message, missing_permissions) = (message.into(), Vec::new());
        Self { reason, message, terminal: false, missing_permissions, retry_after: Duration::ZERO }
    }

    /// Something that only a change helps against.
    pub(crate) fn lasting(reason: Reason, message: impl Into<String>) -> Self {
        Self { terminal: true, ..Self::passing(reason, message) }
    }

    /// Whether nothing is wrong but that it takes its time.
    pub(crate) fn is_being_prepared(&self) -> bool {
        self.reason == Reason::Unpacking
    }

    /// Whether it is likely to be gone at the next try.
    pub(crate) fn is_hiccup(&self) -> bool {
        self.reason == Reason::Retrying
    }
}

/// Content that could not be had; `reason` is that of the object's own condition.
pub(crate) fn content(reason: Reason, error: &ContentError) -> Problem {
    let terminal = error.class() == FailureClass::Permanent;
    let retry_after = error.retry_after().unwrap_or_default();
    Problem { terminal, retry_after, ..Problem::passing(reason, error.to_string()) }
}

/// A source whose content is not available; `reason` is that of the object's own condition.
pub(crate) fn source(reason: Reason, error: &SourceError) -> Problem {
    let terminal = error.class() == FailureClass::Permanent;
    let retry_after = error.retry_after().unwrap_or_default();
    Problem { terminal, retry_after, ..Problem::passing(reason, error.to_string()) }
}

impl From<&CallError> for Problem {
    fn from(error: &CallError) -> Self {
        Self { terminal: error.retry() == Retry::OnChange, ..Self::passing(error.reason(), error.to_string()) }
    }
}

impl From<&LoadError> for Problem {
    fn from(error: &LoadError) -> Self {
        Self { terminal: error.retry() == Retry::OnChange, ..Self::passing(error.reason(), error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use chandler_content::{RegistryError, RegistryFailure};

    use super::*;

    #[test]
    fn a_registry_is_left_alone_for_as_long_as_it_asks() {
        let refused = |failure, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let error = RegistryError { image: "a:v1".into(), failure, message: "no".into(), retry_after };
            let problem = content(Reason::UnpackFailed, &error.into());
            (problem.terminal, problem.retry_after.as_secs())
        };
        assert_eq!(refused(RegistryFailure::RateLimited, Some(600)), (false, 600));
        assert_eq!(refused(RegistryFailure::RateLimited, None), (false, 0));
        assert_eq!(refused(RegistryFailure::Protocol, None), (true, 0));
    }
}
