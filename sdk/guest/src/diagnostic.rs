//! Findings with positions, and why nothing could be provisioned.

use std::fmt;

use chandler_yaml::Node;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The content cannot be installed as it is.
    Error,
    /// It can be installed, but a person should look at this.
    Warning,
    /// Worth knowing.
    Info,
}

/// A position in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1 in Unicode scalar values; 0 where only the line is known.
    pub column: u32,
}

/// A place in the content or, with the path `config`, in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file's path in the bundle.
    pub path: String,
    /// The first character. None for the whole file.
    pub start: Option<Position>,
    /// The position behind the last character. None where only the beginning is known.
    pub end: Option<Position>,
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
        Self::file(path).starting_at(node.line, node.column)
    }

    /// The same from this line and column on.
    pub fn starting_at(self, line: u32, column: u32) -> Self {
        Self { start: Some(Position { line, column }), ..self }
    }

    /// The same up to, but without, this line and column.
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
    /// What is wrong, as a sentence fragment without a full stop.
    pub message: String,
    /// Where it is.
    pub location: Option<Location>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// How to fix it.
    pub help: Option<String>,
    /// An `https` or `http` URL of a page that explains it.
    pub url: Option<String>,
}

/// Another place that helps to understand a finding, such as the first of two definitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Related {
    /// The place.
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

    /// A finding that stops the installation.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A finding that a person should look at.
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
        self.location.get_or_insert_default().start = Some(Position { line, column });
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

    /// It ends in front of this line and column.
    pub fn until(mut self, line: u32, column: u32) -> Self {
        self.location.get_or_insert_default().end = Some(Position { line, column });
        self
    }

    /// Another place has to do with it.
    pub fn related(mut self, location: Location, message: impl Into<String>) -> Self {
        self.related.push(Related { location, message: message.into() });
        self
    }

    /// How to fix it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A page that explains it.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
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

/// Why a call failed. The case decides when the host tries again. The host refuses a list of findings that is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The content is wrong. Only other content helps.
    InvalidContent(Vec<Diagnostic>),
    /// The configuration is wrong. Only another configuration helps.
    InvalidConfig(Vec<Diagnostic>),
    /// The content is legal but asks for something that this provisioner cannot do.
    Unsupported(Vec<Diagnostic>),
    /// The provisioner itself failed. The host tries again later. See [`internal`](Self::internal).
    Internal(Vec<Diagnostic>),
    /// Something else. The host tries again later.
    Other {
        /// A stable CamelCase reason.
        reason: String,
        /// What was found.
        findings: Vec<Diagnostic>,
    },
}

impl Failure {
    /// The provisioner itself failed, in words.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(vec![Diagnostic::error("InternalError", message)])
    }

    /// What it found.
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
