//! The `log` interface and the standard streams: a bounded record per call, which is also passed to tracing.

use chandler_core::text::printable;

use super::{Identity, State, record};
use crate::{
    CallLog, Level, Limits, LogLine,
    contract::bindings::chandler::provisioner::log::{Host, Level as GuestLevel},
    text::truncate,
};

/// The longest line that is kept, in bytes.
const LINE_BYTES: usize = 4096;

/// Records the output of a guest during one call.
#[derive(Debug)]
pub(crate) struct Recorder {
    identity: Identity,
    lines: Vec<LogLine>,
    bytes_left: u64,
    lines_left: u32,
    dropped: u64,
    output: Partial,
    error: Partial,
}

/// An incomplete line of a stream.
#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
}

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

impl Recorder {
    pub(crate) fn new(identity: Identity, limits: &Limits) -> Self {
        Self {
            identity,
            lines: Vec::new(),
            bytes_left: limits.log_bytes,
            lines_left: limits.log_lines,
            dropped: 0,
            output: Partial::default(),
            error: Partial::default(),
        }
    }

    /// Records a message and its fields as one line.
    pub(crate) fn message(&mut self, level: Level, message: &str, fields: &[(String, String)]) {
        if self.is_full() {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let mut line = String::new();
        escape(&mut line, message);
        for (name, value) in fields {
            if line.len() > LINE_BYTES {
                break;
            }
            line.push(' ');
            escape(&mut line, name);
            line.push('=');
            escape(&mut line, value);
        }
        self.push(level, line);
    }

    /// Records bytes that the guest wrote to a standard stream.
    pub(crate) fn written(&mut self, stream: Stream, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.partial(stream).extend(line);
            self.end_line(stream);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.partial(stream).extend(bytes);
    }

    /// The record.
    pub(crate) fn finish(&mut self) -> CallLog {
        for stream in [Stream::Output, Stream::Error] {
            if !self.partial(stream).bytes.is_empty() {
                self.end_line(stream);
            }
        }
        if self.dropped > 0 {
            tracing::warn!(
                target: "chandler::plugin",
                plugin = %self.identity.name,
                digest = %self.identity.digest.short(),
                dropped = self.dropped,
                "messages above the limit were dropped"
            );
        }
        CallLog::new(std::mem::take(&mut self.lines), self.dropped)
    }

    fn partial(&mut self, stream: Stream) -> &mut Partial {
        match stream {
            Stream::Output => &mut self.output,
            Stream::Error => &mut self.error,
        }
    }

    fn end_line(&mut self, stream: Stream) {
        let bytes = std::mem::take(&mut self.partial(stream).bytes);
        let level = if stream == Stream::Output { Level::Info } else { Level::Warn };
        self.message(level, &String::from_utf8_lossy(&bytes), &[]);
    }

    fn is_full(&self) -> bool {
        self.lines_left == 0 || self.bytes_left == 0
    }

    fn push(&mut self, level: Level, line: String) {
        let limit = LINE_BYTES.min(usize::try_from(self.bytes_left).unwrap_or(usize::MAX));
        if line.len() > limit {
            self.dropped = self.dropped.saturating_add(1);
        }
        let message = truncate(line, limit);
        // A line costs at least one byte, so that empty lines are bounded too.
        self.bytes_left = self.bytes_left.saturating_sub(message.len().max(1) as u64);
        self.lines_left = self.lines_left.saturating_sub(1);
        self.trace(level, &message);
        self.lines.push(LogLine { level, message });
    }

    fn trace(&self, level: Level, message: &str) {
        let Identity { name, digest, .. } = &self.identity;
        let digest = digest.short();
        match level {
            Level::Debug => tracing::debug!(target: "chandler::plugin", plugin = %name, digest, "{message}"),
            Level::Info => tracing::info!(target: "chandler::plugin", plugin = %name, digest, "{message}"),
            Level::Warn => tracing::warn!(target: "chandler::plugin", plugin = %name, digest, "{message}"),
            Level::Error => tracing::error!(target: "chandler::plugin", plugin = %name, digest, "{message}"),
        }
    }
}

impl Partial {
    /// Keeps the bytes that fit into a line.
    fn extend(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

/// Appends text to a line, with line breaks replaced and control characters escaped, up to the length limit.
fn escape(line: &mut String, text: &str) {
    let text = text.get(..text.floor_char_boundary(LINE_BYTES)).unwrap_or(text);
    for char in printable(text).chars() {
        if line.len() > LINE_BYTES {
            return;
        }
        line.push(if matches!(char, '\n' | '\t') { ' ' } else { char });
    }
}

impl Host for State {
    fn log(&mut self, level: GuestLevel, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let level = match level {
            GuestLevel::Debug => Level::Debug,
            GuestLevel::Info => Level::Info,
            GuestLevel::Warn => Level::Warn,
            GuestLevel::Error => Level::Error,
        };
        record(&self.log, |recorder| recorder.message(level, &message, &fields));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::Digest;

    use super::*;

    fn recorder(log_bytes: u64, log_lines: u32) -> Recorder {
        let identity = Identity { name: "test".into(), version: "1".into(), digest: Digest::of(b"") };
        Recorder::new(identity, &Limits { log_bytes, log_lines, ..Limits::default() })
    }

    fn texts(log: &CallLog) -> Vec<&str> {
        log.lines().iter().map(|line| line.message.as_str()).collect()
    }

    #[test]
    fn messages_are_one_line_each() {
        let mut recorder = recorder(1000, 10);
        recorder.message(Level::Info, "two\nlines", &[("key".into(), "a value".into())]);
        recorder.message(Level::Error, "\u{1b}[2J", &[]);
        let log = recorder.finish();
        assert_eq!(texts(&log), ["two lines key=a value", "\\u{001B}[2J"]);
        assert_eq!(log.dropped(), 0);
    }

    #[test]
    fn streams_are_split_into_lines() {
        let mut recorder = recorder(100_000, 10);
        recorder.written(Stream::Error, b"thread 'main' panicked at src/lib.rs:1:1:\nbo");
        recorder.written(Stream::Output, b"hello");
        recorder.written(Stream::Error, b"om\n");
        recorder.written(Stream::Output, &vec![b'x'; 10_000]);
        let log = recorder.finish();
        assert_eq!(log.lines()[0].message, "thread 'main' panicked at src/lib.rs:1:1:");
        assert_eq!(log.lines()[1].message, "boom");
        assert_eq!(log.lines()[2].message.len(), LINE_BYTES);
    }

    #[test]
    fn messages_above_the_limits_are_dropped() {
        let mut recorder = recorder(7, 10);
        for message in ["abc", "", "äöü", "more"] {
            recorder.message(Level::Warn, message, &[]);
        }
        let log = recorder.finish();
        assert_eq!(texts(&log), ["abc", "", "…"]);
        assert_eq!(log.dropped(), 2);

        let mut lines = super::tests::recorder(1000, 2);
        for _ in 0..5 {
            lines.written(Stream::Output, b"\n");
        }
        assert_eq!(lines.finish().lines().len(), 2);
    }
}
