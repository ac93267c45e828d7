//! Compilation in this process, or in a child process with limits of its own.

mod child;
mod parent;

pub use child::compile_child_main;

use crate::{CompileError, CompileLimits, Compiler, threads::Threads};

/// Compiles a component to code for `Component::deserialize`.
pub(crate) async fn compile(
    compiler: &Compiler,
    limits: &CompileLimits,
    threads: &Threads,
    engine: &wasmtime::Engine,
    wasm: &[u8],
) -> Result<Vec<u8>, CompileError> {
    match compiler {
        Compiler::Child { program, arguments } => {
            let run = parent::run(program.clone(), arguments.clone(), limits.clone(), wasm.to_vec());
            threads.run(run).await.unwrap_or_else(|error| Err(CompileError::Unavailable(error.to_string())))
        }
        Compiler::InProcess => {
            let (engine, wasm) = (engine.clone(), wasm.to_vec());
            let result = threads.run_blocking(move || engine.precompile_component(&wasm)).await;
            match result {
                Ok(code) => code.map_err(|error| CompileError::Refused(describe(&error))),
                Err(_) => Err(CompileError::Crashed("a panic".into())),
            }
        }
    }
}

/// The chain of causes as one line.
fn describe(error: &wasmtime::Error) -> String {
    let text = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    crate::text::sanitize(text, 2048)
}
