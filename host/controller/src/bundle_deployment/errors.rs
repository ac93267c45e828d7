//! How the errors of the steps become the problem that the status reports, and the outcome of the reconcile. In one place.

use chandler_api::{Reason, names::REGISTRY_CLASS};
use chandler_certificates::completion::CompletionError;
use chandler_decisions::{
    assessment::{ReconcileOutcome, Selection},
    problem::Problem,
    spec_error::SpecError,
};
use chandler_engine::CallError;
use chandler_records::RecordError;
use chandler_rollout::RolloutError;

use super::steps::{
    apply::ApplyError,
    approve::{ApproveError, NotApproved, PreviewError},
    certificates::CertificatesError,
    choose::ChooseError,
    finalize::FinalizeError,
    prepare::{PreparationPanicked, PrepareError, PrepareFailure},
    render::RenderError,
    rerender::{RerenderCause, RerenderError},
    restore::RestoreError,
    rollout::RolloutFailure,
    unpack::UnpackError,
};
use crate::problem;

/// The steps ended before a rollout: how far they came, and what is known of the candidate.
pub(super) struct Halted {
    pub(super) selection: Selection,
    pub(super) outcome: ReconcileOutcome,
}

impl Halted {
    fn early(outcome: ReconcileOutcome) -> Self {
        Self { selection: Selection::default(), outcome }
    }
}

/// Boxes the conversions, so that the error is small enough to be returned by every step.
macro_rules! boxed {
    ($($error:ty),+) => {$(
        impl From<$error> for Box<Halted> {
            fn from(error: $error) -> Self {
                Self::new(Halted::from(error))
            }
        }
    )+};
}

boxed!(SpecError, ChooseError);

impl From<Box<NotApproved>> for Box<Halted> {
    fn from(error: Box<NotApproved>) -> Self {
        Self::new(Halted::from(*error))
    }
}

impl From<SpecError> for Halted {
    fn from(error: SpecError) -> Self {
        Self::early(ReconcileOutcome::RenderFailed(Problem::from(&error)))
    }
}

impl From<ChooseError> for Halted {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Pending => Self::early(ReconcileOutcome::Preparing),
            ChooseError::Spec(error) => error.into(),
            ChooseError::Prepare(failure) => Self::from(*failure),
            ChooseError::Restore { error, unpacked } => Self {
                selection: Selection { unpacked: unpacked.map(|unpacked| *unpacked), ..Selection::default() },
                outcome: ReconcileOutcome::RenderFailed(Problem::from(&error)),
            },
        }
    }
}

impl From<PrepareFailure> for Halted {
    fn from(failure: PrepareFailure) -> Self {
        let PrepareFailure { unpacked, provisioner, error } = failure;
        let outcome = match &error {
            PrepareError::Class(error) => ReconcileOutcome::ProvisionerUnavailable(error.0.clone()),
            PrepareError::Account(error) => ReconcileOutcome::UnpackFailed(Problem::from(error)),
            PrepareError::Detect(error) => ReconcileOutcome::ProvisionerUnavailable(Problem::from(error)),
            PrepareError::Unpack(UnpackError(problem)) if problem.reason == Reason::UploadPending => {
                ReconcileOutcome::UploadPending(problem.message.clone())
            }
            PrepareError::Unpack(error) => ReconcileOutcome::UnpackFailed(error.0.clone()),
            PrepareError::Spec(error) => ReconcileOutcome::RenderFailed(Problem::from(error)),
            PrepareError::Values(error) => ReconcileOutcome::RenderFailed(Problem::from(error)),
            PrepareError::Render(error @ RenderError::Quarantined(_)) => {
                ReconcileOutcome::ProvisionerUnavailable(Problem::from(error))
            }
            PrepareError::Render(error) => {
                let class = provisioner.as_ref().map(|provisioner| provisioner.class.as_str());
                ReconcileOutcome::RenderFailed(as_rukpak(class.unwrap_or_default(), error))
            }
            PrepareError::Panicked(error) => ReconcileOutcome::RenderFailed(Problem::from(error)),
        };
        Self { selection: Selection { unpacked, provisioner, ..Selection::default() }, outcome }
    }
}

