//! The clock by which guests are interrupted.

use std::{io, thread, time::Duration};

use wasmtime::Engine;

/// How long a guest may run before it makes room for others, and how exactly its time limit holds.
const TICK: Duration = Duration::from_millis(10);

/// Starts a thread that advances the epoch of the engine for as long as the engine lives.
///
/// It is a thread of the operating system and not a task, since tasks do not run while guests keep all threads busy.
pub(crate) fn start(engine: &Engine) -> io::Result<()> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new().name("wasm-epochs".into()).spawn(tick).map(drop)
}
