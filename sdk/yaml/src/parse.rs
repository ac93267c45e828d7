//! Documents from a stream.

use std::fmt;

use crate::{Node, json, load, text};

/// What a stream may cost. The defaults hold any real bundle with room to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the stream; also bytes of text that aliases may repeat. Default 32 MiB.
    pub bytes: usize,
    /// How deep collections may lie in one another. Default 100: the readers of JSON after this one have limits as well, 128
    /// for serde_json.
    pub depth: usize,
    /// Values and keys, with aliases and anchors expanded. Default four million.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 32 << 20, depth: 100, nodes: 4_000_000 }
    }
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its value. Never null: empty documents are left out.
    pub root: Node,
    /// What the reader takes, but somebody should look at; a hundred at most.
    pub warnings: Vec<Warning>,
}

/// Something legal that is hardly meant: a key that stands twice in one mapping with different values, or that a merge key
/// brings in again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// What is odd.
    pub message: String,
}

/// Why a stream cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// All documents of a stream that are not empty: YAML, JSON, or JSON values one after the other, in UTF-8.
///
/// # Errors
/// The first place that cannot be read, or at which a limit is exceeded.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<Document>, ParseError> {
    if bytes.len() > limits.bytes {
        return Err(ParseError { line: 1, column: 1, message: format!("larger than {} bytes", limits.bytes) });
    }
    let text = text::decode(bytes)?;
    // JSON is YAML but for details, such as pairs of surrogates and several values in a row, and far cheaper to read as what
    // it is.
    if text.trim_start().starts_with(['{', '['])
        && let Some(documents) = json::load(text, limits)
    {
        return Ok(documents);
    }
    text::check_characters(text)?;
    load::load(text, limits)
}

#[cfg(test)]
mod tests;