/// The problem of a bundle that the provisioner refuses. For registry+v1 the message begins like rukpak's, which scripts match.
fn as_rukpak(class: &str, error: &RenderError) -> Problem {
    let problem = Problem::from(error);
    let is_refusal = matches!(
        error,
        RenderError::Call(
            CallError::InvalidContent(_) | CallError::InvalidConfiguration(_) | CallError::UnsupportedContent(_)
        )
    );
    if class != REGISTRY_CLASS || !is_refusal {
        return problem;
    }
    Problem { message: format!("convert registry+v1 bundle to plain+v0 bundle: {}", problem.message), ..problem }
}

impl From<NotApproved> for Halted {
    fn from(NotApproved { selection, error }: NotApproved) -> Self {
        let outcome = match &error {
            ApproveError::Required => ReconcileOutcome::ApprovalRequired,
            ApproveError::Preview(error) => ReconcileOutcome::PreviewFailed(Problem::from(error)),
        };
        Self { selection, outcome }
    }
}

impl From<&RenderError> for Problem {
    fn from(error: &RenderError) -> Self {
        match error {
            RenderError::Call(error) => problem::called(error),
            RenderError::Quarantined(error) => {
                let problem = Self::transient(Reason::ProvisionerQuarantined, error.to_string());
                Self { retry_after: error.left, ..problem }
            }
        }
    }
}

impl From<&PreparationPanicked> for Problem {
    fn from(error: &PreparationPanicked) -> Self {
        Self::transient(Reason::InternalError, error.to_string())
    }
}

impl From<&RerenderError> for Problem {
    fn from(error: &RerenderError) -> Self {
        let problem = match &error.cause {
            RerenderCause::Class(error) => error.0.clone(),
            RerenderCause::Account(error) => Self::from(error),
            RerenderCause::Unpack(error) => error.0.clone(),
            RerenderCause::Render(error) => Self::from(error),
            RerenderCause::Values(error) => Self::from(error),
            RerenderCause::ConfigNotKept | RerenderCause::ValuesNotKept(_) | RerenderCause::Differs(_) => {
                Self::terminal(Reason::RevisionUnavailable, error.cause.to_string())
            }
        };
        Self { message: error.to_string(), ..problem }
    }
}

impl From<&RestoreError> for Problem {
    fn from(error: &RestoreError) -> Self {
        match error {
            RestoreError::Pending(_) => Self::transient(Reason::Unpacking, error.to_string()),
            RestoreError::Rerender(error) => Self::from(error),
            RestoreError::Panicked(error) => Self::from(error),
        }
    }
}

impl From<&CertificatesError> for Problem {
    fn from(CertificatesError(error): &CertificatesError) -> Self {
        match error {
            CompletionError::Declaration(_) | CompletionError::Generated(_) => {
                Self::terminal(Reason::InvalidOutput, error.to_string())
            }
            CompletionError::Read(error) => Self::from(error),
            CompletionError::Issue(_) | CompletionError::Object(_) | CompletionError::Randomness(_) => {
                Self::transient(Reason::InternalError, error.to_string())
            }
        }
    }
}

impl From<&PreviewError> for Problem {
    fn from(error: &PreviewError) -> Self {
        match error {
            PreviewError::Spec(error) => Self::from(error),
            PreviewError::Certificates(error) => Self::from(error),
            PreviewError::Rollout(error) => Self::from(error),
        }
    }
}

impl From<&FinalizeError> for Problem {
    fn from(error: &FinalizeError) -> Self {
        match error {
            FinalizeError::Spec(error) => Self::from(error),
            FinalizeError::Rollout(error) => Self::from(error),
        }
    }
}

