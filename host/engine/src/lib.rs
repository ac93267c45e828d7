//! The engine: runs a provisioner component in a sandbox and returns the release that it renders. Built on wasmtime.
//!
//! An [`Engine`] loads components and returns [`Provisioner`]s. Each call runs in a fresh instance on its own thread,
//! within [`Limits`]; it returns a result or a [`CallError`] that names the way it failed. The engine trusts nothing
//! that a guest does: it parses and counts objects as the guest emits them, counts the bytes that the guest reads, and
//! truncates its messages.
//!
//! | module | holds |
//! |---|---|
//! | `options`, `limits` | options of an engine; limits of one call |
//! | `engine` | loading a component: check, compile or read from the cache, link |
//! | `facts`, `imports`, `inspection` | metadata and imports of a component, checked before and after it is compiled |
//! | [`size`] | the size of a component once it is instantiated |
//! | `config` | the configuration of wasmtime, and its fingerprint in the code cache |
//! | `compile` | the compiler, in a child process with limits of its own |
//! | `code` | compiled code, its cache on disk and the quarantine; the only `unsafe` |
//! | `provisioner`, `call` | the three functions of a provisioner; one call and its outcome |
//! | `host` | the host interfaces: bundle, request, output, log, an empty WASI 0.2; the memory limit |
//! | `schema` | validation of the configuration against the provisioner's JSON Schema |
//! | `threads`, `ticker` | the threads on which guests run, and the clock that interrupts them |

mod call;
mod call_log;
mod code;
mod compile;
mod config;
mod contract;
mod engine;
mod error;
mod facts;
mod host;
mod imports;
mod inspection;
mod limits;
mod meter;
mod options;
mod provisioner;
mod schema;
pub mod size;
mod text;
mod threads;
mod ticker;

pub use call::Usage;
pub use call_log::{CallLog, Level, LogLine};
pub use compile::{compile_child_main, precompile_main};
pub use contract::TRACKS as CONTRACT_VERSIONS;
pub use engine::{Engine, EngineStatistics};
pub use error::{
    CallError, CompileError, Emitted, EngineError, InvalidOutput, LimitExceeded, LoadError, Retry, Trapped,
};
pub use facts::{Facts, SECTION as FACTS_SECTION};
pub use imports::MissingImport;
pub use inspection::{Inspection, Tool};
pub use limits::{LimitKind, Limits};
pub use options::{CompileLimits, Compiler, EngineOptions};
pub use provisioner::{Provisioned, Provisioner};
