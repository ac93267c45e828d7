//! The child process that compiles. It sets its own limits before it reads the first byte and can then open no file.

use std::{
    env,
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::describe;
use crate::{EngineOptions, code::Code, config, engine::linker};

/// The exit code for a component that the compiler rejects; standard error holds the reason.
pub(super) const REFUSED: u8 = 3;

/// The exit code for a component that does not fit into the memory limit.
pub(super) const OUT_OF_MEMORY: u8 = 4;

/// The main function of the process that [`Compiler::Child`](crate::Compiler::Child) starts.
///
/// The last two arguments of the process are the limits that the engine appends: the address space in bytes and the CPU
/// time in seconds. The component is read from standard input; the code is written to standard output.
pub fn compile_child_main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Refused(text)) => {
            print_error(&text);
            ExitCode::from(REFUSED)
        }
        Err(Failure::Host(error)) if error.kind() == io::ErrorKind::OutOfMemory => ExitCode::from(OUT_OF_MEMORY),
        Err(Failure::Host(error)) => {
            print_error(&format!("{error}"));
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Refused(String),
    Host(io::Error),
}

fn run() -> Result<(), Failure> {
    let mut arguments = env::args().rev();
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (Some(cpu_seconds), Some(memory)) = (number(), number()) else {
        let text = "expected two arguments: the address space in bytes and the CPU time in seconds";
        return Err(Failure::Host(io::Error::new(io::ErrorKind::InvalidInput, text)));
    };
    limit(memory, cpu_seconds).map_err(Failure::Host)?;
    let mut wasm = Vec::new();
    io::stdin().lock().read_to_end(&mut wasm).map_err(Failure::Host)?;
    let engine = config::engine(EngineOptions::default().stack_bytes)
        .map_err(|error| Failure::Host(io::Error::other(describe(&error))))?;
    let code = engine.precompile_component(&wasm).map_err(|error| Failure::Refused(describe(&error)))?;
    let code = try_load(&engine, code)?;
    let mut output = io::stdout().lock();
    output.write_all(&code).and_then(|()| output.flush()).map_err(Failure::Host)
}

/// Loads and links the code as the engine will, without running it. If that takes too much memory, this process ends
/// and not the engine's. No memories are created: what wasmtime reserves for one exceeds the limit.
fn try_load(engine: &wasmtime::Engine, code: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let refused = |error: wasmtime::Error| Failure::Refused(describe(&error));
    let code = Code::compiled(code);
    let component = code.load(engine).map_err(refused)?;
    let linker = linker(engine).map_err(refused)?;
    // If linking fails, the engine reports it with a better message.
    drop(linker.instantiate_pre(&component));
    drop(component);
    Ok(code.into_bytes())
}

fn limit(memory: u64, cpu_seconds: u64) -> io::Result<()> {
    let hard = |value| Rlimit { current: Some(value), maximum: Some(value) };
    // The soft limit sends SIGXCPU, which tells the parent the cause; the hard limit kills.
    let cpu = Rlimit { current: Some(cpu_seconds), maximum: Some(cpu_seconds.saturating_add(5)) };
    setrlimit(Resource::As, hard(memory))?;
    setrlimit(Resource::Cpu, cpu)?;
    setrlimit(Resource::Core, hard(0))?;
    // The three standard streams, pipes to the parent, are open; a fourth file cannot be opened.
    setrlimit(Resource::Nofile, hard(3))?;
    Ok(())
}

fn print_error(text: &str) {
    // There is no other way to report a failure to write.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
