//! A component in, a release out: wasmtime, limits, code cache.
//!
//! An [`Engine`] loads components and hands out [`Provisioner`]s. A call runs in a fresh instance on threads of its own,
//! within [`Limits`]; it ends in a result or in one [`CallError`] per way to fail. Nothing that a guest does is believed:
//! what it emits is parsed and counted as it comes, what it reads is counted, what it says is cut to length.
//!
//! | module | holds |
//! |---|---|
//! | `options`, `limits` | how an engine is set up, and what one call may use |
//! | `engine` | loading: check, compile or take from the cache, link |
//! | `facts`, `imports` | what a component says and imports, before and after it is compiled |
//! | [`size`] | how large a component becomes when it is instantiated |
//! | `config` | how wasmtime is configured, and what code must have in common to be exchanged |
//! | `compile` | the compiler, in a child process that limits itself |
//! | `code` | compiled code and its cache on disk; the one place with `unsafe` |
//! | `provisioner`, `call` | the three functions of a provisioner, one call, and what became of it |
//! | `host` | what a guest can reach: bundle, request, output, log, an empty WASI world; memory |
//! | `schema` | the configuration against the schema that a provisioner gives |
//! | `threads`, `ticker` | the threads of guests, and the clock that interrupts them |

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
mod limits;
mod options;
mod provisioner;
mod schema;
pub mod size;
mod text;
mod threads;
mod ticker;

pub use call_log::{CallLog, Level, LogLine};
pub use compile::compile_child_main;
pub use engine::{Engine, EngineStatistics};
pub use error::{
    CallError, CompileError, Emitted, EngineError, InvalidOutput, LimitExceeded, LoadError, Retry, Trapped,
};
pub use facts::Facts;
pub use imports::MissingImport;
pub use limits::{LimitKind, Limits};
pub use options::{CompileLimits, Compiler, EngineOptions};
pub use provisioner::{Provisioned, Provisioner};
