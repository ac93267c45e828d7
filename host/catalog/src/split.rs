//! Splits a file into documents without reading it whole.
//!
//! A document is one JSON value, or the text up to the next line that is a YAML document marker (`---` or `...`). Both kinds may
//! occur in one file. Only one document is in memory at a time.

use chandler_core::{Content, ReadError};
use memchr::{memchr, memchr_iter, memchr2};

/// Bytes that one read of a file returns.
const READ: usize = 256 << 10;

/// One document of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// The position of its first byte.
    pub(crate) offset: u64,
    /// The line of its first byte, counted from 1.
    pub(crate) line: u32,
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
}

/// Why the next document cannot be returned.
#[derive(Debug)]
pub(crate) enum SplitError {
    /// The file cannot be read.
    Read(ReadError),
    /// The document that begins in this line exceeds the limit.
    TooLarge { line: u32 },
}

impl From<ReadError> for SplitError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// The documents of one file.
pub(crate) struct Splitter<'c> {
    content: &'c dyn Content,
    path: &'c str,
    /// The longest document.
    limit: usize,
    buffer: Vec<u8>,
    /// Consumed bytes of the buffer.
    head: usize,
    /// The position of the buffer's first byte in the file.
    start: u64,
    /// The line of the first byte that is not consumed.
    line: u32,
    /// Whether the buffer ends with the file.
    complete: bool,
}

impl<'c> Splitter<'c> {
    pub(crate) fn new(content: &'c dyn Content, path: &'c str, limit: usize) -> Self {
        Self { content, path, limit, buffer: Vec::new(), head: 0, start: 0, line: 1, complete: false }
    }

    /// The next document; none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk<'_>>, SplitError> {
        if self.start == 0 && self.head == 0 {
            self.skip_byte_order_mark()?;
        }
        let Some(end) = self.document_end()? else { return Ok(None) };
        let (offset, line) = (self.start + self.head as u64, self.line);
        let from = self.head;
        self.consume(end);
        Ok(Some(Chunk { offset, line, bytes: self.buffer.get(from..from + end).unwrap_or_default() }))
    }

    /// Skips what is between documents, and returns the length of the document that follows.
    fn document_end(&mut self) -> Result<Option<usize>, SplitError> {
        loop {
            let line = self.line_end()?;
            if self.rest().is_empty() {
                return Ok(None);
            }
            let text = self.rest().get(..line).unwrap_or_default();
            let indent = text.iter().take_while(|byte| is_space(**byte)).count();
            match text.get(indent) {
                None | Some(b'#') => self.consume(line),
                Some(b'{' | b'[') => {
                    self.consume(indent);
                    return self.json_end().map(Some);
                }
                Some(_) if is_lone_marker(text) => self.consume(line),
                Some(_) => return self.yaml_end(line).map(Some),
            }
        }
    }

    /// The end of the first line, after its break.
    fn line_end(&mut self) -> Result<usize, SplitError> {
        let mut scanned = 0;
        loop {
            if let Some(at) = self.rest().get(scanned..).and_then(|rest| memchr(b'\n', rest)) {
                return Ok(scanned + at + 1);
            }
            scanned = self.rest().len();
            if !self.more()? {
                return Ok(scanned);
            }
        }
    }

    /// The end of the JSON value that begins here. Whether it is valid is for the parser to say.
    fn json_end(&mut self) -> Result<usize, SplitError> {
        let (mut at, mut depth, mut in_text) = (0_usize, 0_usize, false);
        loop {
            let rest = self.rest().get(at..).unwrap_or_default();
            let found = if in_text { memchr2(b'"', b'\\', rest) } else { structural(rest) };
            let Some(found) = found else {
                at = self.rest().len();
                if !self.more()? {
                    return Ok(at);
                }
                continue;
            };
            match rest.get(found) {
                // The escaped byte may be outside of the buffer; then the search continues behind it.
                Some(b'\\') => {
                    at += found + 2;
                    while self.rest().len() < at {
                        if !self.more()? {
                            return Ok(self.rest().len());
                        }
                    }
                    continue;
                }
                Some(b'"') => in_text = !in_text,
                Some(b'{' | b'[') => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            at += found + 1;
            if depth == 0 && !in_text {
                return Ok(at);
            }
        }
    }

    /// The end of the YAML document that begins here and whose first line has this length.
    fn yaml_end(&mut self, first: usize) -> Result<usize, SplitError> {
        let mut at = first;
        loop {
            let line = self.rest().get(at..).unwrap_or_default();
            // A marker and the byte behind it.
            if line.len() < 4 && self.more()? {
                continue;
            }
            let line = self.rest().get(at..).unwrap_or_default();
            if is_marker(line) {
                return Ok(at);
            }
            if let Some(end) = memchr(b'\n', line) {
                at += end + 1;
                continue;
            }
            let scanned = self.rest().len();
            if !self.more()? {
                return Ok(scanned);
            }
            // The start of this line stays, and is checked already.
            if let Some(end) = self.rest().get(scanned..).and_then(|rest| memchr(b'\n', rest)) {
                at = scanned + end + 1;
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), SplitError> {
        while self.rest().len() < 3 && self.more()? {}
        if self.rest().starts_with(b"\xef\xbb\xbf") {
            self.head += 3;
        }
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.head..).unwrap_or_default()
    }

    fn consume(&mut self, bytes: usize) {
        let lines = memchr_iter(b'\n', self.rest().get(..bytes).unwrap_or_default()).count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.head += bytes;
    }

    /// Reads on. False at the end of the file.
    fn more(&mut self) -> Result<bool, SplitError> {
        if self.complete {
            return Ok(false);
        }
        if self.rest().len() > self.limit {
            return Err(SplitError::TooLarge { line: self.line });
        }
        self.buffer.drain(..self.head);
        self.start += self.head as u64;
        self.head = 0;
        if self.buffer.capacity() > 4 * READ && self.buffer.len() < READ {
            self.buffer.shrink_to(2 * READ);
        }
        let next = self.content.read(self.path, self.start + self.buffer.len() as u64, READ)?;
        self.complete = next.is_empty();
        self.buffer.extend_from_slice(&next);
        Ok(!self.complete)
    }
}

/// The first byte outside of texts that opens or closes something.
fn structural(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a line begins with a document marker. YAML has no other meaning for it, not even in a text.
fn is_marker(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"---").or_else(|| line.strip_prefix(b"..."));
    rest.is_some_and(|rest| rest.first().is_none_or(|byte| is_space(*byte)))
}

/// Whether a line is a document marker, with nothing or a comment beside it.
fn is_lone_marker(line: &[u8]) -> bool {
    let beside = line.get(3..).unwrap_or_default();
    is_marker(line) && beside.iter().find(|byte| !is_space(**byte)).is_none_or(|byte| *byte == b'#')
}

#[cfg(test)]
mod tests;
