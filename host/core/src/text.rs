//! Untrusted text in output: messages, logs, Events, status and terminals.
//!
//! Bundles, plugins, registries and the authors of objects choose text that people read. Some characters control a terminal,
//! reorder the text around them, or are invisible, so that two different names look alike. [`printable`] is the one place that
//! knows these characters. Every output of untrusted text must use it.

use std::{borrow::Cow, fmt::Write as _};

/// The text with every deceptive character escaped as its code point in hexadecimal, such as `\u{061C}`.
///
/// Line feeds and tabs stay. Every other control character of Unicode is escaped, and so are characters without a shape:
/// zero-width characters and joiners, direction marks, line and paragraph separators, variation selectors, fillers and tags.
/// Escaping is idempotent.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, c| {
        // Writing to a String does not fail.
        let _ = write!(escaped, "\\u{{{:04X}}}", u32::from(c));
    })
}

/// Like [`printable`] on one line: runs of white space, including line feeds, become one space.
pub fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A noun with a count: `1 object`, `2 objects`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Whether a character must be escaped.
///
/// These are control characters, line and paragraph separators, Unicode's `Default_Ignorable_Code_Point`s (including unassigned
/// ones), annotation characters, and the empty pattern of Braille, which looks like a space in a name.
pub fn is_deceptive(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => false,
        c => {
            c.is_control()
                || matches!(c,
                    // Soft hyphen, grapheme joiner, Arabic letter mark.
                    '\u{ad}' | '\u{34f}' | '\u{61c}'
                    // Fillers and vowels without a shape.
                    | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
                    // Mongolian variation selectors and vowel separator.
                    | '\u{180b}'..='\u{180f}'
                    // Zero-width characters and joiners, marks of direction.
                    | '\u{200b}'..='\u{200f}'
                    // Separators of lines and paragraphs, embeddings and overrides of direction.
                    | '\u{2028}'..='\u{202e}'
                    // The pattern of Braille without a dot.
                    | '\u{2800}'
                    // Word joiner, invisible operators, isolates, deprecated format characters.
                    | '\u{2060}'..='\u{206f}'
                    // Variation selectors, byte order mark, annotations.
                    | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
                    // Shorthand and musical format characters, tags and more variation selectors.
                    | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        }
    }
}

/// JSON text of the same value without deceptive characters. They occur only in strings, where each one becomes an escape such
/// as `\u061c`, which a JSON parser reverts.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

/// JSON text for YAML parsers, which do not support surrogate pairs: `\u061c`, `\U000e0061`.
pub fn printable_json_for_yaml(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, c| {
        let code = u32::from(c);
        let _ = if code > 0xffff { write!(escaped, "\\U{code:08x}") } else { write!(escaped, "\\u{code:04x}") };
    })
}

/// The text with every deceptive character escaped by `write`.
fn escaped(text: &str, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(is_deceptive) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(clean);
    for c in rest.chars() {
        if is_deceptive(c) {
            write(&mut escaped, c);
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_noun_is_plural_unless_the_count_is_one() {
        assert_eq!(
            [count(0, "object"), count(1, "object"), count(2, "object")],
            ["0 objects", "1 object", "2 objects"]
        );
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        for (text, want) in [
            ("plain\ttext\nü ☃ 日本語 ع 😀", "plain\ttext\nü ☃ 日本語 ع 😀"),
            ("\u{1b}[2Jgone\r", "\\u{001B}[2Jgone\\u{000D}"),
            ("a\0b\u{7f}c", "a\\u{0000}b\\u{007F}c"),
            // C1 controls: some terminals treat them as ESC [.
            ("\u{80}\u{9b}31m\u{9f}", "\\u{0080}\\u{009B}31m\\u{009F}"),
            ("a\u{ad}b\u{34f}", "a\\u{00AD}b\\u{034F}"),
            ("a\u{61c}b", "a\\u{061C}b"),
            ("a\u{180e}b", "a\\u{180E}b"),
            ("\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}", "\\u{200B}\\u{200C}\\u{200D}\\u{200E}\\u{200F}"),
            ("a\u{2028}b\u{2029}c", "a\\u{2028}b\\u{2029}c"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", "\\u{202A}\\u{202B}\\u{202C}\\u{202D}\\u{202E}"),
            ("\u{2060}\u{2061}\u{2062}\u{2063}\u{2064}", "\\u{2060}\\u{2061}\\u{2062}\\u{2063}\\u{2064}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}"),
            ("\u{feff}x\u{fe0f}", "\\u{FEFF}x\\u{FE0F}"),
            ("pay\u{e0061}\u{e007f}\u{e0100}", "pay\\u{E0061}\\u{E007F}\\u{E0100}"),
            ("\u{2800}⠁", "\\u{2800}⠁"),
            ("\u{3164}\u{ffa0}\u{fff9}", "\\u{3164}\\u{FFA0}\\u{FFF9}"),
        ] {
            assert_eq!(printable(text), want, "{text:?}");
        }
        assert!(matches!(printable("nothing to do"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_line_has_single_spaces() {
        assert_eq!(one_line(" a\n\n  b\tc\u{2028}d "), "a b c\\u{2028}d");
    }

    proptest! {
        #[test]
        fn only_deceptive_characters_are_escaped(text in "(\\PC|[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\u{fe00}-\u{fe0f}]|[a-z\\n\\t]){0,40}") {
            let shown = printable(&text);
            prop_assert!(!shown.contains(is_deceptive), "{shown:?}");
            prop_assert_eq!(printable(&shown), shown.as_ref());
            let json = serde_json::to_string_pretty(&[&text]).unwrap();
            let shown_json = printable_json(&json);
            prop_assert!(!shown_json.contains(is_deceptive), "{shown_json:?}");
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown_json).unwrap(), [text.as_str()]);
            let kept: String = text.chars().filter(|c| !is_deceptive(*c)).collect();
            if kept == text {
                prop_assert_eq!(shown.as_ref(), text.as_str());
            }
        }
    }
}
