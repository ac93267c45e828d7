//! Hides values of Secrets in text that users may read.
//!
//! Provisioners and API servers quote values in their messages. A short value is hidden only where it is quoted, since it may occur in any
//! word; a boolean is never treated as a secret. The number of values is bounded: beyond it, texts are hidden as a whole.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// In place of a value that is not shown.
pub const HIDDEN: &str = "(hidden)";

/// In place of a text whose values cannot be hidden one by one.
pub const ALL_HIDDEN: &str = "(hidden: the Secrets of spec.valuesFrom have too many values to hide each in this text)";

/// The most values that are hidden one by one, in all their forms. Each text is searched for each of them.
const MOST: usize = 5000;
/// The most bytes of them.
const MOST_BYTES: usize = 4 << 20;
/// The end of a text that was cut.
const ELLIPSIS: char = '…';

/// The least length in bytes of a value that is hidden wherever it occurs.
const DISTINCT: usize = 4;
/// The least length in bytes of a line of a longer value that is hidden by itself.
const DISTINCT_LINE: usize = 8;
/// The least length in bytes of the beginning of a longer value that is hidden by itself.
const DISTINCT_BEGINNING: usize = 16;

/// The values to hide. Clones share them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redactor {
    /// The longest come first, so that a value inside of another one leaves nothing of it.
    texts: Arc<[Arc<str>]>,
    mode: Mode,
}

/// What is hidden besides the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    /// Nothing.
    #[default]
    Values,
    /// Everything in quotes: the values are unknown.
    Quoted,
    /// Every text: the values are too many.
    Everything,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.texts.len())
    }
}

impl Redactor {
    /// For Secrets that were not read yet: everything in quotes is hidden.
    pub fn unknown() -> Self {
        Self { mode: Mode::Quoted, ..Self::default() }
    }

    /// For Secrets with more values than can be hidden one by one: every text is hidden.
    pub fn everything() -> Self {
        Self { mode: Mode::Everything, ..Self::default() }
    }

