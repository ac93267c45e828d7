//! A stack that is large enough for the parser.

use std::{io, thread};

/// The size of the stack in bytes. Only what is used is taken from memory.
const BYTES: usize = 64 << 20;

/// Why nothing came of work on a large stack.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// There is no thread to be had.
    #[error("cannot be parsed now: {0}")]
    NoThread(#[from] io::Error),
    /// The work panicked.
    #[error("cannot be parsed")]
    Panicked,
}

/// Works where the stack is large: the parser takes tens of kilobytes of it for each bracket.
///
/// # Errors
/// Where no thread can be started, and where the work panics.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StackError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(BYTES).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| StackError::Panicked)
    })
}
