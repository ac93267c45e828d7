//! Finds all remembered values in a text, in one pass.

use std::{borrow::Cow, collections::BTreeSet};

use aho_corasick::{AhoCorasick, BuildError};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_values::redaction::{HIDDEN, forms, rewrite};
use serde_json::Value;

use super::{
    memory::{Memory, is_distinct},
    vocabulary::Vocabulary,
};

/// The automaton has only the first bytes of a value, so that it stays small. The beginning of a value that was cut off has at least this length.
const BEGINNING: usize = 16;
/// A longer value is looked for in pieces of this length in bytes, which bounds the time for each position of a text.
const PIECE: usize = 256;

/// A value in one of its forms, or a piece of it.
#[derive(Debug)]
struct Form {
    text: String,
    /// The longest other form that this one begins with.
    shorter: Option<usize>,
}

/// The forms of all values.
#[derive(Debug)]
pub struct Finder<'a> {
    /// In the order of their texts.
    forms: Vec<Form>,
    beginnings: AhoCorasick,
    vocabulary: &'a Vocabulary,
}

impl<'a> Finder<'a> {
    pub(super) fn new(memory: &'a Memory) -> Result<Self, BuildError> {
        let mut texts = BTreeSet::new();
        for value in memory.values() {
            add_forms(value, &mut texts);
        }
        let beginnings: BTreeSet<&str> = texts.iter().filter_map(|text| beginning(text)).collect();
        let beginnings = AhoCorasick::new(beginnings)?;
        let (mut forms, mut open): (Vec<Form>, Vec<usize>) = (Vec::new(), Vec::new());
        for text in texts {
            let is_shorter = |at: &usize| forms.get(*at).is_some_and(|form| text.starts_with(&form.text));
            while open.last().is_some_and(|at| !is_shorter(at)) {
                open.pop();
            }
            let shorter = open.last().copied();
            open.push(forms.len());
            forms.push(Form { text, shorter });
        }
        Ok(Self { forms, beginnings, vocabulary: memory.vocabulary() })
    }

    /// The text without the values. Values that overlap are hidden together.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.beginnings.find_overlapping_iter(text);
        let mut spans: Vec<(usize, usize)> = found
            .filter_map(|found| Some((found.start(), found.start() + self.length(text.get(found.start()..)?)?)))
            .collect();
        if spans.is_empty() {
            return text.into();
        }
        spans.sort_unstable();
        let (mut result, mut shown) = (String::new(), 0);
        for (start, end) in spans {
            if start >= shown {
                result.push_str(text.get(shown..start).unwrap_or_default());
                result.push_str(HIDDEN);
            }
            shown = shown.max(end);
        }
        result.push_str(text.get(shown..).unwrap_or_default());
        result.into()
    }

    /// Hides the values in every string and number of a JSON value, but not in names of members.
    pub fn hide_in(&self, value: &mut Value) {
        rewrite(value, &|text| self.text(text));
    }

    /// The length of the longest value that a text begins with, or of the beginning of one that was cut off.
    fn length(&self, text: &str) -> Option<usize> {
        let next = self.forms.partition_point(|form| form.text.as_str() <= text);
        let common = |at: usize| self.forms.get(at).map_or(0, |form| common(&form.text, text));
        let before = next.checked_sub(1);
        let same = before.map_or(0, common);
        // What precedes in order begins with every form that the text begins with.
        let mut form = before.and_then(|at| self.forms.get(at));
        while let Some(longer) = form.filter(|form| form.text.len() > same) {
            form = longer.shorter.and_then(|at| self.forms.get(at));
        }
        let whole = form.map(|form| form.text.len());
        let same = same.max(common(next));
        let (begun, rest) = text.split_at_checked(same)?;
        let is_cut = same >= BEGINNING && ends(rest) && !self.vocabulary.contains(begun);
        whole.max(is_cut.then_some(same))
    }
}

/// Whether a text may follow a value that was cut off.
fn ends(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['\n', '\r', '…', '"', '\'', '`', '\\']) || rest.starts_with("...")
}

