//! Single values of a configuration in the syntax of Helm's `--set`. Pure.
//!
//! `a.b[0].c=v` sets a member of an element of a list. Assignments are separated by commas; `{a,b}` is a list. A backslash before
//! `.`, `,`, `[`, `=`, `{` or `}` takes it literally. `true`, `false`, `null` and integers have their type; every other value is a string.

use std::{fmt::Write as _, iter::Peekable, str::Chars};

use serde_json::{Map, Value};

/// The most elements of a list that an index may create.
const LONGEST_LIST: usize = 1024;

/// One value, and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    path: Vec<Step>,
    value: Value,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

/// Text that is not an assignment, or that contradicts the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// It has no `=`.
    #[error("{0:?} has no value: write `path.to.member=value`")]
    NoValue(String),
    /// A part of the path is empty.
    #[error("a part of the path in {0:?} is empty")]
    EmptyPart(String),
    /// An index is not a number, or is not closed.
    #[error("{0:?} has an invalid index: write `list[0]`, with an index below {LONGEST_LIST}")]
    Index(String),
    /// A member of a value that is not an object, or an element of a value that is not a list.
    #[error("{path} cannot be set: {at} is not {want}")]
    Mismatch {
        /// The whole path.
        path: String,
        /// The part that has another type.
        at: String,
        /// What the path requires.
        want: &'static str,
    },
}

/// Whether values are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// As `--set`: integers, booleans and null have their type.
    Typed,
    /// As `--set-string`: every value is a string.
    Strings,
}

/// Parses the text of one `--set`.
pub fn parse(text: &str, typing: Typing) -> Result<Vec<Assignment>, AssignmentError> {
    let mut rest = text.chars().peekable();
    let mut assignments = Vec::new();
    while rest.peek().is_some() {
        let path = path(&mut rest, text)?;
        let value = value(&mut rest, typing);
        assignments.push(Assignment { path, value });
    }
    if assignments.is_empty() { Err(AssignmentError::NoValue(text.to_owned())) } else { Ok(assignments) }
}

/// Reads up to the `=`.
fn path(rest: &mut Peekable<Chars<'_>>, text: &str) -> Result<Vec<Step>, AssignmentError> {
    let mut steps = Vec::new();
    let mut member = String::new();
    let mut after_index = false;
    let close = |member: &mut String, after_index: bool, steps: &mut Vec<Step>| {
        if !member.is_empty() {
            steps.push(Step::Member(std::mem::take(member)));
        } else if !after_index {
            return Err(AssignmentError::EmptyPart(text.to_owned()));
        }
        Ok(())
    };
    loop {
        match rest.next() {
            None | Some(',') => return Err(AssignmentError::NoValue(text.to_owned())),
            Some('=') => {
                close(&mut member, after_index, &mut steps)?;
                return Ok(steps);
            }
            Some('.') => {
                close(&mut member, after_index, &mut steps)?;
                after_index = false;
            }
            Some('[') => {
                close(&mut member, after_index, &mut steps)?;
                steps.push(Step::Element(index(rest).ok_or_else(|| AssignmentError::Index(text.to_owned()))?));
                after_index = true;
            }
            Some(_) if after_index => return Err(AssignmentError::Index(text.to_owned())),
            Some('\\') => member.extend(rest.next()),
            Some(other) => member.push(other),
        }
    }
}

fn index(rest: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut digits = String::new();
    loop {
        match rest.next()? {
            ']' => return digits.parse().ok().filter(|index| *index < LONGEST_LIST),
            digit => digits.push(digit),
        }
    }
}

/// Reads up to the comma that ends the assignment.
fn value(rest: &mut Peekable<Chars<'_>>, typing: Typing) -> Value {
    if rest.next_if_eq(&'{').is_none() {
        return scalar(&word(rest, &[',']).0, typing);
    }
    let mut list = Vec::new();
    loop {
        let (text, end) = word(rest, &[',', '}']);
        let is_last = end != Some(',');
        if !(is_last && list.is_empty() && text.is_empty()) {
            list.push(scalar(&text, typing));
        }
        if is_last {
            // Anything between the brace and the next comma is ignored, as in Helm.
            let _ = word(rest, &[',']);
            return Value::Array(list);
        }
    }
}

/// Reads up to one of these characters, and returns the character.
fn word(rest: &mut Peekable<Chars<'_>>, ends: &[char]) -> (String, Option<char>) {
    let mut text = String::new();
    loop {
        match rest.next() {
            None => return (text, None),
            Some(end) if ends.contains(&end) => return (text, Some(end)),
            Some('\\') => text.extend(rest.next()),
            Some(other) => text.push(other),
        }
    }
}

fn scalar(text: &str, typing: Typing) -> Value {
    if typing == Typing::Strings { text.into() } else { typed(text) }
}

/// A value with the type that `--set` gives it.
pub(crate) fn typed(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        // A number with a leading zero is more often an identifier, as in Helm.
        "0" => 0.into(),
        _ if text.starts_with('0') => text.into(),
        _ => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
    }
}

