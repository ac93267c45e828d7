//! Reading YAML as Helm does: `sigs.k8s.io/yaml`, which converts to JSON, whose numbers are all `float64`.

use chandler_go_template::{Map, Value};
use chandler_yaml::{Document, Kind, Limits, Node, ParseError};

/// Why a text is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error converting YAML to JSON: yaml: line {line}: {message}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

fn limits() -> Limits {
    Limits { bytes: 32 << 20, depth: 200, nodes: 2_000_000 }
}

/// The value of the first document; nil if there is none.
pub fn read(text: &str) -> Result<Value, ReadError> {
    Ok(documents(text)?.first().map_or(Value::Nil, |document| value(&document.root)))
}

/// All documents that are not empty.
pub fn documents(text: &str) -> Result<Vec<Document>, ReadError> {
    let documents = parse(text)?;
    Ok(stripped(text, documents.last()).unwrap_or(documents))
}

/// The value that is last in the text.
fn last_leaf(document: &Document) -> &Node {
    let mut leaf = &document.root;
    loop {
        let inner = match &leaf.kind {
            Kind::Mapping(mapping) => {
                mapping.iter().map(|entry| &entry.value).max_by_key(|node| (node.line, node.column))
            }
            Kind::Sequence(items) => items.iter().max_by_key(|node| (node.line, node.column)),
            _ => None,
        };
        let Some(inner) = inner else { return leaf };
        leaf = inner;
    }
}

/// The documents with a block scalar at the end of the text that keeps no line feed: so Helm's reader takes it, if the text has none at its end.
fn stripped(text: &str, last: Option<&Document>) -> Option<Vec<Document>> {
    let last_line = text.rsplit('\n').next()?.trim_start();
    if last_line.is_empty() {
        return None;
    }
    let leaf = last_leaf(last?);
    let content = leaf.as_str()?.strip_suffix('\n')?;
    if !content.ends_with(last_line) {
        return None;
    }
    // The head of the block is in the line of its node, or above it, with empty lines between. The text of a block may look like a head, too: the
    // right one is where a change takes the line feed only.
    let lines: Vec<&str> = text.split('\n').collect();
    let line = usize::try_from(leaf.line).ok()?.checked_sub(1)?;
    let above = (0..line).rev().find(|at| lines.get(*at).is_some_and(|line| !line.trim().is_empty()));
    [Some(line), above].into_iter().flatten().find_map(|at| {
        let documents = parse(&with_stripping_head(&lines, at)?).ok()?;
        (last_leaf(documents.last()?).as_str() == Some(content)).then_some(documents)
    })
}

/// The text with `|-` or `>-` in a line that ends in the head of a block scalar.
fn with_stripping_head(lines: &[&str], at: usize) -> Option<String> {
    let head = lines.get(at)?;
    let mark = head.split(" #").next()?.trim_end().rfind(['|', '>'])?;
    let (before, after) = head.split_at_checked(mark + 1)?;
    let after = after.split(" #").next()?.trim_end();
    if !after.chars().all(|c| matches!(c, '+' | '-' | '1'..='9')) {
        return None;
    }
    let digits: String = after.chars().filter(char::is_ascii_digit).collect();
    let head = format!("{before}{digits}-");
    let changed: Vec<&str> =
        lines.iter().enumerate().map(|(number, text)| if number == at { head.as_str() } else { *text }).collect();
    Some(changed.join("\n"))
}

/// The error with the text and the line that Helm's reader gives, as far as both find the same.
fn refusal(text: &str, error: &ParseError) -> ReadError {
    let message = match error.message.as_str() {
        message if message.starts_with("while parsing a flow sequence") => "did not find expected ',' or ']'",
        message if message.starts_with("unexpected character") => "found character that cannot start any token",
        message if message.starts_with("simple key expect") => "could not find expected ':'",
        message => match message.strip_prefix("while ").and_then(|rest| rest.split_once(", ")) {
            Some((_, message)) => message,
            None => message,
        },
    };
    // go-yaml counts from 0 where its parser finds the error, and from 1 where its scanner does. A stream ends in a line of its own.
    let parser = error.message.starts_with("while parsing a ")
        && !error.message.contains("scalar")
        && !error.message.contains("tag");
    let last = text.lines().enumerate().last();
    let at_end = last.is_some_and(|(at, line)| {
        usize::try_from(error.line) == Ok(at + 1)
            && usize::try_from(error.column).is_ok_and(|column| column > line.chars().count())
    });
    let line = if parser && !at_end { error.line.saturating_sub(1).max(1) } else { error.line };
    ReadError { line, message: message.to_owned() }
}

fn parse(text: &str) -> Result<Vec<Document>, ReadError> {
    let documents = chandler_yaml::parse(text.as_bytes(), &limits()).map_err(|error| refusal(text, &error))?;
    // Here Helm's reader lets the merged key win, which the rule for merge keys does not allow.
    let merges = |document: &Document| {
        document
            .warnings
            .iter()
            .find(|warning| warning.message.starts_with("<<"))
            .map(|warning| (warning.line, warning.message.clone()))
    };
    match documents.iter().find_map(merges) {
        Some((line, message)) => Err(ReadError { line, message }),
        None => Ok(documents),
    }
}

/// A node as a value.
pub(crate) fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Nil,
        Kind::Bool(value) => Value::Bool(*value),
        #[expect(clippy::cast_precision_loss, reason = "encoding/json makes float64 of every number")]
        Kind::Int(value) => Value::Float(*value as f64),
        #[expect(clippy::cast_precision_loss, reason = "encoding/json makes float64 of every number")]
        Kind::UInt(value) => Value::Float(*value as f64),
        Kind::Float(value) => Value::Float(*value),
        Kind::String(text) => Value::from(&**text),
        Kind::Sequence(items) => Value::list(items.iter().map(value).collect()),
        Kind::Mapping(mapping) => {
            Value::Map(mapping.iter().map(|entry| (&*entry.key, value(&entry.value))).collect::<Map>())
        }
    }
}
