//! Documents from a stream.

use std::fmt;

use crate::{Node, json, load, text};

/// Limits on the cost of a stream. The defaults exceed any real bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the stream; also bytes of text that aliases may repeat. Default 32 MiB.
    pub bytes: usize,
    /// The nesting depth of collections. Default 100: later JSON parsers have limits as well, 128 for serde_json.
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
    /// Its value. Never null: empty documents are skipped.
    pub root: Node,
    /// Suspicious YAML that is accepted; a hundred at most.
    pub warnings: Vec<Warning>,
}

/// Valid YAML that is probably a mistake: a key that occurs twice in one mapping with different values, or that a merge
/// key sets again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// The problem.
    pub message: String,
}

/// Why a stream cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// The problem.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// All non-empty documents of a stream: YAML, JSON, or a sequence of JSON values, in UTF-8.
///
/// # Errors
/// The first position that cannot be parsed, or at which a limit is exceeded.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<Document>, ParseError> {
    if bytes.len() > limits.bytes {
        return Err(ParseError { line: 1, column: 1, message: format!("larger than {} bytes", limits.bytes) });
    }
    let text = text::decode(bytes)?;
    // JSON is YAML except for details, such as surrogate pairs and several values in a row, and is far cheaper to parse
    // as JSON.
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