impl Assignment {
    /// A value at the path that this text describes.
    pub fn at(text: &str, value: Value) -> Result<Self, AssignmentError> {
        let closed = format!("{text}=");
        let mut rest = closed.chars().peekable();
        let path = path(&mut rest, text)?;
        if rest.peek().is_some() {
            return Err(AssignmentError::EmptyPart(text.to_owned()));
        }
        Ok(Self { path, value })
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Sets the value; null removes the member.
    pub fn apply(self, config: &mut Map<String, Value>) -> Result<(), AssignmentError> {
        let mut root = Value::Object(std::mem::take(config));
        let result = set(&mut root, &self.path, 0, self.value);
        if let Value::Object(root) = root {
            *config = root;
        }
        result
    }
}

fn set(at: &mut Value, path: &[Step], depth: usize, value: Value) -> Result<(), AssignmentError> {
    let mismatch =
        |want| AssignmentError::Mismatch { path: text(path), at: text(path.get(..depth).unwrap_or_default()), want };
    let is_last = depth + 1 == path.len();
    match path.get(depth) {
        None => {
            *at = value;
            Ok(())
        }
        Some(Step::Member(name)) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(members) = at else { return Err(mismatch("an object")) };
            if is_last && value.is_null() {
                members.remove(name);
                return Ok(());
            }
            set(members.entry(name.clone()).or_insert(Value::Null), path, depth + 1, value)
        }
        Some(Step::Element(index)) => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let Value::Array(elements) = at else { return Err(mismatch("a list")) };
            if elements.len() <= *index {
                elements.resize(index + 1, Value::Null);
            }
            elements.get_mut(*index).map_or(Ok(()), |element| set(element, path, depth + 1, value))
        }
    }
}

fn text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Member(name) if text.is_empty() => text.push_str(name),
            Step::Member(name) => text.extend([".", name]),
            Step::Element(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

/// The overlay over the base: objects are merged member by member, everything else is replaced. A null in the overlay removes the
/// member.
pub fn merge(base: &mut Map<String, Value>, overlay: Map<String, Value>) {
    for (name, value) in overlay {
        match (base.get_mut(&name), value) {
            (_, Value::Null) => {
                base.remove(&name);
            }
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn applied(base: Value, texts: &[&str]) -> Result<Value, AssignmentError> {
        let Value::Object(mut config) = base else { panic!("an object") };
        for text in texts {
            for assignment in parse(text, Typing::Typed)? {
                assignment.apply(&mut config)?;
            }
        }
        Ok(Value::Object(config))
    }

    #[test]
    fn assignments_have_the_syntax_of_helm() {
        for (text, expected) in [
            ("a=1", json!({"a": 1})),
            ("a=-1,b=true,c=x", json!({"a": -1, "b": true, "c": "x"})),
            ("a.b.c=x", json!({"a": {"b": {"c": "x"}}})),
            ("a[1].b=x", json!({"a": [null, {"b": "x"}]})),
            ("a={x,2,false}", json!({"a": ["x", 2, false]})),
            ("a={}", json!({"a": []})),
            (r"node\.kubernetes\.io/os=linux", json!({"node.kubernetes.io/os": "linux"})),
            (r"a=b\,c", json!({"a": "b,c"})),
            ("a=", json!({"a": ""})),
            ("a=b=c", json!({"a": "b=c"})),
            ("a=1.5", json!({"a": "1.5"})),
            ("a=0644,b=0", json!({"a": "0644", "b": 0})),
        ] {
            assert_eq!(applied(json!({}), &[text]), Ok(expected), "{text}");
        }
        let strings = parse("a=true", Typing::Strings).unwrap();
        assert_eq!(strings[0].value, json!("true"));
    }

    #[test]
    fn a_value_replaces_and_null_removes() {
        let base = || json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        assert_eq!(applied(base(), &["a.b=3", "l[0]=9"]), Ok(json!({"a": {"b": 3, "c": 2}, "l": [9, 2]})));
        assert_eq!(applied(base(), &["a=null"]), Ok(json!({"l": [1, 2]})));
        assert_eq!(applied(base(), &["x.y=null"]), Ok(json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "x": {}})));
    }

    #[test]
    fn what_is_not_an_assignment_is_refused() {
        let refused = |text: &str| applied(json!({"a": {"b": "text"}}), &[text]).unwrap_err().to_string();
        insta::assert_snapshot!(refused("a"), @r#""a" has no value: write `path.to.member=value`"#);
        insta::assert_snapshot!(refused(""), @r#""" has no value: write `path.to.member=value`"#);
        insta::assert_snapshot!(refused("a..b=1"), @r#"a part of the path in "a..b=1" is empty"#);
        insta::assert_snapshot!(refused("a[x]=1"), @r#""a[x]=1" has an invalid index: write `list[0]`, with an index below 1024"#);
        insta::assert_snapshot!(refused("a[0]x=1"), @r#""a[0]x=1" has an invalid index: write `list[0]`, with an index below 1024"#);
        insta::assert_snapshot!(refused("a[99999999]=1"), @r#""a[99999999]=1" has an invalid index: write `list[0]`, with an index below 1024"#);
        insta::assert_snapshot!(refused("a.b.c=1"), @"a.b.c cannot be set: a.b is not an object");
        insta::assert_snapshot!(refused("a[0]=1"), @"a[0] cannot be set: a is not a list");
    }

    #[test]
    fn objects_are_merged_and_lists_are_replaced() {
        let (base, overlay) =
            (json!({"a": {"b": 1, "c": 2}, "l": [1, 2]}), json!({"a": {"b": 3, "c": null}, "l": [9]}));
        let mut merged = base.as_object().cloned().unwrap();
        merge(&mut merged, overlay.as_object().cloned().unwrap());
        assert_eq!(Value::Object(merged), json!({"a": {"b": 3}, "l": [9]}));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let mut config = Map::new();
            for assignment in parse(&text, Typing::Typed).unwrap_or_default() {
                let _ = assignment.apply(&mut config);
            }
        }
    }
}
