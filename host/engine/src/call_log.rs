//! The output of a guest during one call: its log messages, standard output and standard error.

use std::fmt;

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the provisioner.
    Debug,
    /// Normal progress; captured standard output.
    Info,
    /// A problem that the guest handled; captured standard error.
    Warn,
    /// A failure.
    Error,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Its severity.
    pub level: Level,
    /// The message; control characters are escaped.
    pub message: String,
}

/// The output of a guest during one call, up to the limits.
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

    /// How many messages were dropped or truncated at the limits.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The line that most likely explains a crash: the last panic message, else the last error, else the last warning.
    pub fn crash_message(&self) -> Option<String> {
        // The Rust standard library writes two lines: the location, then the message.
        let panic = self.lines.iter().rposition(|line| line.message.contains("panicked at "));
        if let Some(lines) = panic.and_then(|index| self.lines.get(index..)) {
            let ends_here = |line: &LogLine| !line.message.ends_with(':');
            let count = if lines.first().is_some_and(ends_here) { 1 } else { 2 };
            let words: Vec<&str> = lines.iter().take(count).map(|line| line.message.as_str()).collect();
            return Some(words.join(" "));
        }
        let last = |level| self.lines.iter().rev().find(|line| line.level == level);
        last(Level::Error).or_else(|| last(Level::Warn)).map(|line| line.message.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crash_message_is_that_of_the_panic() {
        let words = |lines: &[(Level, &str)]| {
            let lines = lines.iter().map(|(level, text)| LogLine { level: *level, message: (*text).into() }).collect();
            CallLog::new(lines, 0).crash_message()
        };
        assert_eq!(words(&[(Level::Info, "hello")]), None);
        assert_eq!(words(&[(Level::Error, "first"), (Level::Error, "second"), (Level::Warn, "x")]).unwrap(), "second");
        let panic = "panicked at src/lib.rs:1:1: boom";
        assert_eq!(words(&[(Level::Error, panic), (Level::Error, "later")]).unwrap(), panic);
        let standard_error =
            [(Level::Warn, "thread 'x' panicked at a.rs:1:"), (Level::Warn, "boom"), (Level::Warn, "note: run with")];
        assert_eq!(words(&standard_error).unwrap(), "thread 'x' panicked at a.rs:1: boom");
    }
}
