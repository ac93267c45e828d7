//! The engine: compiles components and runs them.

use std::process::ExitCode;

use crate::{EngineError, EngineOptions, LoadError, Provisioner};

/// Compiles and runs provisioners. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    #[expect(dead_code, reason = "being built")]
    options: EngineOptions,
}

impl Engine {
    /// Sets up an engine: its threads, its clock and its code cache.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        Ok(Self { options })
    }

    /// Loads a component: checks what it says and imports, compiles it or takes its code from the cache, and links it.
    pub async fn load(&self, wasm: &[u8]) -> Result<Provisioner, LoadError> {
        let _ = wasm;
        Err(LoadError::Internal("not built yet".into()))
    }
}

/// The main function of the process that [`Compiler::Child`](crate::Compiler::Child) starts.
pub fn compile_child_main() -> ExitCode {
    ExitCode::FAILURE
}
