//! A reader of the YAML that generators write: block style, line by line.
//!
//! Nearly all manifests are written by a few programs in block style, without anchors, tags or comments beside values.
//! This reader recognises such text by its lines, several times as fast as the scanner, and gives the same events. It
//! gives up (`None`) at anything else: errors, rare syntax, and whatever readers disagree on. Then the scanner reads the
//! text from its start, so the language is the scanner's, and so are all messages.

mod lines;
mod scalar;

use saphyr_parser::{Event, ScalarStyle};

use lines::{Line, Lines};
use scalar::Scalar;

/// Longer keys are left to the scanner, which has a limit for them.
const KEY_BYTES: usize = 128;

/// Takes the events, each with its line and column counted from 1; gives up as the reader does.
pub(crate) trait Sink<'a> {
    fn event(&mut self, event: Event<'a>, line: u32, column: u32) -> Option<()>;
}

/// Reads a stream; nothing if it has anything that only the scanner reads.
pub(crate) fn read<'a>(text: &'a str, sink: &mut impl Sink<'a>) -> Option<()> {
    // Breaks and indentation of other kinds.
    if memchr::memchr2(b'\t', b'\r', text.as_bytes()).is_some() {
        return None;
    }
    let mut reader = Reader { lines: Lines::new(text), stack: Vec::new(), sink };
    while let Some(line) = reader.lines.next() {
        reader.line(line)?;
    }
    reader.end_document()
}

/// An open collection.
enum Open {
    Mapping {
        indent: usize,
        /// Whether the last key still lacks its value.
        pending: bool,
    },
    Sequence {
        indent: usize,
    },
}

impl Open {
    fn indent(&self) -> usize {
        match self {
            Self::Mapping { indent, .. } | Self::Sequence { indent } => *indent,
        }
    }
}

struct Reader<'a, 's, S> {
    lines: Lines<'a>,
    stack: Vec<Open>,
    sink: &'s mut S,
}

/// Text within a line: its line, its column counted from 0, and the rest of the line from there without spaces at the
/// end.
#[derive(Clone, Copy)]
struct Part<'a> {
    line: u32,
    column: usize,
    text: &'a str,
}

impl Part<'_> {
    /// What follows after this many bytes, and after the spaces behind them. All of them must be ASCII.
    fn after(self, bytes: usize) -> Option<Self> {
        let rest = self.text.get(bytes..)?;
        let text = rest.trim_start_matches(' ');
        Some(Self { column: self.column + bytes + rest.len() - text.len(), text, ..self })
    }
}

impl<'a, S: Sink<'a>> Reader<'a, '_, S> {
    fn emit(&mut self, event: Event<'a>, part: Part<'a>) -> Option<()> {
        self.sink.event(event, part.line, u32::try_from(part.column).ok()? + 1)
    }

    /// Reads a line that is not part of a scalar.
    fn line(&mut self, line: Line<'a>) -> Option<()> {
        let part = Part { line: line.number, column: line.indent, text: line.text };
        match part.text.as_bytes() {
            [] | [b'#', ..] => Some(()),
            b"---" if part.column == 0 => self.end_document(),
            // Other markers of documents, with something beside them.
            [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..] if part.column == 0 => None,
            [b'-'] | [b'-', b' ', ..] => {
                self.close(part, true)?;
                self.item(part)
            }
            _ => {
                self.close(part, false)?;
                self.entry(part)
            }
        }
    }

    fn end_document(&mut self) -> Option<()> {
        let part = Part { line: 1, column: 0, text: "" };
        while let Some(open) = self.stack.pop() {
            self.end(&open, part)?;
        }
        self.emit(Event::DocumentEnd, part)
    }

    fn end(&mut self, open: &Open, part: Part<'a>) -> Option<()> {
        match open {
            // A key without a value.
            Open::Mapping { pending: true, .. } => None,
            Open::Mapping { .. } => self.emit(Event::MappingEnd, part),
            Open::Sequence { .. } => self.emit(Event::SequenceEnd, part),
        }
    }