impl From<&RolloutFailure> for Problem {
    fn from(failure: &RolloutFailure) -> Self {
        match failure {
            RolloutFailure::Spec(error) => Self::from(error),
            RolloutFailure::Certificates(error) => Self::from(error),
            RolloutFailure::Observe(error) => Self::from(&error.0),
            RolloutFailure::Apply(error) => Self::from(&error.0),
            RolloutFailure::Record(error) => not_recorded(error),
        }
    }
}

/// The outcome of a reconcile whose rollout failed. A rollout first writes the record, so a record that cannot be written is reported as
/// such if the failure persists.
pub(super) fn apply_failed(failure: &RolloutFailure, persists: bool) -> ReconcileOutcome {
    match failure {
        RolloutFailure::Apply(ApplyError(RolloutError::Ledger(error))) if persists || !error.transient => {
            ReconcileOutcome::RecordUnavailable(Problem::transient(Reason::RecordUnavailable, error.to_string()))
        }
        failure => ReconcileOutcome::ApplyFailed(Problem::from(failure)),
    }
}

/// A record that could not be read or written.
pub(super) fn not_recorded(error: &RecordError) -> Problem {
    let reason = match error {
        RecordError::Older { .. } => Reason::RecordOutdated,
        _ => Reason::RecordUnavailable,
    };
    Problem::transient(reason, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chandler_rollout::LedgerError;

    use super::*;

    #[test]
    fn a_record_that_cannot_be_written_is_reported_as_such_when_that_persists() {
        let failure = |transient| {
            let error = LedgerError { message: "failed to write Secret s/r: no".into(), transient };
            RolloutFailure::Apply(ApplyError(RolloutError::Ledger(error)))
        };
        let reason = |transient, persists| match apply_failed(&failure(transient), persists) {
            ReconcileOutcome::RecordUnavailable(problem) => (true, problem.reason),
            ReconcileOutcome::ApplyFailed(problem) => (false, problem.reason),
            outcome => panic!("{outcome:?}"),
        };
        assert_eq!(reason(true, false), (false, Reason::Retrying));
        assert_eq!(reason(true, true), (true, Reason::RecordUnavailable));
        assert_eq!(reason(false, false), (true, Reason::RecordUnavailable));
    }

    #[test]
    fn a_revision_that_cannot_be_rendered_again_is_named_in_the_message() {
        let error = RerenderError { revision: 3, cause: RerenderCause::Differs("its release was a".into()) };
        let problem = Problem::from(&RestoreError::from(error));
        assert_eq!(
            (problem.reason, problem.terminal, problem.message.as_str()),
            (Reason::RevisionUnavailable, true, "revision 3: its release was a")
        );
    }

    #[test]
    fn a_refused_bundle_of_registry_v1_begins_as_with_rukpak() {
        let message = |class, error| as_rukpak(class, &RenderError::Call(error)).message;
        let invalid = || CallError::InvalidContent(vec![]);
        let text = message("core-rukpak-io-plain", invalid());
        assert!(chandler_builtin::find(REGISTRY_CLASS).is_some());
        assert_eq!(
            message(REGISTRY_CLASS, invalid()),
            format!("convert registry+v1 bundle to plain+v0 bundle: {text}")
        );
        let limit = Duration::from_secs(1);
        let timeout = message("core-rukpak-io-plain", CallError::Timeout { limit });
        assert_eq!(message(REGISTRY_CLASS, CallError::Timeout { limit }), timeout, "it is not about the bundle");
    }

    #[test]
    fn a_rollout_is_not_retried_where_only_the_bundle_or_the_spec_helps() {
        for (error, terminal) in [
            (RolloutError::Reserved(vec![]), true),
            (RolloutError::Cancelled, false),
            (RolloutError::NamespacesNotFound(vec![]), false),
        ] {
            assert_eq!(Problem::from(&error).terminal, terminal, "{error:?}");
        }
    }
}
