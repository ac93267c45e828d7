//! What the status reports about a reconcile that could not be finished: a finalizer or a record that cannot be written.

use chandler_api::{BundleDeployment, BundleDeploymentStatus, Reason};
use chandler_decisions::{
    assessment::{Assessment, ReconcileOutcome},
    problem::Problem,
    redaction, status,
};
use chandler_source::api_message;
use chandler_values::Redactor;
use k8s_openapi::jiff::Timestamp;

use super::super::{ReconcileError, TRANSIENT_FAILURES, errors};

/// The status after a reconcile that ended with an error, if it can and should report the cause. `failures` is the number of failed
/// reconciles in a row before it.
pub(in super::super) fn status(
    deployment: &BundleDeployment,
    error: &ReconcileError,
    (failures, redactor): (u32, &Redactor),
) -> Option<BundleDeploymentStatus> {
    let outcome = conclusion(error, failures)?;
    let status = status::derive(deployment, &Assessment::early(outcome), Timestamp::now());
    Some(redaction::hide(redactor, status).into_inner())
}

/// What the status reports about an error, after this many failures in a row. `None` for an error that the next reconcile is likely to
/// resolve, for an object that is gone, and if the status itself cannot be written.
fn conclusion(error: &ReconcileError, failures: u32) -> Option<ReconcileOutcome> {
    let persists = failures >= TRANSIENT_FAILURES;
    match error {
        ReconcileError::Finalizers(source) => finalizers(source, persists).map(ReconcileOutcome::FinalizersNotWritten),
        ReconcileError::Record(error) if persists || !error.is_transient() => {
            Some(ReconcileOutcome::RecordUnavailable(errors::not_recorded(error)))
        }
        ReconcileError::Record(_) | ReconcileError::Status(_) | ReconcileError::Transient(_) => None,
    }
}

/// Why the finalizers could not be written. An answer that the API server may give differently a moment later counts only when it
/// persists.
fn finalizers(error: &kube::Error, persists: bool) -> Option<Problem> {
    let code = match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let reason = match code {
        // The object changed, or is gone: the watch will deliver that.
        404 | 409 => return None,
        403 => Reason::Forbidden,
        400..=499 if code != 429 => Reason::ObjectRefused,
        _ if persists => Reason::Retrying,
        _ => return None,
    };
    Some(Problem::transient(reason, format!("failed to write the finalizers: {}", api_message(error))))
}

#[cfg(test)]
mod tests {
    use chandler_records::RecordError;
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> ReconcileError {
        let status = Status { code, message: "no".into(), ..Status::default() };
        ReconcileError::Finalizers(kube::Error::Api(Box::new(status)))
    }

    fn reported(error: &ReconcileError, failures: u32) -> Option<Reason> {
        match conclusion(error, failures) {
            Some(ReconcileOutcome::FinalizersNotWritten(problem) | ReconcileOutcome::RecordUnavailable(problem)) => {
                Some(problem.reason)
            }
            _ => None,
        }
    }

    #[test]
    fn a_refused_finalizer_is_reported_at_once_and_a_transient_failure_when_it_persists() {
        for (code, first, persisting) in [
            (403, Some(Reason::Forbidden), Some(Reason::Forbidden)),
            (422, Some(Reason::ObjectRefused), Some(Reason::ObjectRefused)),
            (429, None, Some(Reason::Retrying)),
            (500, None, Some(Reason::Retrying)),
            (404, None, None),
            (409, None, None),
        ] {
            let error = refused(code);
            assert_eq!((reported(&error, 0), reported(&error, TRANSIENT_FAILURES)), (first, persisting), "{code}");
        }
    }

    #[test]
    fn a_record_that_cannot_be_read_is_reported_and_an_unwritable_status_is_not() {
        let record = |transient| {
            let (namespace, name, message) = ("s".into(), "r".into(), "no".into());
            ReconcileError::Record(RecordError::Request { action: "read", namespace, name, message, transient })
        };
        assert_eq!(reported(&record(false), 0), Some(Reason::RecordUnavailable));
        assert_eq!(reported(&record(true), 0), None);
        assert_eq!(reported(&record(true), TRANSIENT_FAILURES), Some(Reason::RecordUnavailable));
        let ReconcileError::Finalizers(source) = refused(403) else { unreachable!("it is one of finalizers") };
        assert_eq!(reported(&ReconcileError::Status(source), 9), None);
    }
}
