//! Hides values of Secrets in text that users may read.
//!
//! Provisioners and API servers quote values in their messages. A short value is hidden only where it is quoted, since it may occur in any
//! word; a boolean is never treated as a secret.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// In place of a value that is not shown.
pub const HIDDEN: &str = "(hidden)";

/// The least length in bytes of a value that is hidden wherever it occurs.
const DISTINCT: usize = 4;
/// The least length in bytes of a line of a longer value that is hidden by itself.
const DISTINCT_LINE: usize = 8;
/// The least length in bytes of the beginning of a longer value that is hidden by itself.
const DISTINCT_BEGINNING: usize = 16;

/// The values to hide.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redactor {
    /// The longest come first, so that a value inside of another one leaves nothing of it.
    texts: Vec<String>,
    /// Whether the values are unknown, so that everything in quotes is hidden.
    unknown: bool,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.texts.len())
    }
}

impl Redactor {
    /// For Secrets that were not read yet: everything in quotes is hidden.
    pub fn unknown() -> Self {
        Self { texts: Vec::new(), unknown: true }
    }

    /// For the scalars in these values, and their usual encodings.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut texts = BTreeSet::new();
        secrets.into_iter().for_each(|value| collect(value, &mut texts));
        Self::sorted(texts)
    }

    /// Hides the values of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            unknown: self.unknown || other.unknown,
            ..Self::sorted(self.texts.iter().chain(&other.texts).cloned().collect())
        }
    }

    fn sorted(texts: BTreeSet<String>) -> Self {
        let mut texts: Vec<String> = texts.into_iter().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { texts, unknown: false }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && !self.unknown
    }

    /// The text without the values.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.texts {
            if secret.len() >= DISTINCT {
                if text.contains(secret.as_str()) {
                    text = text.replace(secret.as_str(), HIDDEN).into();
                }
                if let Cow::Owned(hidden) = without_beginnings(&text, secret) {
                    text = hidden.into();
                }
                continue;
            }
            for quote in ['"', '\'', '`'] {
                let quoted = format!("{quote}{secret}{quote}");
                if text.contains(&quoted) {
                    text = text.replace(&quoted, HIDDEN).into();
                }
            }
        }
        if self.unknown { unquoted(&text).into() } else { text }
    }

    /// Hides the values in place.
    pub fn hide(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.text(text) {
            *text = hidden;
        }
    }

    /// Hides the values in every string and number of a JSON value, but not in names of members.
    pub fn hide_in(&self, value: &mut Value) {
        rewrite(value, &|text| self.text(text));
    }
}

/// Replaces every string and number of a JSON value for which `replaced` returns another text, but no name of a member.
pub fn rewrite(value: &mut Value, replaced: &impl Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(other) = replaced(text) {
                *text = other;
            }
        }
        Value::Number(number) => {
            if let Cow::Owned(other) = replaced(&number.to_string()) {
                *value = other.into();
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| rewrite(element, replaced)),
        Value::Object(members) => members.values_mut().for_each(|member| rewrite(member, replaced)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The text without the beginnings of a long value: messages may be cut before they come here.
fn without_beginnings<'a>(text: &'a str, secret: &str) -> Cow<'a, str> {
    let Some(beginning) = secret.get(..secret.floor_char_boundary(DISTINCT_BEGINNING)) else { return text.into() };
    if secret.len() <= DISTINCT_BEGINNING || !text.contains(beginning) {
        return text.into();
    }
    let (mut result, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(beginning) {
        let (before, found) = rest.split_at(at);
        let same = found.char_indices().zip(secret.chars()).take_while(|((_, one), other)| one == other);
        let end = same.map(|((at, char), _)| at + char.len_utf8()).last().unwrap_or(found.len());
        result.push_str(before);
        result.push_str(HIDDEN);
        rest = found.get(end..).unwrap_or_default();
    }
    result.push_str(rest);
    result.into()
}

/// The text with everything in double quotes hidden.
fn unquoted(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once('"') {
        result.push_str(before);
        result.push_str(HIDDEN);
        rest = end_of_quote(quoted);
    }
    result.push_str(rest);
    result
}

/// What follows the closing quote; nothing where there is none.
fn end_of_quote(quoted: &str) -> &str {
    let mut escaped = false;
    for (at, char) in quoted.char_indices() {
        match char {
            '"' if !escaped => return quoted.get(at + 1..).unwrap_or_default(),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    ""
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => add(&number.to_string(), texts),
        Value::String(text) => add(text, texts),
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                // Names such as `image` are in every message. A user may have put a value where a name belongs.
                if !is_ordinary(name) {
                    add(name, texts);
                }
                collect(member, texts);
            }
        }
    }
}

