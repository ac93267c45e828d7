//! The report as a badge: the JSON that shields.io reads from an endpoint.

use serde::Serialize;

use crate::Report;

/// A badge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Badge {
    schema_version: u8,
    label: &'static str,
    message: String,
    color: &'static str,
}

impl Badge {
    /// The badge of a report.
    pub fn of(report: &Report) -> Self {
        let (passed, failed) = (report.passed(), report.failed());
        let (message, color) = match failed {
            0 => (format!("{passed} passed"), "brightgreen"),
            failed => (format!("{failed} failed"), "red"),
        };
        Self { schema_version: 1, label: "chandler conformance", message, color }
    }
}
