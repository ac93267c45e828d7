//! Why a reconcile ended early, as the status reports it.

use std::time::Duration;

use chandler_api::{MissingPermissions, Reason};
use chandler_core::ObjectKey;
use chandler_rollout::RolloutError;

use crate::{
    account,
    detection::{Answer, Undecided},
    spec_error::SpecError,
};

/// Why a reconcile ended early.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The reason for the conditions.
    pub reason: Reason,
    /// The cause, the object, and what helps.
    pub message: String,
    /// Whether only a change of the spec, the content or the class helps, so that the controller does not retry.
    pub terminal: bool,
    /// Whether a permission, an account or a namespace is missing. A user may add it at any time, and the controller may not be able to
    /// watch these.
    pub needs_grant: bool,
    /// Who refused, if a refusal is the problem and it may not last.
    pub refusal: Option<Refusal>,
    /// The permissions that a ServiceAccount lacks, if that is the problem.
    pub missing_permissions: Vec<MissingPermissions>,
    /// How long the server asked the controller to wait (`Retry-After`); zero if it did not.
    pub retry_after: Duration,
    /// The registry that did not answer, if that is the problem.
    pub silent_registry: Option<String>,
    /// The objects of other owners that are in the way, if that is the problem.
    pub collisions: Vec<ObjectKey>,
}

/// A refusal that the controller retries, although a retry seldom helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The source has no such content, or denies access. It may be published or granted later.
    Source,
    /// The API server found the content of objects invalid.
    Validation,
}

impl Problem {
    /// A problem that the controller retries.
    pub fn transient(reason: Reason, message: impl Into<String>) -> Self {
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
    pub fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self { terminal: true, ..Self::transient(reason, message) }
    }

    /// Whether the API server did not answer or another client was faster, so that the next try is likely to succeed.
    pub fn is_api_unavailable(&self) -> bool {
        self.reason == Reason::Retrying
    }
}

impl From<&SpecError> for Problem {
    fn from(error: &SpecError) -> Self {
        let message = error.to_string();
        match error {
            SpecError::AccountRequired => Self::terminal(Reason::ServiceAccountRequired, message),
            SpecError::AccountOfOtherNamespace { .. } => Self::terminal(Reason::ServiceAccountNotGranted, message),
            SpecError::IgnoredFields(_) | SpecError::ConfigTooDeep { .. } | SpecError::ReservedConfig { .. } => {
                Self::terminal(Reason::InvalidConfiguration, message)
            }
            SpecError::RevisionNotKept { .. } => Self::terminal(Reason::RevisionUnavailable, message),
            SpecError::NeverStored => Self::transient(Reason::InternalError, message),
        }
    }
}

impl From<&Undecided> for Problem {
    fn from(error: &Undecided) -> Self {
        let message = error.to_string();
        match error {
            Undecided::Unrecognised { opinions } => {
                let is_transient = |answer: &Answer| matches!(answer, Answer::Failed { is_transient: true, .. });
                let terminal = !opinions.iter().any(|opinion| is_transient(&opinion.answer));
                Self { terminal, ..Self::transient(Reason::ProvisionerNotDetected, message) }
            }
            Undecided::IncumbentDeclines { .. } => Self::terminal(Reason::ProvisionerNotDetected, message),
            Undecided::Ambiguous { .. } => Self::terminal(Reason::ProvisionerAmbiguous, message),
            Undecided::IncumbentUnavailable { is_gone: true, .. } => {
                Self::transient(Reason::ProvisionerMissing, message)
            }
            Undecided::NotReady { .. } | Undecided::Loading(_) | Undecided::IncumbentUnavailable { .. } => {
                Self::transient(Reason::ProvisionerNotReady, message)
            }
        }
    }
}

impl From<&RolloutError> for Problem {
    fn from(error: &RolloutError) -> Self {
        let reason = error.reason();
        let terminal = matches!(
            reason,
            Reason::InvalidOutput
                | Reason::InvalidConfiguration
                | Reason::ReservedObjects
                | Reason::CRDCheckLimitExceeded
        );
        let missing_permissions = match error {
            RolloutError::PermissionsMissing(found) => account::missing(found),
            _ => Vec::new(),
        };
        let needs_grant = error.needs_grant();
        let refusal = (reason == Reason::ObjectRefused && error.is_refusal()).then_some(Refusal::Validation);
        let collisions = match error {
            RolloutError::Collisions(collisions) => {
                collisions.found.iter().map(|collision| collision.object.clone()).collect()
            }
            _ => Vec::new(),
        };
        Self {
            terminal,
            needs_grant,
            refusal,
            missing_permissions,
            collisions,
            ..Self::transient(reason, error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_part_of_the_problem() {
        let error = RolloutError::PermissionsMissing(Box::new(account::tests::found(2, 0)));
        let problem = Problem::from(&error);
        assert_eq!(
            (problem.reason, problem.terminal, problem.missing_permissions.len()),
            (Reason::PermissionsMissing, false, 2)
        );
        assert_eq!(Problem::from(&RolloutError::Cancelled).missing_permissions, []);
    }
}