/// Whether a text looks like the name of a field, and not like a value.
fn is_ordinary(name: &str) -> bool {
    name.len() <= 40
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && name.bytes().filter(u8::is_ascii_digit).count() <= 4
}

fn add(text: &str, texts: &mut BTreeSet<String>) {
    let trimmed = text.trim();
    for text in [text, trimmed].into_iter().filter(|text| !text.trim().is_empty()) {
        texts.extend(forms(text));
        if text.len() >= DISTINCT {
            texts.insert(STANDARD.encode(text));
        }
    }
    texts.extend(trimmed.lines().map(str::trim).filter(|line| line.len() >= DISTINCT_LINE).map(str::to_owned));
}

/// A value as messages have it: as it is, as JSON and Rust quote it, escaped as in a terminal, and in a JSON pointer. Some are equal.
pub fn forms(text: &str) -> [String; 5] {
    let inner = |quoted: String| quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    [
        text.to_owned(),
        // As the API server and provisioners quote it.
        inner(Value::String(text.to_owned()).to_string()),
        // As provisioners in Rust quote it.
        inner(format!("{text:?}")),
        chandler_core::text::printable(text).into_owned(),
        chandler_core::pointer::escape(text),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_hidden_in_every_usual_form() {
        let secrets = json!({"user": "harbour-admin", "lines": "first-line\nsecond\"line\n", "pin": 7, "list": [123_456, true], "s": "ab"});
        let redactor = Redactor::of([&secrets]);
        for (text, expected) in [
            ("nothing", "nothing"),
            ("user harbour-admin2", "user (hidden)2"),
            (r#"Invalid value: "first-line\nsecond\"line\n": no"#, r#"Invalid value: "(hidden)": no"#),
            ("at first-line", "at (hidden)"),
            ("123456 and 7 and true", "(hidden) and 7 and true"),
            (r#""7" or 'ab', about"#, "(hidden) or (hidden), about"),
            ("aGFyYm91ci1hZG1pbg==", "(hidden)"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
        }
        let mut value = json!({"harbour-admin": ["x harbour-admin", 1, 123_456]});
        redactor.hide_in(&mut value);
        assert_eq!(value, json!({"harbour-admin": ["x (hidden)", 1, "(hidden)"]}));
        assert!(Redactor::of([&json!({"a": {"b": true, "c": ""}})]).is_empty());
    }

    #[test]
    fn names_that_look_like_values_are_hidden_and_so_are_beginnings() {
        let secrets = json!({"tok/PLANT80": 1, "image": {"PLANT\u{202e}": "x"}, "k": "a-very-long-secret-value-of-a-user", "é-long-secret-value": 2});
        let redactor = Redactor::of([&secrets]);
        for (text, expected) in [
            (r#"unknown field "tok/PLANT80""#, r#"unknown field "(hidden)""#),
            ("/spec/tok~1PLANT80: no", "/spec/(hidden): no"),
            (r#"unknown field "PLANT\u{202e}" of image"#, r#"unknown field "(hidden)" of image"#),
            ("a-very-long-secret-value-o…", "(hidden)…"),
            ("a-very-long-seX", "a-very-long-seX"),
            ("twice a-very-long-secret, a-very-long-secret-", "twice (hidden), (hidden)"),
            ("é-long-secret-val", "(hidden)"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
        }
    }

    #[test]
    fn unknown_values_are_hidden_by_their_quotes() {
        let unknown = Redactor::unknown();
        assert_eq!(unknown.text(r#"a "b\"c" d "e"#), "a (hidden) d (hidden)");
        assert_eq!(unknown.text("none"), "none");
        let both = unknown.and(&Redactor::of([&json!("hunter2")]));
        assert_eq!(both.text(r#"hunter2 "x""#), "(hidden) (hidden)");
    }

    #[test]
    fn the_text_for_debugging_has_no_value() {
        assert!(!format!("{:?}", Redactor::of([&json!("hunter2")])).contains("hunter2"));
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_distinct_value(secret in "[a-z0-9!?]{9,20}", before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let redactor = Redactor::of([&json!({"a": [secret.clone()]})]);
            let text = format!("{before}{secret}{after}");
            let hidden = redactor.text(&text).into_owned();
            prop_assert!(!hidden.contains(&secret) || before.contains(&secret) || after.contains(&secret));
            prop_assert_eq!(redactor.text(&hidden).into_owned(), hidden);
        }
    }
}
