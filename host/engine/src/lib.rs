//! A component in, a release out: wasmtime, limits, code cache.

mod call_log;
mod engine;
mod error;
mod facts;
mod imports;
mod limits;
mod options;
mod provisioner;

pub use call_log::{CallLog, Level, LogLine};
pub use engine::{Engine, compile_child_main};
pub use error::{
    CallError, CompileError, Emitted, EngineError, InvalidOutput, LimitExceeded, LoadError, Retry, Trapped,
};
pub use facts::Facts;
pub use imports::MissingImport;
pub use limits::{LimitKind, Limits};
pub use options::{CompileLimits, Compiler, EngineOptions};
pub use provisioner::Provisioner;
