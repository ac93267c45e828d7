//! Compilation in this process, or in a child process with limits of its own.

mod attempts;
mod child;
mod parent;
mod portable;

pub(crate) use attempts::{Attempt, Attempts};
pub use child::compile_child_main;
#[cfg(test)]
pub(crate) use portable::precompile;
pub use portable::precompile_main;

use crate::{CompileError, CompileLimits, Compiler};

/// Compiles a component to code for `Component::deserialize`, within the runtime of the guests.
async fn compile(
    compiler: Compiler,
    limits: CompileLimits,
    engine: wasmtime::Engine,
    wasm: Vec<u8>,
) -> Result<Vec<u8>, CompileError> {
    match compiler {
        Compiler::Child { program, arguments } => parent::run(program, arguments, limits, wasm).await,
        Compiler::InProcess => {
            let result = tokio::task::spawn_blocking(move || engine.precompile_component(&wasm)).await;
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
