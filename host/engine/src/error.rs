//! Every way in which loading or calling a provisioner fails, each with the reason and the retry that a status shows.
//!
//! Texts are stable under retry: they name limits and not what was measured, functions and not addresses.

use std::{fmt, time::Duration};

use chandler_core::{Diagnostic, ObjectError, ObjectKey, Reason, Severity};

use crate::{CallLog, LimitKind, MissingImport, limits};

/// When it is worth trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Only when the content, the configuration or the provisioner has changed.
    OnChange,
    /// After a while: the cause may have gone.
    BackOff,
}

/// Why an engine could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime refused the configuration, or this machine cannot run it.
    #[error("failed to set up the Wasm engine: {0}")]
    Wasmtime(String),
    /// A thread could not be started.
    #[error("failed to start the threads of the Wasm engine: {0}")]
    Threads(#[source] std::io::Error),
    /// The directory for compiled code cannot be used.
    #[error("failed to use {path} for compiled code: {problem}", path = path.display())]
    Cache {
        /// The directory, or the file in it.
        path: std::path::PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// Why a component could not be loaded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is not a component, or not well-formed.
    #[error("is not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// It is larger than [`EngineOptions::component_bytes`](crate::EngineOptions::component_bytes).
    #[error("the component is larger than {}", limits::bytes(*limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// It is small as bytes, and too large when everything that it instantiates is counted.
    #[error("{0}")]
    LimitExceeded(Box<LimitExceeded>),
    /// The custom section with its facts is malformed.
    #[error("the custom section `chandler:provisioner` is malformed: {0}")]
    Facts(String),
    /// It is built against a version of the contract that this host does not speak, or does not export what the contract
    /// asks for.
    #[error("the contract is not supported: {0}")]
    UnsupportedContract(String),
    /// It declares capabilities that were not granted.
    #[error("capabilities are declared that nothing grants: {}", .0.join(", "))]
    MissingCapabilities(Vec<String>),
    /// It imports what this host does not provide; all of that.
    #[error("imports that this host does not provide: {}", MissingImport::list(.0))]
    MissingImports(Vec<MissingImport>),
    /// It could not be compiled.
    #[error("failed to compile: {0}")]
    Compile(#[from] CompileError),
    /// The host failed.
    #[error("internal error: {0}")]
    Internal(String),
}

impl LoadError {
    /// The reason for a condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotAComponent(_) | Self::TooLarge { .. } | Self::Facts(_) => Reason::InvalidComponent,
            Self::LimitExceeded(_) => Reason::PluginLimitExceeded,
            Self::UnsupportedContract(_) => Reason::UnsupportedContract,
            Self::MissingCapabilities(_) => Reason::MissingCapabilities,
            Self::MissingImports(_) => Reason::MissingImports,
            Self::Compile(_) => Reason::CompileFailed,
            Self::Internal(_) => Reason::InternalError,
        }
    }

    /// When it is worth trying again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Internal(_) => Retry::BackOff,
            Self::Compile(error) => error.retry(),
            _ => Retry::OnChange,
        }
    }
}

/// Why a component could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The compiler refused it.
    #[error("{0}")]
    Refused(String),
    /// The wall time limit.
    #[error("not done after {}", seconds(*.0))]
    Timeout(Duration),
    /// The CPU time limit.
    #[error("more than {} of CPU time", seconds(*.0))]
    CpuTime(Duration),
    /// The memory limit.
    #[error("more than {} of memory", limits::bytes(*.0))]
    OutOfMemory(u64),
    /// The code is larger than the limit.
    #[error("more than {} of code", limits::bytes(*.0))]
    TooMuchCode(u64),
    /// The compiler's process ended in another way.
    #[error("the compiler ended with {0}")]
    Crashed(String),
    /// It harmed the compiler, now or within the last hour, as the text says.
    #[error(
        "{0}; Chandler compiles it again when an hour has passed, or when the component or Chandler's version is another one"
    )]
    Quarantined(String),
    /// The compiler's process could not be run.
    #[error("failed to run the compiler {0}")]
    Unavailable(String),
}

impl CompileError {
    /// Whether the compiler hung, crashed or used more than it may, so that it does not get the same component soon again.
    pub(crate) fn harms(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::CpuTime(_) | Self::OutOfMemory(_) | Self::TooMuchCode(_) | Self::Crashed(_) => {
                true
            }
            Self::Refused(_) | Self::Quarantined(_) | Self::Unavailable(_) => false,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Timeout(_) | Self::Crashed(_) | Self::Quarantined(_) | Self::Unavailable(_) => Retry::BackOff,
            Self::Refused(_) | Self::CpuTime(_) | Self::OutOfMemory(_) | Self::TooMuchCode(_) => Retry::OnChange,
        }
    }
}

