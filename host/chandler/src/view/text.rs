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

/// A message of several lines as one: the lines are separated by semicolons, except after a colon.
pub fn joined_lines(message: &str) -> String {
    let mut text = String::new();
    for line in message.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !text.is_empty() {
            text.push_str(if text.ends_with(':') { " " } else { "; " });
        }
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_separated() {
        assert_eq!(joined_lines("a\n  b\n\nerrors:\n  - c\n  - d\n"), "a; b; errors: - c; - d");
        assert_eq!((joined_lines("a"), joined_lines("\n")), ("a".to_owned(), String::new()));
    }
}
