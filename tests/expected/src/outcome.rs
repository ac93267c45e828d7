//! What became of a bundle.

use std::fmt;

use chandler_sdk::{Diagnostic, Failure};
use serde_json::Value;

/// What kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The bundle is wrong.
    Content,
    /// The configuration is wrong.
    Configuration,
    /// The bundle asks for what cannot be done.
    Unsupported,
    /// The provisioner or the host failed, for this reason.
    Other(&'static str),
}

impl Refusal {
    /// What the reference's refusal is about, told from its text.
    pub fn of_reference(text: &str) -> Self {
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

/// What is told of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// A code such as `InvalidYaml`; empty where the refusal is no finding.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// Whether it says where that is and what would help.
    pub explained: bool,
}

impl Finding {
    /// A text alone.
    pub fn text(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// What became of a bundle.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The objects of the release.
    Objects(Vec<Value>),
    /// Why there is none: the kind, and at least one finding.
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
    // A file that is missing has no lines, and the configuration has its lines only where it was written.
    let placed = place.is_some_and(|place| place.start.is_some() || place.pointer.is_some());
    Finding {
        code: finding.code.clone(),
        message: finding.message.clone(),
        explained: placed && finding.help.is_some(),
    }
}
