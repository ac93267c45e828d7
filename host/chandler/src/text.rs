//! Text of others on a terminal.

use std::borrow::Cow;

/// Text from a bundle, a plugin, a registry or a cluster with everything replaced that a terminal would obey or that would
/// show it in another order: control characters but line feed and tab, and the marks that change the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hostile) {
        Cow::Owned(text.chars().map(|c| if is_hostile(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The same on one line, with runs of white space as one space.
pub fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `1 object`, `2 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn is_hostile(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        assert_eq!(printable("plain\ttext\nü"), "plain\ttext\nü");
        assert_eq!(printable("\u{1b}[2Jgone\r\u{202e}x\u{9b}m"), "\u{fffd}[2Jgone\u{fffd}\u{fffd}x\u{fffd}m");
        assert_eq!(one_line(" a\n\n  b\tc "), "a b c");
    }

    #[test]
    fn nouns_are_counted() {
        assert_eq!(
            [count(0, "object"), count(1, "object"), count(2, "object")],
            ["0 objects", "1 object", "2 objects"]
        );
    }
}
