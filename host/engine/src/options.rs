//! The options of an engine.

use std::{ffi::OsString, path::PathBuf, thread::available_parallelism, time::Duration};

/// The options of an engine. The defaults suit tests; a controller sets a cache directory and [`Compiler::Child`].
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Where compiled code is kept across restarts; without it, code is kept in memory only. The directory is created
    /// with mode 0700 and must not be shared with other processes: the code in it runs outside the sandbox.
    pub cache_directory: Option<PathBuf>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// The limits of one compilation.
    pub compile_limits: CompileLimits,
    /// The number of concurrent calls, each on its own thread. Default: the number of CPUs. If it is more than one, one
    /// provisioner can use all but one, so that a slow provisioner does not block the others.
    pub concurrency: usize,
    /// The size of a Wasm stack in bytes. Default 1 MiB.
    pub stack_bytes: usize,
    /// The largest accepted component, in bytes. Default 64 MiB.
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

/// Where components are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// In this process, without limits: for trusted components and for tests. wasmtime does not treat denial of service
    /// during compilation as a vulnerability.
    InProcess,
    /// In a child process that limits its own memory and time before it reads any input. When the program is run with
    /// these arguments, it must call [`compile_child_main`](crate::compile_child_main). The child inherits no
    /// environment and can open no files.
    Child {
        /// The program, usually the current executable.
        program: PathBuf,
        /// Its arguments, usually one hidden subcommand. The engine appends the limits.
        arguments: Vec<OsString>,
    },
}

/// The limits of one compilation in a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Wall time, in case the compiler hangs or the machine is too busy. It says nothing about the component, which is compiled again
    /// later. Default 20 min.
    pub time: Duration,
    /// CPU time over all threads (`RLIMIT_CPU`), in whole seconds. Default 240 s.
    pub cpu_time: Duration,
    /// Address space in bytes (`RLIMIT_AS`). Default 2 GiB.
    pub memory: u64,
    /// Bytes of compiled code. Default 512 MiB.
    pub code_bytes: u64,
}

impl CompileLimits {
    /// The limits of a first attempt, with which a component that compiles quickly passes others that do not; `None` if these limits are
    /// not higher, or for a component that is so large that the attempt is likely to fail.
    pub(crate) fn quick(&self, component_bytes: usize) -> Option<Self> {
        let quick = Self {
            time: self.time.min(Duration::from_mins(1)),
            cpu_time: self.cpu_time.min(Duration::from_secs(10)),
            memory: self.memory.min(1 << 30),
            code_bytes: self.code_bytes,
        };
        (component_bytes <= QUICK_BYTES && quick.cpu_time < self.cpu_time).then_some(quick)
    }
}

/// The largest component that a quick attempt compiles. One of a language with an interpreter is larger.
const QUICK_BYTES: usize = 4 << 20;

impl Default for CompileLimits {
    fn default() -> Self {
        Self { time: Duration::from_mins(20), cpu_time: Duration::from_mins(4), memory: 2 << 30, code_bytes: 512 << 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_attempt_is_for_small_components_and_lower_limits() {
        let limits = CompileLimits::default();
        let quick = limits.quick(QUICK_BYTES).expect("an attempt");
        assert!(quick.cpu_time < limits.cpu_time && quick.memory < limits.memory && quick.time < limits.time);
        assert_eq!(limits.quick(QUICK_BYTES + 1), None);
        assert_eq!(quick.quick(1), None, "it would be the same attempt");
    }
}