fn beginning(text: &str) -> Option<&str> {
    text.get(..text.floor_char_boundary(BEGINNING))
}

/// How many bytes two texts have in common from their beginning, in whole characters.
fn common(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(same)
}

/// A value in its forms and in Base64, and its lines.
fn add_forms(value: &str, texts: &mut BTreeSet<String>) {
    let lines = value.lines().map(str::trim).filter(|line| is_distinct(line)).map(str::to_owned);
    for form in forms(value).into_iter().chain([STANDARD.encode(value)]).chain(lines) {
        let mut rest = form.as_str();
        while !rest.is_empty() {
            // A last piece that is too short occurs in any text: the one before is longer.
            let is_last = rest.len() < PIECE + BEGINNING;
            let end = if is_last { rest.len() } else { rest.floor_char_boundary(PIECE) };
            let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            texts.insert(piece.to_owned());
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn memory(values: &[&str]) -> Memory {
        let mut memory = Memory::default();
        for value in values {
            memory.add(value);
        }
        memory
    }

    #[test]
    fn values_are_hidden_in_every_usual_form() {
        let memory =
            memory(&["first-line\nsecond\"line", "harbour/admin", "harbour/admin-of-the-second-quay", "r-admin-x"]);
        let finder = Finder::new(&memory).unwrap();
        for (text, expected) in [
            ("nothing", "nothing"),
            ("user harbour/admin2", "user (hidden)2"),
            ("harbour/admin-of-the-second", "(hidden)"),
            ("harbour/admin-of-the-second quay", "(hidden)-of-the-second quay"),
            ("harbour/admin-of-the-s… or harbour/admin-of-the-second-quay", "(hidden)… or (hidden)"),
            (r#"Invalid value: "first-line\nsecond\"line": no"#, r#"Invalid value: "(hidden)": no"#),
            ("at first-line", "at (hidden)"),
            ("/spec/harbour~1admin: no", "/spec/(hidden): no"),
            ("aGFyYm91ci9hZG1pbg==", "(hidden)"),
        ] {
            assert_eq!(finder.text(text), expected, "{text}");
        }
        let mut value = json!({"harbour/admin": ["x harbour/admin", 1]});
        finder.hide_in(&mut value);
        assert_eq!(value, json!({"harbour/admin": ["x (hidden)", 1]}));
    }

    #[test]
    fn overlapping_values_leave_nothing_and_adjacent_ones_neither() {
        let memory = memory(&["abcd-efgh", "efgh-ijkl", "one-1234"]);
        let finder = Finder::new(&memory).unwrap();
        assert_eq!(finder.text("x abcd-efgh-ijkl y"), "x (hidden) y");
        assert_eq!(finder.text("one-1234one-1234"), "(hidden)(hidden)");
        assert_eq!(finder.text("abcd-efghone-1234"), "(hidden)(hidden)");
    }

    #[test]
    fn long_values_and_periods_are_hidden_in_pieces() {
        let long = (0..300).map(|number| format!("{number:04}-")).collect::<Vec<_>>().concat();
        let memory = memory(&[&long, &"a-".repeat(1000)]);
        let finder = Finder::new(&memory).unwrap();
        let hidden = finder.text(&long).replace(HIDDEN, "");
        assert_eq!(hidden, "");
        assert_eq!(finder.text(&"a-".repeat(1500)).replace(HIDDEN, ""), "");
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_value(secrets in prop::collection::vec("[ab1é-]{8,20}", 1..8), before in "[ab1é-]{0,9}", after in "[ab1é-]{0,9}") {
            let all: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let memory = memory(&all);
            let finder = Finder::new(&memory).unwrap();
            for secret in memory.values() {
                let text = format!("{before}{secret}{after}");
                let hidden = finder.text(&text).into_owned();
                prop_assert!(memory.values().iter().all(|secret| !hidden.contains(secret.as_str())), "{hidden} of {text}");
            }
        }
    }
}
