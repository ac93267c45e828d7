//! The outcome of rendering a bundle.

use std::fmt;

use chandler_sdk::{Diagnostic, Failure};
use serde_json::Value;

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The bundle is invalid.
    Content,
    /// The configuration is invalid.
    Configuration,
    /// The bundle needs an unsupported feature.
    Unsupported,
    /// The provisioner or the host failed, for this reason.
    Other(&'static str),
}

impl Refusal {
    /// Classifies an error of OLM v1 by its text.
    pub fn of_olm_error(text: &str) -> Self {
        let classes = [
            ("invalid configuration: ", Self::Configuration),
            ("unsupported bundle: ", Self::Unsupported),
            ("invalid target namespaces", Self::Configuration),
        ];
        classes.iter().find(|(part, _)| text.contains(part)).map_or(Self::Content, |(_, class)| *class)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Content => "content",
            Self::Configuration => "configuration",
            Self::Unsupported => "unsupported",
            Self::Other(reason) => reason,
        })
    }
}

/// A finding of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// A code such as `InvalidYaml`; empty if the error is not a finding.
    pub code: String,
    /// The message.
    pub message: String,
    /// Whether it has a location and a help text.
    pub explained: bool,
}

impl Finding {
    /// A finding with only a message.
    pub fn text(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// The outcome of rendering a bundle.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The objects of the release.
    Objects(Vec<Value>),
    /// Why there is no release: the class, and at least one finding.
    Refused(Refusal, Vec<Finding>),
}

/// The messages of findings, in one line.
pub fn messages(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        let refusal = match failure {
            Failure::InvalidContent(_) => Refusal::Content,
            Failure::InvalidConfig(_) => Refusal::Configuration,
            Failure::Unsupported(_) => Refusal::Unsupported,
            _ => {
                return Self::Refused(Refusal::Other("Internal"), vec![Finding::text(failure.to_string())]);
            }
        };
        Self::Refused(refusal, failure.diagnostics().iter().map(finding).collect())
    }
}

fn finding(finding: &Diagnostic) -> Finding {
    let place = finding.location.as_ref();
    // A missing file has no lines, and the lines of the configuration are known only to its author.
    let placed = place.is_some_and(|place| place.start.is_some() || place.pointer.is_some());
    Finding {
        code: finding.code.clone(),
        message: finding.message.clone(),
        explained: placed && finding.help.is_some(),
    }
}
