//! What a guest said during one call: its log messages and what it wrote to standard output and error.

use std::fmt;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the provisioner.
    Debug,
    /// Normal progress; captured standard output.
    Info,
    /// Something odd; captured standard error.
    Warn,
    /// Something wrong.
    Error,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The message; control characters are escaped.
    pub message: String,
}

/// What a guest said during one call, up to the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallLog {
    lines: Vec<LogLine>,
    dropped: u64,
}

impl CallLog {
    pub(crate) fn new(lines: Vec<LogLine>, dropped: u64) -> Self {
        Self { lines, dropped }
    }

    /// The lines, in order.
    pub fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// How many messages were dropped or cut, since they were above the limits.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The line that most likely says why the guest crashed: the last error, or else the last warning.
    pub fn last_words(&self) -> Option<&str> {
        let last = |level| self.lines.iter().rev().find(|line| line.level == level);
        last(Level::Error).or_else(|| last(Level::Warn)).map(|line| line.message.as_str())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}
