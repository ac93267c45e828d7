//! How an engine is set up.

use std::{ffi::OsString, path::PathBuf, thread::available_parallelism, time::Duration};

/// How an engine is set up. The defaults suit a test; a controller sets a cache directory and [`Compiler::Child`].
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Where compiled code is kept between runs; none keeps it in memory only. The directory is made with mode 0700 and
    /// must belong to this process alone: the code in it runs outside the sandbox.
    pub cache_directory: Option<PathBuf>,
    /// Where code is compiled.
    pub compiler: Compiler,
    /// What one compilation may use.
    pub compile_limits: CompileLimits,
    /// Calls that run at the same time, each on a thread of its own. Default: the number of CPUs. Where there is more than
    /// one, a single provisioner gets all but one of them, so that a slow one leaves room for the others.
    pub concurrency: usize,
    /// The size of a Wasm stack in bytes. Default 1 MiB.
    pub stack_bytes: usize,
    /// The largest component that is loaded, in bytes. Default 64 MiB.
    pub component_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            cache_directory: None,
            compiler: Compiler::InProcess,
            compile_limits: CompileLimits::default(),
            concurrency: available_parallelism().map_or(1, usize::from),
            stack_bytes: 1 << 20,
            component_bytes: 64 << 20,
        }
    }
}

/// Where code is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// In this process, without limits: for components that one trusts, and for tests. wasmtime does not count denial of
    /// service by what it compiles as a vulnerability.
    InProcess,
    /// In a child process that limits its own memory and time before it reads anything. The program must end up in
    /// [`compile_child_main`](crate::compile_child_main) when it is run with these arguments; the child gets nothing of
    /// this process's environment and can open no files.
    Child {
        /// The program, commonly the running one.
        program: PathBuf,
        /// Its arguments, commonly one hidden subcommand. The engine adds the limits behind them.
        arguments: Vec<OsString>,
    },
}

/// What one compilation in a child process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Wall time. Default 120 s.
    pub time: Duration,
    /// CPU time over all threads (`RLIMIT_CPU`), in whole seconds. Default 240 s.
    pub cpu_time: Duration,
    /// Address space in bytes (`RLIMIT_AS`). Default 2 GiB.
    pub memory: u64,
    /// Bytes of code that are accepted. Default 512 MiB.
    pub code_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { time: Duration::from_mins(2), cpu_time: Duration::from_mins(4), memory: 2 << 30, code_bytes: 512 << 20 }
    }
}
