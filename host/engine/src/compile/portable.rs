//! Compiles components for every processor of an architecture, for a program that will contain the code.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use super::describe;
use crate::{EngineOptions, config};

/// The main function of `chandler-compile TARGET`, with which `cargo xtask dist` compiles the built-in components: reads a component from
/// standard input and writes the code for a target, such as `x86_64-unknown-linux-gnu`, to standard output.
pub fn precompile_main(target: &str) -> ExitCode {
    let run = || {
        let mut wasm = Vec::new();
        io::stdin().lock().read_to_end(&mut wasm)?;
        let code = precompile(&wasm, target).map_err(io::Error::other)?;
        let mut output = io::stdout().lock();
        output.write_all(&code)?;
        output.flush()
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other way to report a failure to write.
            let _ = writeln!(io::stderr().lock(), "failed to compile the component for {target}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The code of a component for a target. It uses only what every processor of the architecture has.
pub(crate) fn precompile(wasm: &[u8], target: &str) -> Result<Vec<u8>, String> {
    let engine = config::engine_for(EngineOptions::default().stack_bytes, target);
    let code = engine.and_then(|engine| engine.precompile_component(wasm));
    code.map_err(|error| describe(&error))
}
