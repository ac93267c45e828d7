//! The errors of loading and calling a provisioner, each with the reason and the retry for the status.
//!
//! Messages do not change between retries: they contain limits instead of measured values, and function names instead
//! of addresses.

use std::{fmt, time::Duration};

use chandler_core::{Diagnostic, ObjectError, ObjectKey, Reason, Severity};

use crate::{CallLog, CompileLimits, LimitKind, MissingImport, limits};

/// When to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Only after the content, the configuration or the provisioner changes.
    OnChange,
    /// After a delay: the cause may be transient.
    BackOff,
}

/// Why an engine could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime rejected the configuration, or does not support this machine.
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
    /// The bytes are not a well-formed component.
    #[error("not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// The component is larger than [`EngineOptions::component_bytes`](crate::EngineOptions::component_bytes).
    #[error("the component is larger than {}", limits::bytes(*limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The component is too large once everything that it instantiates is counted.
    #[error("{0}")]
    LimitExceeded(Box<LimitExceeded>),
    /// The custom section with the component's metadata is malformed.
    #[error("the custom section `chandler:provisioner` is malformed: {0}")]
    Facts(String),
    /// The component is built against a version of the contract that this host does not support, or lacks an export
    /// that the contract requires.
    #[error("the contract is not supported: {0}")]
    UnsupportedContract(String),
    /// The component declares capabilities that were not granted.
    #[error("the component requires capabilities that were not granted: {}", .0.join(", "))]
    MissingCapabilities(Vec<String>),
    /// All imports that this host does not provide.
    #[error("imports that this host does not provide: {}", MissingImport::list(.0))]
    MissingImports(Vec<MissingImport>),
    /// The component could not be compiled.
    #[error("failed to compile: {0}")]
    Compile(#[from] CompileError),
    /// The host failed.
    #[error("internal error: {0}")]
    Internal(String),
}

impl LoadError {
    /// The reason for the condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotAComponent(_) | Self::TooLarge { .. } | Self::Facts(_) => Reason::InvalidComponent,
            Self::LimitExceeded(_) => Reason::PluginLimitExceeded,
            Self::UnsupportedContract(_) => Reason::UnsupportedContract,
            Self::MissingCapabilities(_) => Reason::MissingCapabilities,
            Self::MissingImports(_) => Reason::MissingImports,
            Self::Compile(CompileError::Timeout(_)) => Reason::CompilerBusy,
            Self::Compile(_) => Reason::CompileFailed,
            Self::Internal(_) => Reason::InternalError,
        }
    }

    /// When to retry.
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
    /// The compiler rejected the component.
    #[error("{0}")]
    Refused(String),
    /// The compiler exceeded the wall time limit and not the CPU time limit: the machine is too busy.
    #[error(
        "the compiler did not finish within {}, and did not use up its CPU time: the machine is busy, or the compiler hangs; Chandler retries",
        seconds(*.0)
    )]
    Timeout(Duration),
    /// The compiler exceeded the CPU time limit.
    #[error("the compiler needs more than {} of CPU time", seconds(*.0))]
    CpuTime(Duration),
    /// The compiler exceeded the memory limit.
    #[error("the compiler needs more than {} of memory", limits::bytes(*.0))]
    OutOfMemory(u64),
    /// The compiled code exceeds the limit.
    #[error("the compiled code is larger than {}", limits::bytes(*.0))]
    TooMuchCode(u64),
    /// The compiler process ended unexpectedly.
    #[error("the compiler ended with {0}")]
    Crashed(String),
    /// The component crashed the compiler or exceeded its limits, now or within the last hour. The text holds the
    /// original error.
    #[error(
        "{0}; Chandler retries after one hour, when the component or the version of Chandler changes, or when a reconcile of the class is \
         requested"
    )]
    Quarantined(String),
    /// The compiler process could not be started.
    #[error("failed to run the compiler {0}")]
    Unavailable(String),
}

impl CompileError {
    /// Whether the compiler crashed or exceeded a limit that does not depend on the load of the machine, so that the component must be
    /// quarantined.
    pub(crate) fn needs_quarantine(&self) -> bool {
        match self {
            Self::CpuTime(_) | Self::OutOfMemory(_) | Self::TooMuchCode(_) | Self::Crashed(_) => true,
            Self::Timeout(_) | Self::Refused(_) | Self::Quarantined(_) | Self::Unavailable(_) => false,
        }
    }

