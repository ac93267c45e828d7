//! Untrusted text in output: characters that hide, reorder or control text are escaped, and nothing else is changed.

use std::{fmt::Write as _, sync::OnceLock};

use chandler_core::text::{is_deceptive, one_line, printable, printable_json, printable_json_for_yaml};
use chandler_expression::re2::Regex;
use chandler_yaml::{Limits, parse};

use crate::memory;

/// An escaped character is at most `\u{10FFFF}`; the worst growth is a byte that becomes `\u{001B}`.
const GROWTH: usize = 8;
/// A few copies of the text: as JSON, as its values, and as the events of a YAML parser.
const FIXED: usize = 4 << 20;
const PER_BYTE: usize = 1000;

pub(crate) fn holds(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = printable(&text);
    assert_eq!(shown, one_by_one(&text), "not what the Unicode Character Database says");
    assert!(shown.len() <= text.len() * GROWTH, "{} bytes of {}", shown.len(), text.len());
    assert_eq!(printable(&shown), shown, "escaped twice");
    assert_eq!(is_hidden().is_match(&text), shown != text, "ordinary text is changed, or other text is not");
    memory::bounded(input, FIXED, PER_BYTE, || {
        line(&text);
        json(&text);
    });
}

/// One line: words with a space between.
fn line(text: &str) {
    let line = one_line(text);
    assert!(!line.contains(['\n', '\t']) && !line.contains("  ") && line.trim() == line, "{line:?}");
    assert!(!line.contains(is_deceptive), "{line:?}");
    assert_eq!(one_line(&line), line, "made one line twice");
}

/// JSON keeps its meaning, for JSON parsers and for our YAML parser.
fn json(text: &str) {
    for json in [serde_json::json!([text]), serde_json::json!({"key": {text: [text, 1]}})] {
        for written in [json.to_string(), format!("{json:#}")] {
            let shown = printable_json(&written);
            assert!(!shown.contains(is_deceptive), "{shown:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), json, "{shown:?}");
            let shown = printable_json_for_yaml(&written);
            assert!(!shown.contains(is_deceptive), "{shown:?}");
            let documents = parse(shown.as_bytes(), &Limits::default()).expect("YAML");
            let root = &documents.first().expect("a document").root;
            assert_eq!(root.to_json(), json, "{shown:?}");
        }
    }
}

/// A reference implementation, character by character.
fn one_by_one(text: &str) -> String {
    let (mut shown, mut buffer) = (String::new(), [0; 4]);
    for c in text.chars() {
        if is_hidden().is_match(c.encode_utf8(&mut buffer)) {
            let _ = write!(shown, "\\u{{{:04X}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters that hide, reorder or control text, by their Unicode properties, the empty pattern of Braille, and the annotation characters.
fn is_hidden() -> &'static Regex {
    static HIDDEN: OnceLock<Regex> = OnceLock::new();
    HIDDEN.get_or_init(|| {
        let class =
            r"[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\x{2800}\x{FFF0}-\x{FFFB}]--[\n\t]]";
        Regex::new(class).expect("a class")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_classified_by_its_unicode_properties() {
        let mut buffer = [0; 4];
        let differ: Vec<char> = ('\0'..=char::MAX)
            .filter(|c| is_hidden().is_match(c.encode_utf8(&mut buffer)) != is_deceptive(*c))
            .collect();
        assert!(differ.is_empty(), "{differ:?}");
    }
}
