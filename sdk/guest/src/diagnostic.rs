//! Findings with positions, and why nothing could be provisioned.

use std::fmt;

use chandler_yaml::Node;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The content cannot be installed as it is.
    Error,
    /// It can be installed, but somebody should look at this.
    Warning,
    /// Worth knowing.
    Info,
}

/// A place in the content or, with the path `config`, in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file's path in the bundle.
    pub path: String,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The column, counted from 1 in Unicode scalar values.
    pub column: Option<u32>,
    /// A JSON pointer (RFC 6901) into the document at that place.
    pub pointer: Option<String>,
}

impl Location {
    /// The path of locations in the configuration.
    pub const CONFIG: &'static str = "config";

    /// A whole file.
    pub fn file(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// The place of a node in a file.
    pub fn of(path: impl Into<String>, node: &Node) -> Self {
        Self { path: path.into(), line: Some(node.line), column: Some(node.column), pointer: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}")?,
            (Some(line), None) => write!(f, ":{line}")?,
            _ => {}
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
    /// How grave it is.
    pub severity: Severity,
    /// A stable CamelCase code that scripts may match.
    pub code: String,
    /// What is wrong, as a sentence fragment without a full stop.
    pub message: String,
    /// Where it is.
    pub location: Option<Location>,
    /// What would mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding of this severity.
    pub fn new(severity: Severity, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity, code: code.into(), message: message.into(), location: None, help: None }
    }

    /// A finding that stops the installation.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A finding that somebody should look at.
    pub fn warning(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A finding that is worth knowing.
    pub fn info(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, code, message)
    }

    /// It is in this file.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.location.get_or_insert_default().path = path.into();
        self
    }

    /// It is at this line and column.
    pub fn position(mut self, line: u32, column: u32) -> Self {
        let location = self.location.get_or_insert_default();
        (location.line, location.column) = (Some(line), Some(column));
        self
    }

    /// It is at the place of this node.
    pub fn node(self, node: &Node) -> Self {
        self.position(node.line, node.column)
    }

    /// It is at this JSON pointer of the document.
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.location.get_or_insert_default().pointer = Some(pointer.into());
        self
    }

    /// It is at this JSON pointer of this document: position and pointer at once. Where nothing stands there, the position
    /// is that of what is nearest.
    pub fn within(self, document: &Node, pointer: &str) -> Self {
        self.node(document.nearest(pointer)).pointer(pointer)
    }

    /// This would mend it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
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

/// Why nothing could be provisioned. The case decides when the host tries again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The content is wrong; only other content helps.
    InvalidContent(Vec<Diagnostic>),
    /// The configuration is wrong; only another configuration helps.
    InvalidConfig(Vec<Diagnostic>),
    /// The content is legal but asks for something that this provisioner cannot do.
    Unsupported(Vec<Diagnostic>),
    /// The provisioner itself failed. The host tries again later.
    Internal(String),
}

impl Failure {
    /// What it found; nothing for [`Internal`](Self::Internal).
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::InvalidContent(findings) | Self::InvalidConfig(findings) | Self::Unsupported(findings) => findings,
            Self::Internal(_) => &[],
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, findings) = match self {
            Self::InvalidContent(findings) => ("invalid content", findings),
            Self::InvalidConfig(findings) => ("invalid configuration", findings),
            Self::Unsupported(findings) => ("unsupported", findings),
            Self::Internal(message) => return write!(f, "internal error: {message}"),
        };
        f.write_str(what)?;
        findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl std::error::Error for Failure {}