    /// Whether a compilation within the first limits exceeded one that the second ones raise.
    pub(crate) fn is_below(&self, low: &CompileLimits, high: &CompileLimits) -> bool {
        match self {
            Self::Timeout(_) => low.time < high.time,
            Self::CpuTime(_) => low.cpu_time < high.cpu_time,
            Self::OutOfMemory(_) => low.memory < high.memory,
            Self::Crashed(_)
            | Self::Refused(_)
            | Self::TooMuchCode(_)
            | Self::Quarantined(_)
            | Self::Unavailable(_) => false,
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
    /// The provisioner used up its time.
    #[error("the provisioner did not finish within {}", seconds(*limit))]
    Timeout {
        /// [`Limits::time`](crate::Limits::time).
        limit: Duration,
    },
    /// The machine had no time for the provisioner, which is not its fault.
    #[error(
        "the machine is too busy to run the provisioner: it got {} of its {} in {}; Chandler retries",
        seconds(*used), seconds(*limit), seconds(*wall)
    )]
    Starved {
        /// [`Limits::time`](crate::Limits::time).
        limit: Duration,
        /// What it used of it.
        used: Duration,
        /// The wall time that passed.
        wall: Duration,
    },
    /// The provisioner requested more memory than its limit.
    #[error("the provisioner needs more than {} of memory", limits::bytes(*limit))]
    OutOfMemory {
        /// [`Limits::memory`](crate::Limits::memory).
        limit: u64,
    },
    /// The provisioner trapped.
    #[error("the provisioner crashed: {0}")]
    Trapped(Trapped),
    /// The provisioner exceeded another limit.
    #[error("{0}")]
    LimitExceeded(Box<LimitExceeded>),
    /// The provisioner emitted an invalid object, invalid text or an invalid schema.
    #[error("the output of the provisioner is invalid: {0}")]
    InvalidOutput(Box<InvalidOutput>),
    /// The content is invalid.
    #[error("invalid content: {}", Findings(.0))]
    InvalidContent(Vec<Diagnostic>),
    /// The configuration is invalid.
    #[error("invalid configuration: {}", Findings(.0))]
    InvalidConfiguration(Vec<Diagnostic>),
    /// The content is valid but requires something that this provisioner does not support.
    #[error("unsupported content: {}", Findings(.0))]
    UnsupportedContent(Vec<Diagnostic>),
    /// The provisioner reported an internal failure.
    #[error("the provisioner failed{}: {}", reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default(), Findings(findings))]
    Failed {
        /// The provisioner's own reason, if the contract does not name it.
        reason: Option<String>,
        /// The provisioner's findings.
        findings: Vec<Diagnostic>,
    },
    /// The host failed.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CallError {
    /// The reason for the condition.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Timeout { .. } => Reason::PluginTimeout,
            Self::Starved { .. } => Reason::MachineBusy,
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

    /// When to retry.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Timeout { .. }
            | Self::Starved { .. }
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

    /// The findings of the failure, followed by those that were reported before it.
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
    /// The message of wasmtime, such as `wasm trap: wasm 'unreachable' instruction executed`.
    pub trap: String,
    /// The innermost functions of the guest, by name.
    pub frames: Vec<String>,
    /// The output of the guest before the trap.
    pub log: CallLog,
}

impl fmt::Display for Trapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.trap)?;
        if !self.frames.is_empty() {
            write!(f, " in {}", self.frames.join(" < "))?;
        }
        match self.log.crash_message() {
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

/// An emitted object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Its index in the output, from 0.
    pub index: usize,
    /// Its identity, if it has one.
    pub key: Option<ObjectKey>,
    /// Where in the bundle it comes from, according to the provisioner.
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
    /// An emitted value is not a Kubernetes object.
    Object {
        /// The object.
        object: Emitted,
        /// What is wrong with it.
        problem: ObjectError,
    },
    /// An object with the same group, kind, namespace and name was emitted before.
    Duplicate {
        /// The object.
        object: Emitted,
        /// The index of the first one.
        first: usize,
    },
    /// A probe lacks a required field.
    Probe {
        /// Its index, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The result of `config-schema` is not a JSON Schema that the host accepts.
    Schema(String),
    /// Another violation of the contract, such as a failure without findings.
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

/// Errors as one text: a single error, or up to ten as a list. Warnings are left out, since they cause no failure.
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
