//! Findings with positions, and failures of a call.

use std::fmt;

use chandler_yaml::Node;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The content cannot be installed as it is.
    Error,
    /// It can be installed, but a user should check this.
    Warning,
    /// For information.
    Info,
}

/// A position in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1 in Unicode scalar values; 0 if only the line is known.
    pub column: u32,
}

/// A location in the content or, with the path `config`, in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file's path in the bundle.
    pub path: String,
    /// The first character. None for the whole file.
    pub start: Option<Position>,
    /// The position behind the last character. None if only the beginning is known.
    pub end: Option<Position>,
    /// A JSON pointer (RFC 6901) into the document at that location.
    pub pointer: Option<String>,
}

impl Location {
    /// The path of locations in the configuration.
    pub const CONFIG: &'static str = "config";

    /// A whole file.
    pub fn file(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// The location of a node in a file.
    pub fn of(path: impl Into<String>, node: &Node) -> Self {
        Self::file(path).starting_at(node.line, node.column)
    }

    /// This location, starting at this line and column.
    pub fn starting_at(self, line: u32, column: u32) -> Self {
        Self { start: Some(Position { line, column }), ..self }
    }

    /// This location, ending before this line and column.
    pub fn ending_before(self, line: u32, column: u32) -> Self {
        Self { end: Some(Position { line, column }), ..self }
    }

    /// The line of its first character.
    pub fn line(&self) -> Option<u32> {
        self.start.map(|start| start.line)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match self.start {
            Some(Position { line, column: 0 }) => write!(f, ":{line}")?,
            Some(Position { line, column }) => write!(f, ":{line}:{column}")?,
            None => {}
        }
        match self.pointer.as_deref() {
            Some(pointer) if !pointer.is_empty() => write!(f, " ({pointer})"),
            _ => Ok(()),
        }
    }
}

/// One finding about the content or the configuration.
///
/// ```
/// use chandler_sdk::Diagnostic;
///
/// let finding = Diagnostic::error("NoName", "the package has no name").at("metadata/annotations.yaml").help("add one");
/// assert_eq!(finding.to_string(), "metadata/annotations.yaml: the package has no name (help: add one)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// A stable CamelCase code that scripts may match.
    pub code: String,
    /// The problem, as a sentence fragment without a full stop.
    pub message: String,
    /// Its location.
    pub location: Option<Location>,
    /// Related locations.
    pub related: Vec<Related>,
    /// Sets the advice how to fix it.
    pub help: Option<String>,
    /// An `https` or `http` URL of a page that explains it.
    pub url: Option<String>,
}

/// Another location that explains a finding, such as the first of two duplicates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Related {
    /// The location.
    pub location: Location,
    /// What is there, as a sentence fragment without a full stop.
    pub message: String,
}

impl Diagnostic {
    /// A finding of this severity.
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

    /// A finding that blocks the installation.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A finding that a user should check.
    pub fn warning(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A finding for information.
    pub fn info(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, code, message)
    }

    /// Sets the file.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.location.get_or_insert_default().path = path.into();
        self
    }

    /// Sets line and column.
    pub fn position(mut self, line: u32, column: u32) -> Self {
        self.location.get_or_insert_default().start = Some(Position { line, column });
        self
    }

    /// Sets line and column to the position of this node.
    pub fn node(self, node: &Node) -> Self {
        self.position(node.line, node.column)
    }

    /// Sets the JSON pointer into the document.
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.location.get_or_insert_default().pointer = Some(pointer.into());
        self
    }

    /// Sets position and JSON pointer from this document. If nothing exists at the pointer, the position of the nearest value is used.
    pub fn within(self, document: &Node, pointer: &str) -> Self {
        self.node(document.nearest(pointer)).pointer(pointer)
    }

    /// Sets the end: before this line and column.
    pub fn until(mut self, line: u32, column: u32) -> Self {
        self.location.get_or_insert_default().end = Some(Position { line, column });
        self
    }

    /// Adds a related location.
    pub fn related(mut self, location: Location, message: impl Into<String>) -> Self {
        self.related.push(Related { location, message: message.into() });
        self
    }

    /// Sets the advice how to fix it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the URL of a page that explains it.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }
}

/// The most findings of a failure that the host keeps by default, with one that counts the others.
#[cfg(any(target_arch = "wasm32", test))]
const FINDINGS: usize = 200;
/// The longest text of a finding that is passed on, in bytes. The host keeps less.
#[cfg(any(target_arch = "wasm32", test))]
const TEXT_BYTES: usize = 4096;

/// These findings, as many and as long as the host keeps: what is passed to it in one call is limited, and a broken file can have a
/// finding in every line.
#[cfg(any(target_arch = "wasm32", test))]
pub(crate) fn bounded(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let dropped = (findings.len() + 1).saturating_sub(FINDINGS);
    if dropped > 1 {
        findings.truncate(FINDINGS - 1);
        findings.push(Diagnostic::info("FindingsDropped", format!("{dropped} more findings were dropped")));
    }
    for finding in &mut findings {
        let related = finding.related.iter_mut().map(|related| &mut related.message);
        for text in [&mut finding.message].into_iter().chain(&mut finding.help).chain(related) {
            text.truncate(text.floor_char_boundary(TEXT_BYTES));
        }
    }
    findings
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

/// Why a call failed. The case decides when the host retries. The host refuses an empty list of findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The content is invalid. The host retries when it changes.
    InvalidContent(Vec<Diagnostic>),
    /// The configuration is invalid. The host retries when it changes.
    InvalidConfig(Vec<Diagnostic>),
    /// The content is valid but needs a feature that this provisioner lacks.
    Unsupported(Vec<Diagnostic>),
    /// The provisioner itself failed. The host retries later. See [`internal`](Self::internal).
    Internal(Vec<Diagnostic>),
    /// Another failure. The host retries later.
    Other {
        /// A stable CamelCase reason.
        reason: String,
        /// The findings.
        findings: Vec<Diagnostic>,
    },
}

impl Failure {
    /// A failure of the provisioner itself, with a message.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(vec![Diagnostic::error("InternalError", message)])
    }

    /// Its findings.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::InvalidContent(findings)
            | Self::InvalidConfig(findings)
            | Self::Unsupported(findings)
            | Self::Internal(findings)
            | Self::Other { findings, .. } => findings,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidContent(_) => "invalid content",
            Self::InvalidConfig(_) => "invalid configuration",
            Self::Unsupported(_) => "unsupported",
            Self::Internal(_) => "internal error",
            Self::Other { reason, .. } => reason,
        })?;
        self.diagnostics().iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_as_many_findings_as_the_host_keeps() {
        let many = |number: usize| vec![Diagnostic::error("Bad", "it is bad"); number];
        assert_eq!(bounded(many(FINDINGS)).len(), FINDINGS);
        let kept = bounded(many(100_000));
        assert_eq!(kept.len(), FINDINGS);
        assert_eq!(kept.last().map(ToString::to_string).as_deref(), Some("99801 more findings were dropped"));
        let long = Diagnostic::error("Bad", "ü".repeat(1 << 20)).help("x".repeat(1 << 20));
        let kept = bounded(vec![long.related(Location::file("a"), "y".repeat(1 << 20))]);
        let finding = kept.first().unwrap();
        assert_eq!((finding.message.len(), finding.help.as_ref().unwrap().len()), (TEXT_BYTES, TEXT_BYTES));
        assert_eq!(finding.related.first().unwrap().message.len(), TEXT_BYTES);
    }
}
