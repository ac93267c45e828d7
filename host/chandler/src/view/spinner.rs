//! The status line of this process. Whatever else is printed hides it meanwhile, so that no half of it remains on the screen.

use std::io::{self, Write};

use indicatif::ProgressBar;
use parking_lot::Mutex;

/// The status line that is drawn; a command has at most one.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Records the status line that is drawn from here on; `None` if no line is drawn.
pub fn show(spinner: Option<&ProgressBar>) {
    *SHOWN.lock() = spinner.cloned();
}

/// Prints without the status line, which is drawn again afterwards.
pub fn hidden<T>(print: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().clone();
    match shown {
        Some(spinner) => spinner.suspend(print),
        None => print(),
    }
}

/// Standard error for log lines, which may come at any moment.
#[derive(Debug)]
pub struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        hidden(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