/// Why a call of a provisioner failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// It did not return in time.
    #[error("the provisioner did not finish within {}", seconds(*limit))]
    Timeout {
        /// [`Limits::time`](crate::Limits::time).
        limit: Duration,
    },
    /// It asked for more memory than it may have.
    #[error("the provisioner needs more than {} of memory", limits::bytes(*limit))]
    OutOfMemory {
        /// [`Limits::memory`](crate::Limits::memory).
        limit: u64,
    },
    /// It crashed.
    #[error("the provisioner crashed: {0}")]
    Trapped(Trapped),
    /// It exceeded another limit.
    #[error("{0}")]
    LimitExceeded(Box<LimitExceeded>),
    /// It returned what is no Kubernetes object, no text, or a schema that is none.
    #[error("the output of the provisioner is invalid: {0}")]
    InvalidOutput(Box<InvalidOutput>),
    /// The content is wrong.
    #[error("invalid content: {}", Findings(.0))]
    InvalidContent(Vec<Diagnostic>),
    /// The configuration is wrong.
    #[error("invalid configuration: {}", Findings(.0))]
    InvalidConfiguration(Vec<Diagnostic>),
    /// The content is legal but asks for something that this provisioner cannot do.
    #[error("unsupported content: {}", Findings(.0))]
    UnsupportedContent(Vec<Diagnostic>),
    /// It says that it failed.
    #[error("the provisioner failed{}: {}", reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default(), Findings(findings))]
    Failed {
        /// The reason that it gave, where it is none that the contract names.
        reason: Option<String>,
        /// What it found.
        findings: Vec<Diagnostic>,
    },
    /// The host failed.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CallError {
    /// The reason for a condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Timeout { .. } => Reason::PluginTimeout,
            Self::OutOfMemory { .. } => Reason::PluginOutOfMemory,
            Self::Trapped(_) => Reason::PluginTrapped,
            Self::LimitExceeded(_) => Reason::PluginLimitExceeded,
            Self::InvalidOutput(_) => Reason::InvalidOutput,
            Self::InvalidContent(_) => Reason::InvalidContent,
            Self::InvalidConfiguration(_) => Reason::InvalidConfiguration,
            Self::UnsupportedContent(_) => Reason::UnsupportedContent,
            Self::Failed { .. } => Reason::ProvisionFailed,
            Self::Internal(_) => Reason::InternalError,
        }
    }

    /// When it is worth trying again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Timeout { .. }
            | Self::OutOfMemory { .. }
            | Self::Trapped(_)
            | Self::Failed { .. }
            | Self::Internal(_) => Retry::BackOff,
            Self::LimitExceeded(_)
            | Self::InvalidOutput(_)
            | Self::InvalidContent(_)
            | Self::InvalidConfiguration(_)
            | Self::UnsupportedContent(_) => Retry::OnChange,
        }
    }

    /// The findings that the failure consists of, and what was reported before it.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::InvalidContent(findings)
            | Self::InvalidConfiguration(findings)
            | Self::UnsupportedContent(findings)
            | Self::Failed { findings, .. } => findings,
            _ => &[],
        }
    }
}

/// A crash of a guest.
#[derive(Clone, Debug)]
pub struct Trapped {
    /// What wasmtime says, such as `wasm trap: wasm 'unreachable' instruction executed`.
    pub trap: String,
    /// The innermost functions of the guest, by name.
    pub frames: Vec<String>,
    /// What the guest had logged and written.
    pub log: CallLog,
}

impl fmt::Display for Trapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.trap)?;
        if !self.frames.is_empty() {
            write!(f, " in {}", self.frames.join(" < "))?;
        }
        match self.log.last_words() {
            Some(words) => write!(f, ": {words}"),
            None => Ok(()),
        }
    }
}

/// A limit that a guest exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// Which limit.
    pub kind: LimitKind,
    /// Its value.
    pub limit: u64,
    /// The object that was refused.
    pub object: Option<Emitted>,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the provisioner exceeded the limit of {} {}", self.limit, self.kind.subject())?;
        match &self.object {
            Some(object) => write!(f, " with {object}"),
            None => Ok(()),
        }
    }
}

/// An object of the output, by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Its index among those that were emitted, from 0.
    pub index: usize,
    /// Its identity, where it has one.
    pub key: Option<ObjectKey>,
    /// Where in the bundle the provisioner says it is from.
    pub origin: Option<chandler_core::Location>,
}

impl fmt::Display for Emitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.index)?;
        match (&self.key, &self.origin) {
            (Some(key), Some(origin)) => write!(f, " ({key}, from {origin})"),
            (Some(key), None) => write!(f, " ({key})"),
            (None, Some(origin)) => write!(f, " (from {origin})"),
            (None, None) => Ok(()),
        }
    }
}

/// Output that the host refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOutput {
    /// Not a Kubernetes object.
    Object {
        /// Which.
        object: Emitted,
        /// What is wrong with it.
        problem: ObjectError,
    },
    /// An object with the same group, kind, namespace and name was emitted before.
    Duplicate {
        /// Which.
        object: Emitted,
        /// The index of the first one.
        first: usize,
    },
    /// A probe that lacks a part.
    Probe {
        /// Its index, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// What `config-schema` returned is no JSON schema that the host accepts.
    Schema(String),
    /// A failure whose list of findings is empty, or another breach of the contract.
    Contract(String),
}

impl fmt::Display for InvalidOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { object, problem } => write!(f, "{object} {problem}"),
            Self::Duplicate { object, first } => write!(f, "{object} is the same object as object {first}"),
            Self::Probe { index, problem } => write!(f, "probe {index} {problem}"),
            Self::Schema(problem) => write!(f, "the configuration schema {problem}"),
            Self::Contract(problem) => f.write_str(problem),
        }
    }
}

/// Errors as one text: the one, or all of them (the first ten) in lines. Warnings are no reason for a failure.
struct Findings<'a>(&'a [Diagnostic]);

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
        let mut errors: Vec<_> = self.0.iter().filter(is_error).collect();
        if errors.is_empty() {
            errors.extend(self.0);
        }
        match errors.as_slice() {
            [] => f.write_str("no details"),
            [one] => write!(f, "{one}"),
            several => {
                f.write_str("multiple errors found:")?;
                for finding in several.iter().take(SHOWN) {
                    write!(f, "\n  - {finding}")?;
                }
                match several.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n  - and {more} more"),
                }
            }
        }
    }
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
