//! Escaped text, nouns with a count, and lines of a width.

pub use chandler_core::text::{count, one_line, printable};

/// The lines of a text of at most `width` characters, broken between words; a longer word has its own line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
