//! Why a step failed, in the words of the status.

use chandler_api::Reason;
use chandler_content::{ContentError, FailureClass};
use chandler_engine::{CallError, LoadError, Retry};

/// Why a pass ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The reason for the conditions.
    pub(crate) reason: Reason,
    /// What happened, where, and what would help.
    pub(crate) message: String,
    /// Whether only a change of the specification, the content or the class helps, so that trying again is pointless.
    pub(crate) terminal: bool,
}

impl Problem {
    /// Something that may pass.
    pub(crate) fn passing(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), terminal: false }
    }

    /// Something that only a change helps against.
    pub(crate) fn lasting(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), terminal: true }
    }

    /// Whether it is likely to be gone at the next try.
    pub(crate) fn is_hiccup(&self) -> bool {
        self.reason == Reason::Retrying
    }
}

/// What the API server said, without what changes from try to try.
pub(crate) fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Content that could not be had; `reason` is that of the object's own condition.
pub(crate) fn content(reason: Reason, error: &ContentError) -> Problem {
    let terminal = error.class() == FailureClass::Permanent;
    Problem { reason, message: error.to_string(), terminal }
}

impl From<&CallError> for Problem {
    fn from(error: &CallError) -> Self {
        let reason = Reason::from_name(error.reason()).unwrap_or(Reason::InternalError);
        Self { reason, message: error.to_string(), terminal: error.retry() == Retry::OnChange }
    }
}

impl From<&LoadError> for Problem {
    fn from(error: &LoadError) -> Self {
        let reason = Reason::from_name(error.reason()).unwrap_or(Reason::InternalError);
        Self { reason, message: error.to_string(), terminal: error.retry() == Retry::OnChange }
    }
}
