//! Quotes text like Go's verb `%q`, which Kubernetes uses in messages.

use std::fmt::Write as _;

/// A text in quotes, with quotes, backslashes and unprintable characters escaped.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            // Writing to a String cannot fail.
            other if other.is_ascii_control() => drop(write!(quoted, "\\x{:02x}", u32::from(other))),
            other if other.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(other))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of texts: `["a" "b"]`.
pub fn quote_all<T: AsRef<str>>(texts: &[T]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        let cases = [
            ("", r#""""#),
            ("pods/log", r#""pods/log""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\n\t\u{1}\u{7f}\u{85}é'", r#""\n\t\x01\x7f\u0085é'""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
        assert_eq!(quote_all(&["a", "b c"]), r#"["a" "b c"]"#);
        assert_eq!(quote_all::<&str>(&[]), "[]");
    }
}
