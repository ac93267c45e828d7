//! Runs work on a stack that is large enough for the parser.

use std::{io, thread};

/// The size of the stack in bytes. Only the part that is used takes memory.
const BYTES: usize = 64 << 20;

/// Work on a large stack failed.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// No thread could be started.
    #[error("cannot be parsed now: {0}")]
    NoThread(#[from] io::Error),
    /// The work panicked.
    #[error("cannot be parsed")]
    Panicked,
}

/// Runs work on a large stack: the parser uses tens of kilobytes for each bracket.
///
/// # Errors
/// If no thread can be started, and if the work panics.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StackError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(BYTES).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| StackError::Panicked)
    })
}