    /// Closes the collections that end before a line, and opens the one that begins with it.
    fn close(&mut self, part: Part<'a>, item: bool) -> Option<()> {
        let indent = part.column;
        while let Some(open) = self.stack.pop_if(|open| match open {
            Open::Mapping { indent: own, .. } => *own > indent,
            // The items of a sequence may be as far indented as its key.
            Open::Sequence { indent: own } => *own > indent || (*own == indent && !item),
        }) {
            self.end(&open, part)?;
        }
        match self.stack.last_mut() {
            None if indent == 0 && !item => self.open_mapping(part),
            Some(Open::Sequence { indent: own }) if *own == indent && item => Some(()),
            Some(Open::Mapping { indent: own, pending }) if *pending && (indent > *own || (item && indent == *own)) => {
                *pending = false;
                match (item, indent == *own) {
                    // For the scanner, a sequence that is as far indented as its key begins behind its first dash.
                    (true, true) => self.open_sequence(indent, part.after(1)?),
                    (true, false) => self.open_sequence(indent, part),
                    (false, _) => self.open_mapping(part),
                }
            }
            Some(Open::Mapping { indent: own, pending: false }) if *own == indent && !item => Some(()),
            _ => None,
        }
    }

    fn open_mapping(&mut self, part: Part<'a>) -> Option<()> {
        self.stack.push(Open::Mapping { indent: part.column, pending: false });
        self.emit(Event::MappingStart(0, None), part)
    }

    fn open_sequence(&mut self, indent: usize, part: Part<'a>) -> Option<()> {
        self.stack.push(Open::Sequence { indent });
        self.emit(Event::SequenceStart(0, None), part)
    }

    /// Reads an item of the innermost sequence, from its dash.
    fn item(&mut self, dash: Part<'a>) -> Option<()> {
        let part = dash.after(1)?;
        if key_length(part.text).is_some() {
            self.open_mapping(part)?;
            return self.entry(part);
        }
        self.value(part)
    }

    /// Reads a key of the innermost mapping, and its value if that is in the same line.
    fn entry(&mut self, part: Part<'a>) -> Option<()> {
        let length = key_length(part.text)?;
        let key = part.text.get(..length)?;
        self.emit(Event::Scalar(key.into(), ScalarStyle::Plain, 0, None), part)?;
        let value = part.after(length + 1)?;
        if value.text.is_empty() {
            if let Some(Open::Mapping { pending, .. }) = self.stack.last_mut() {
                *pending = true;
            }
            return Some(());
        }
        self.value(value)
    }

    /// Reads a value that begins in the line of its key or dash.
    fn value(&mut self, part: Part<'a>) -> Option<()> {
        // Further lines of a scalar are indented more than the innermost collection.
        let parent = self.stack.last()?.indent();
        match part.text {
            "{}" => {
                self.emit(Event::MappingStart(0, None), part)?;
                return self.emit(Event::MappingEnd, part);
            }
            "[]" => {
                self.emit(Event::SequenceStart(0, None), part)?;
                return self.emit(Event::SequenceEnd, part);
            }
            _ => {}
        }
        let Scalar { text, style, first } = scalar::read(part.text, &mut self.lines, parent)?;
        let (line, column) = first.unwrap_or((part.line, part.column));
        self.emit(Event::Scalar(text, style, 0, None), Part { line, column, text: "" })
    }
}

/// The length of the key that a line begins with, if it is made of ordinary characters.
fn key_length(text: &str) -> Option<usize> {
    let ordinary = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'$');
    let bytes = text.as_bytes();
    let length = bytes.iter().take(KEY_BYTES).position(|byte| !ordinary(byte))?;
    match (bytes.get(..length)?, bytes.get(length..)?) {
        // A dash alone, and something else.
        ([] | [b'-'], _) => None,
        (_, [b':'] | [b':', b' ', ..]) => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