    /// For the scalars in these values, and their usual encodings. If they are too many, every text is hidden.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut texts = Texts::default();
        secrets.into_iter().for_each(|value| collect(value, &mut texts));
        if texts.are_too_many {
            return Self::everything();
        }
        Self::sorted(texts.all.into_iter().map(Arc::from).collect(), Mode::Values)
    }

    /// Hides the values of both, which share their memory.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mode = self.mode.max(other.mode);
        if mode == Mode::Everything {
            return Self::everything();
        }
        for (one, another) in [(self, other), (other, self)] {
            if another.texts.is_empty() || one.texts == another.texts {
                return Self { mode, ..one.clone() };
            }
        }
        Self::sorted(self.texts.iter().chain(other.texts.iter()).cloned().collect(), mode)
    }

    fn sorted(texts: BTreeSet<Arc<str>>, mode: Mode) -> Self {
        let mut texts: Vec<Arc<str>> = texts.into_iter().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { texts: texts.into(), mode }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.mode == Mode::Values
    }

    /// About how many bytes of memory the values take.
    pub fn memory(&self) -> usize {
        // The pointer in the list, and the two counters beside the text.
        self.texts.iter().map(|text| text.len() + 2 * size_of::<&str>()).sum()
    }

    /// The address of the values, which clones share.
    pub fn address(&self) -> usize {
        self.texts.as_ptr().addr()
    }

    /// Whether both are one value in memory.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts, &other.texts)
    }

    /// The text without the values.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.mode == Mode::Everything && !text.is_empty() {
            return ALL_HIDDEN.to_owned().into();
        }
        let mut text = Cow::Borrowed(text);
        for secret in self.texts.iter() {
            if secret.len() >= DISTINCT {
                if text.contains(&**secret) {
                    text = text.replace(&**secret, HIDDEN).into();
                }
                if let Cow::Owned(hidden) = without_beginnings(&text, secret) {
                    text = hidden.into();
                }
                if let Cow::Owned(hidden) = without_cut_ends(&text, secret) {
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
        if self.mode == Mode::Quoted { unquoted(&text).into() } else { text }
    }

    /// Hides the values in place.
    pub fn hide(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.text(text) {
            *text = hidden;
        }
    }

    /// Hides the values in every string and number of a JSON value, but not in names of members.
    pub fn hide_in(&self, value: &mut Value) {
        rewrite(value, &|text| match self.mode {
            // A value can have very many texts.
            Mode::Everything => HIDDEN.to_owned().into(),
            Mode::Values | Mode::Quoted => self.text(text),
        });
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

/// The text without the short beginnings of a value before each place where a text was cut: the rest of the value is missing, and
/// [`without_beginnings`] finds longer ones.
fn without_cut_ends<'a>(text: &'a str, secret: &str) -> Cow<'a, str> {
    let mut result = Cow::Borrowed(text);
    let longest = secret.len().saturating_sub(1).min(DISTINCT_BEGINNING);
    let beginnings = || (DISTINCT..=longest).filter_map(move |length| secret.get(..length));
    // Each of them begins with the shortest one. A text can have very many places, and there can be very many values.
    if beginnings().next().is_none_or(|shortest| !text.contains(shortest)) {
        return result;
    }
    // From the end, so that the other places stay where they are.
    let mut hidden_from = text.len();
    for (place, _) in text.rmatch_indices(ELLIPSIS) {
        // A value can contain this character, too.
        if place >= hidden_from {
            continue;
        }
        let before = text.get(..place).unwrap_or_default();
        let Some(beginning) = beginnings().rev().find(|beginning| before.ends_with(beginning)) else { continue };
        hidden_from = place - beginning.len();
        result.to_mut().replace_range(hidden_from..place, HIDDEN);
    }
    result
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

/// The texts that are collected, as long as there are not too many.
#[derive(Default)]
struct Texts {
    all: BTreeSet<String>,
    bytes: usize,
    are_too_many: bool,
}

impl Texts {
    fn insert(&mut self, text: String) {
        if self.are_too_many || self.all.contains(&text) {
            return;
        }
        self.bytes += text.len();
        self.all.insert(text);
        if self.all.len() > MOST || self.bytes > MOST_BYTES {
            *self = Self { are_too_many: true, ..Self::default() };
        }
    }
}

fn collect(value: &Value, texts: &mut Texts) {
    if texts.are_too_many {
        return;
    }
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

fn add(text: &str, texts: &mut Texts) {
    let trimmed = text.trim();
    let untrimmed = (text != trimmed).then_some(text);
    for text in untrimmed.into_iter().chain([trimmed]).filter(|text| !text.trim().is_empty()) {
        for form in forms(text) {
            texts.insert(form);
        }
        if text.len() >= DISTINCT {
            texts.insert(STANDARD.encode(text));
        }
    }
    for line in trimmed.lines().map(str::trim).filter(|line| line.len() >= DISTINCT_LINE) {
        texts.insert(line.to_owned());
    }
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
    fn very_many_values_take_no_memory_and_none_is_shown() {
        let many: Vec<Value> = (0..100_000).map(|number| json!(format!("/value-{number}"))).collect();
        let long = json!({"a": "x".repeat(1 << 20), "b": "y".repeat(1 << 20)});
        for secrets in [json!(many), long] {
            let redactor = Redactor::of([&secrets]);
            assert_eq!((redactor.memory(), redactor.is_empty()), (0, false));
            assert_eq!(redactor.text("no /value-99999 here"), ALL_HIDDEN);
            assert_eq!(redactor.text(ALL_HIDDEN), ALL_HIDDEN);
            assert_eq!(redactor.text(""), "");
            let mut value = json!({"a": ["b", 1, true]});
            redactor.hide_in(&mut value);
            assert_eq!(value, json!({"a": [HIDDEN, HIDDEN, true]}));
            let both = Redactor::of([&json!("hunter2")]).and(&redactor);
            assert_eq!(both, redactor);
        }
        let few = Redactor::of([&json!((0..700).map(|number| format!("value-{number}")).collect::<Vec<_>>())]);
        assert_eq!(few.text("no value-699 here"), "no (hidden) here");
    }

    #[test]
    fn both_share_the_values_of_each() {
        let (one, other) = (Redactor::of([&json!("hunter2")]), Redactor::of([&json!("swordfish")]));
        let both = one.and(&other);
        assert_eq!(both.text("hunter2 swordfish"), "(hidden) (hidden)");
        assert!(
            both.texts.iter().all(|text| one.texts.iter().chain(other.texts.iter()).any(|it| Arc::ptr_eq(it, text)))
        );
        assert!(one.and(&Redactor::default()).is_shared_with(&one));
        assert!(Redactor::default().and(&one).is_shared_with(&one));
        assert!(!both.is_shared_with(&one));
    }

    #[test]
    fn the_beginning_of_a_value_is_hidden_where_the_text_was_cut() {
        let redactor = Redactor::of([&json!(["hunter2", "a-very-long-secret-value-of-a-user"])]);
        for (text, expected) in [
            ("the password is hunter…", "the password is (hidden)…"),
            ("hunt… and a-very-l… more", "(hidden)… and (hidden)… more"),
            ("hun…", "hun…"),
            ("hunter is known", "hunter is known"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_may_contain_the_sign_for_a_cut() {
        let redactor = Redactor::of([&json!("abcdefghi…jklmnop")]);
        for (text, expected) in [
            ("abcdefghi…jk…", "(hidden)…"),
            ("abcdefghi… and abcdefghi…jk…, abcd…", "(hidden)… and (hidden)…, (hidden)…"),
        ] {
            assert_eq!(redactor.text(text), expected, "{text}");
        }
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
