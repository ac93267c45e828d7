//! Log lines on standard error.

use std::io::{self, Write};

use chandler_core::text::{printable, printable_json};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Text.
    Text,
    /// Text with colours, which tracing writes as `ESC [ … m`. tracing itself escapes such sequences in values.
    Coloured,
    /// One JSON object per line.
    Json,
}

/// A writer that escapes control characters: log lines contain text from registries, plugins and objects.
#[derive(Debug)]
pub struct Printable<W>(pub W, pub Lines);

impl<W: Write> Write for Printable<W> {
    /// tracing writes whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        match self.1 {
            Lines::Text => self.0.write_all(printable(&text).as_bytes())?,
            Lines::Json => self.0.write_all(printable_json(&text).as_bytes())?,
            Lines::Coloured => self.0.write_all(coloured(&text).as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Escapes everything except colours.
fn coloured(text: &str) -> String {
    const INTRODUCER: &str = "\u{1b}[";
    let mut pieces = text.split(INTRODUCER);
    let mut shown = printable(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';');
        let is_colour = end.and_then(|end| piece.get(end..)).is_some_and(|rest| rest.starts_with('m'));
        shown.push_str(if is_colour { INTRODUCER } else { "\\u{001B}[" });
        shown.push_str(&printable(piece));
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(lines: Lines) -> String {
        let out = Shared::default();
        let writer = out.clone();
        let builder = tracing_subscriber::fmt()
            .with_writer(move || Printable(writer.clone(), lines))
            .with_ansi(lines == Lines::Coloured)
            .without_time();
        let log = || tracing::error!(image = %"a\u{202e}b\u{1b}[2J", error = "c\u{61c}\u{9b}\u{e0061}", "d\u{200b}\u{1b}[31me");
        if lines == Lines::Json {
            tracing::subscriber::with_default(builder.json().flatten_event(true).finish(), log);
        } else {
            tracing::subscriber::with_default(builder.finish(), log);
        }
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn untrusted_text_cannot_control_the_terminal_of_a_log_reader() {
        for lines in [Lines::Text, Lines::Json] {
            let text = logged(lines);
            assert!(text.contains("image") && !text.contains(chandler_core::text::is_deceptive), "{text:?}");
        }
        let value: serde_json::Value = serde_json::from_str(&logged(Lines::Json)).unwrap();
        assert_eq!(value["image"], "a\u{202e}b\u{1b}[2J", "no character is lost");
        let text = logged(Lines::Coloured);
        assert!(text.contains("\u{1b}[31mERROR"), "{text:?}");
        assert!(!text.contains("\u{1b}[31me") && !text.contains("\u{1b}[2J"), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{61c}', '\u{9b}', '\u{e0061}', '\u{200b}']), "{text:?}");
    }
}
