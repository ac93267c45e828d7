//! Findings about content or configuration, with positions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The content cannot be installed as it is.
    Error,
    /// The content can be installed, but a person should check the finding.
    Warning,
    /// Information.
    Info,
}

/// A place in a bundle or, with the path `config`, in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The file's path in the bundle.
    pub path: String,
    /// The line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, counted from 1 in Unicode scalar values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line of the position after the last character, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column of that position, counted from 1 in Unicode scalar values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// A JSON pointer (RFC 6901) into the document at that position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        match &self.pointer {
            Some(pointer) if !pointer.is_empty() => write!(f, " ({pointer})"),
            _ => Ok(()),
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// A stable CamelCase code that scripts may match.
    pub code: String,
    /// What is wrong, as a sentence fragment without a full stop.
    pub message: String,
    /// The location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Related places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// How to fix the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The URL of a page that explains the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A place that helps to understand a finding, such as the first of two equal CRDs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Related {
    /// The place.
    pub location: Location,
    /// The relevance of the place, as a sentence fragment without a full stop.
    pub message: String,
}

impl Diagnostic {
    /// A finding without location, related places and help.
    pub fn new(severity: Severity, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            code: code.into(),
            message: message.into(),
            location: None,
            related: Vec::new(),
            help: None,
            url: None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let mut finding = Diagnostic {
            location: Some(Location {
                path: "manifests/a.yaml".into(),
                line: Some(3),
                column: Some(5),
                pointer: Some("/metadata".into()),
                ..Location::default()
            }),
            help: Some("add metadata.name".into()),
            ..Diagnostic::new(Severity::Error, "X", "name is missing")
        };
        assert_eq!(finding.to_string(), "manifests/a.yaml:3:5 (/metadata): name is missing (help: add metadata.name)");
        finding.location = None;
        finding.help = None;
        assert_eq!(finding.to_string(), "name is missing");
    }
}
