//! Measures reconciles.

use std::time::Duration;

use chandler_core::Reason;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It completed. The status may still report a problem of the object.
    Completed,
    /// It wrote an object that had changed since it was read, and is retried.
    Conflict,
    /// It failed and is retried.
    Failed,
    /// The object could not be decoded.
    Undecodable,
}

impl Outcome {
    /// The value of a metric label: `completed`, `conflict`, `failed` or `undecodable`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Undecodable => "undecodable",
        }
    }
}

/// Receives a measurement of every reconcile of every kind.
pub trait Metrics: Send + Sync + 'static {
    /// A reconcile of an object of this kind ended. The reason is the one of the condition `Ready` afterwards, if the status has a known one.
    fn reconciled(&self, kind: &str, outcome: Outcome, reason: Option<Reason>, duration: Duration);
}

/// Logs each measurement at level `debug`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogMetrics;

impl Metrics for LogMetrics {
    fn reconciled(&self, kind: &str, outcome: Outcome, reason: Option<Reason>, duration: Duration) {
        let (outcome, reason) = (outcome.as_str(), reason.map(Reason::as_str));
        tracing::debug!(kind, outcome, reason, seconds = duration.as_secs_f64(), "reconciled");
    }
}
