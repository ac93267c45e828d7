//! Documents from a stream.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::{
    Entry, Kind, Mapping, Node, json, number,
    scalar::{self, Scalar},
};

/// What a stream may cost. The defaults hold any real bundle with room to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the stream. Default 32 MiB.
    pub bytes: usize,
    /// How deep values may lie in one another. Default 200.
    pub depth: usize,
    /// Values and keys, with aliases expanded. Default four million.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 32 << 20, depth: 200, nodes: 4_000_000 }
    }
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its value. Never null: empty documents are left out.
    pub root: Node,
    /// What the reader takes, but somebody should look at.
    pub warnings: Vec<Warning>,
}

/// A key that stands twice in one mapping with different values. The last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line of the later key, counted from 1.
    pub line: u32,
    /// Its column, counted from 1.
    pub column: u32,
    /// What is odd.
    pub message: String,
}

/// Why a stream cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// All documents of a stream that are not empty. A text that begins with `{` is read as JSON where it is JSON.
///
/// # Errors
/// The first place that cannot be read, or at which a limit is exceeded.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<Document>, ParseError> {
    if bytes.len() > limits.bytes {
        return Err(ParseError { line: 1, column: 1, message: format!("larger than {} bytes", limits.bytes) });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{')
        && let Some(documents) = json::parse(text, limits)
    {
        return Ok(documents);
    }
    Builder::new(limits).run(text)
}

fn not_utf8(bytes: &[u8], valid: usize) -> ParseError {
    let before = bytes.get(..valid).unwrap_or_default();
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default()).chars().count();
    ParseError { line: count(lines + 1), column: count(column + 1), message: "not UTF-8".to_owned() }
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A collection that is not complete yet.
enum Frame {
    Sequence { items: Vec<Node>, anchor: usize, line: u32, column: u32 },
    Mapping { building: Building, anchor: usize, line: u32, column: u32 },
}

/// A mapping that is not complete yet.
#[derive(Default)]
struct Building {
    entries: Vec<Entry>,
    /// Positions of keys, once there are too many to look through.
    index: Option<HashMap<Box<str>, usize>>,
    /// The key whose value comes next.
    key: Option<Key>,
    /// What `<<` brings in.
    merged: Vec<Mapping>,
}

enum Key {
    Text { key: Box<str>, line: u32, column: u32 },
    Merge,
}

/// From how many entries on keys are looked up by hash.
const MANY: usize = 16;

struct Builder<'a> {
    limits: &'a Limits,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Node, usize)>,
    /// Values and keys of the whole stream.
    nodes: usize,
    root: Option<Node>,
    warnings: Vec<Warning>,
    documents: Vec<Document>,
}

impl<'a> Builder<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            stack: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            root: None,
            warnings: Vec::new(),
            documents: Vec::new(),
        }
    }

    fn run(mut self, text: &str) -> Result<Vec<Document>, ParseError> {
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let (line, column) = position(error.marker());
                ParseError { line, column, message: error.info().to_owned() }
            })?;
            let (line, column) = position(&span.start);
            self.take(event, line, column).map_err(|message| ParseError { line, column, message })?;
        }
        Ok(self.documents)
    }

    fn take(&mut self, event: Event<'_>, line: u32, column: u32) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = resolve(&text, style, tag)?;
                self.count(1)?;
                match scalar {
                    Scalar::Merge if self.wants_key() => {
                        self.key(Key::Merge);
                        Ok(())
                    }
                    Scalar::Merge => self.value(Node { kind: Kind::String("<<".into()), line, column }, anchor),
                    Scalar::Kind(kind) => self.value(Node { kind, line, column }, anchor),
                }
            }
            Event::Alias(anchor) => {
                let (node, size) = self.anchors.get(&anchor).ok_or("the alias stands inside its own anchor")?;
                let (kind, size) = (node.kind.clone(), *size);
                self.count(size)?;
                self.value(Node { kind, line, column }, 0)
            }
            Event::SequenceStart(anchor, _) => self.open(Frame::Sequence { items: Vec::new(), anchor, line, column }),
            Event::MappingStart(anchor, _) => {
                self.open(Frame::Mapping { building: Building::default(), anchor, line, column })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentEnd => {
                let warnings = std::mem::take(&mut self.warnings);
                self.anchors.clear();
                if let Some(root) = self.root.take().filter(|root| !root.is_null()) {
                    self.documents.push(Document { root, warnings });
                }
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > self.limits.nodes {
            return Err(format!("more than {} values, with aliases expanded", self.limits.nodes));
        }
        Ok(())
    }

    fn open(&mut self, frame: Frame) -> Result<(), String> {
        if self.wants_key() {
            return Err("a key must be a scalar".to_owned());
        }
        if self.stack.len() >= self.limits.depth {
            return Err(format!("values lie more than {} deep in one another", self.limits.depth));
        }
        self.count(1)?;
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let (kind, anchor, line, column) = match frame {
            Frame::Sequence { items, anchor, line, column } => (Kind::Sequence(items), anchor, line, column),
            Frame::Mapping { building, anchor, line, column } => {
                (Kind::Mapping(building.finish()), anchor, line, column)
            }
        };
        self.value(Node { kind, line, column }, anchor)
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame::Mapping { building, .. }) if building.key.is_none())
    }

    fn key(&mut self, key: Key) {
        if let Some(Frame::Mapping { building, .. }) = self.stack.last_mut() {
            building.key = Some(key);
        }
    }

    /// Puts a complete value where it belongs.
    fn value(&mut self, node: Node, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size(&node)));
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::Sequence { items, .. }) => items.push(node),
            Some(Frame::Mapping { building, .. }) => match building.key.take() {
                None => building.key = Some(Key::Text { key: key_text(&node)?, line: node.line, column: node.column }),
                Some(Key::Merge) => building.merge(node)?,
                Some(Key::Text { key, line, column }) => {
                    if let Some(warning) = building.insert(Entry { key, line, column, value: node }) {
                        self.warnings.push(warning);
                    }
                }
            },
        }
        Ok(())
    }
}

