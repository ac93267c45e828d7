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

/// The most lines of the message of a crash, and the most bytes of several lines together.
const CRASH_LINES: usize = 8;
const CRASH_BYTES: usize = 1024;

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
        // The Rust standard library writes the location, then the message, then a note. A message can have several lines: QuickJS puts the
        // exception and its stack there.
        let panic = self.lines.iter().rposition(|line| line.message.contains("panicked at "));
        if let Some(lines) = panic.and_then(|index| self.lines.get(index..)) {
            let ends_here = |line: &LogLine| !line.message.ends_with(':');
            let count = if lines.first().is_some_and(ends_here) { 1 } else { CRASH_LINES };
            let lines = lines.iter().map(|line| line.message.trim());
            return Some(shortened(
                &lines.take(count).take_while(|line| !line.starts_with("note: ")).collect::<Vec<_>>(),
            ));
        }
        // CPython writes a traceback, whose last line is the exception.
        let traceback =
            self.lines.iter().rposition(|line| line.message.starts_with("Traceback (most recent call last)"));
        if let Some(lines) = traceback.and_then(|index| self.lines.get(index..)) {
            let is_stack = |line: &&LogLine| line.message.starts_with(' ') || line.message.starts_with("Traceback ");
            let end = lines.iter().find(|line| !is_stack(line)).map(|line| line.message.trim());
            let stack = lines.iter().skip(1).take_while(is_stack).map(|line| line.message.trim());
            // The innermost calls come last.
            let stack: Vec<&str> = stack.filter(|line| line.starts_with("File ")).collect();
            let innermost = stack.iter().rev().take(CRASH_LINES).copied();
            return Some(shortened(&end.into_iter().chain(innermost).collect::<Vec<_>>()));
        }
        // StarlingMonkey writes the exception, a line "Stack:", and the calls.
        let stack = self.lines.iter().rposition(|line| line.message.trim() == "Stack:");
        if let Some(lines) = stack.and_then(|index| self.lines.get(index.saturating_sub(1)..)) {
            let (exception, calls) = (lines.first().into_iter(), lines.iter().skip(2));
            let calls = calls.take_while(|line| line.message.starts_with(' ')).take(CRASH_LINES);
            return Some(shortened(&exception.chain(calls).map(|line| line.message.trim()).collect::<Vec<_>>()));
        }
        let last = |level| self.lines.iter().rev().find(|line| line.level == level && !line.message.trim().is_empty());
        last(Level::Error).or_else(|| last(Level::Warn)).map(|line| line.message.clone())
    }
}

/// The lines as one, of limited length.
fn shortened(lines: &[&str]) -> String {
    let mut text = lines.join(" ");
    text.truncate(text.floor_char_boundary(CRASH_BYTES));
    text
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
    fn the_crash_message_of_starlingmonkey_is_the_exception_and_its_stack() {
        let lines = ["TypeError: no oxen", "Stack:", "  provision@/app.js:1:15", "", "Redirecting call to abort()", ""];
        let lines = lines.iter().map(|text| LogLine { level: Level::Warn, message: (*text).to_owned() }).collect();
        assert_eq!(CallLog::new(lines, 0).crash_message().unwrap(), "TypeError: no oxen provision@/app.js:1:15");
    }

    #[test]
    fn the_crash_message_of_python_is_the_exception_and_its_stack() {
        let traceback = [
            "Traceback (most recent call last):",
            "  File \"/app.py\", line 7, in provision",
            "    outer()",
            "  File \"/app.py\", line 3, in outer",
            "    raise ValueError(\"no oxen\")",
            "ValueError: no oxen",
            "later",
        ];
        let lines = traceback.iter().map(|text| LogLine { level: Level::Warn, message: (*text).to_owned() }).collect();
        let message = CallLog::new(lines, 0).crash_message().unwrap();
        assert_eq!(
            message,
            "ValueError: no oxen File \"/app.py\", line 3, in outer File \"/app.py\", line 7, in provision"
        );
    }

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
        let script = [
            "thread 'x' panicked at a.rs:1:",
            "Failed to call 'f': Value(",
            "TypeError, at f (/a.js:1:5)",
            ")",
            "note: run",
        ];
        let script: Vec<(Level, &str)> = script.iter().map(|text| (Level::Warn, *text)).collect();
        let message = "thread 'x' panicked at a.rs:1: Failed to call 'f': Value( TypeError, at f (/a.js:1:5) )";
        assert_eq!(words(&script).unwrap(), message);
        let endless: Vec<(Level, &str)> = [(Level::Warn, "panicked at a.rs:1:")]
            .into_iter()
            .chain(std::iter::repeat_n((Level::Warn, "ü"), 5000))
            .collect();
        assert!(words(&endless).unwrap().len() <= CRASH_BYTES);
    }
}