impl Building {
    /// Adds an entry; the last of two equal keys counts.
    fn insert(&mut self, entry: Entry) -> Option<Warning> {
        let found = match &mut self.index {
            Some(index) => match index.get(&entry.key) {
                Some(at) => Some(*at),
                None => {
                    index.insert(entry.key.clone(), self.entries.len());
                    None
                }
            },
            None => self.entries.iter().position(|other| other.key == entry.key),
        };
        let Some(other) = found.and_then(|at| self.entries.get_mut(at)) else {
            self.entries.push(entry);
            if self.index.is_none() && self.entries.len() > MANY {
                let keys = self.entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at));
                self.index = Some(keys.collect());
            }
            return None;
        };
        let differs = !same(&other.value, &entry.value);
        let warning = differs.then(|| Warning {
            line: entry.line,
            column: entry.column,
            message: format!(
                "key {:?} stands here again with another value; the one in line {} is ignored",
                entry.key, other.line
            ),
        });
        *other = entry;
        warning
    }

    fn merge(&mut self, value: Node) -> Result<(), String> {
        let wrong = || "<< wants a mapping or a sequence of mappings".to_owned();
        match value.kind {
            Kind::Mapping(mapping) => self.merged.push(mapping),
            Kind::Sequence(items) => {
                for item in items {
                    let Kind::Mapping(mapping) = item.kind else { return Err(wrong()) };
                    self.merged.push(mapping);
                }
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// What was merged comes in where no key of the mapping itself, and no earlier merge, has it.
    fn finish(mut self) -> Mapping {
        if !self.merged.is_empty() {
            let mut known: HashSet<Box<str>> = self.entries.iter().map(|entry| entry.key.clone()).collect();
            for entry in self.merged.into_iter().flat_map(|mapping| mapping.entries) {
                if known.insert(entry.key.clone()) {
                    self.entries.push(entry);
                }
            }
        }
        Mapping { entries: self.entries }
    }
}

fn resolve(text: &str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> Result<Scalar, String> {
    match tag {
        // `!!merge` is what the tag of `<<` is when it is written out.
        Some(tag) if text == "<<" && tag.suffix.ends_with("merge") => Ok(Scalar::Merge),
        Some(tag) => scalar::tagged(text, &tag.handle, &tag.suffix).map(Scalar::Kind),
        None if style == ScalarStyle::Plain => scalar::plain(text),
        None => Ok(Scalar::Kind(Kind::String(text.into()))),
    }
}

/// A key as text, as `sigs.k8s.io/yaml` writes it.
fn key_text(node: &Node) -> Result<Box<str>, String> {
    Ok(match &node.kind {
        Kind::String(text) => text.clone(),
        Kind::Bool(value) => value.to_string().into(),
        Kind::Int(value) => value.to_string().into(),
        Kind::UInt(value) => value.to_string().into(),
        Kind::Float(value) => number::key(*value).into(),
        Kind::Null => return Err("a key must not be null".to_owned()),
        Kind::Sequence(_) | Kind::Mapping(_) => return Err("a key must be a scalar".to_owned()),
    })
}

/// How many values and keys a node is.
fn size(node: &Node) -> usize {
    match &node.kind {
        Kind::Sequence(items) => items.iter().map(size).sum::<usize>() + 1,
        Kind::Mapping(mapping) => mapping.iter().map(|entry| size(&entry.value) + 1).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Whether two nodes are equal but for their positions.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Sequence(one), Kind::Sequence(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Kind::Mapping(one), Kind::Mapping(other)) => {
            one.len() == other.len()
                && one.iter().all(|entry| other.get(&entry.key).is_some_and(|value| same(&entry.value, value)))
        }
        (one, other) => one == other,
    }
}

fn position(marker: &Marker) -> (u32, u32) {
    (count(marker.line()), count(marker.col() + 1))
}

#[cfg(test)]
mod tests;
