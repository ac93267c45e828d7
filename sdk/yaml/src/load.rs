//! From the events of the YAML scanner to documents: anchors, keys, and limits.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};

use crate::{
    Document, Kind, Limits, Node, ParseError, Warning, block,
    mapping::{Building, Key},
    number,
    repair::{self, Added, Scalar as Quoted, Stop, lines, repair},
    scalar::{self, Scalar},
    text::count,
};

/// More warnings than this are not kept for one document.
const MOST_WARNINGS: usize = 100;

/// A repaired text is parsed again up to the next error; in all this may come to this many times the limit on bytes.
/// Descriptions that an old generator folded have some two hundred errors in half a megabyte.
const READINGS: usize = 4;

/// Parses a stream of YAML.
pub(crate) fn load(text: &str, limits: &Limits) -> Result<Vec<Document>, ParseError> {
    if let Some(documents) = by_lines(text, limits) {
        return Ok(documents);
    }
    by_scanner(text, limits)
}

/// Reads a stream by its lines. Nothing if it needs the scanner, or if there is an error to report.
pub(crate) fn by_lines(text: &str, limits: &Limits) -> Option<Vec<Document>> {
    let mut loader = Loader::new(limits);
    block::read(text, &mut loader)?;
    Some(loader.documents)
}

/// Reads a stream with the scanner.
pub(crate) fn by_scanner(text: &str, limits: &Limits) -> Result<Vec<Document>, ParseError> {
    read(text, limits).map_err(|error| inside(text, error))
}

fn read(text: &str, limits: &Limits) -> Result<Vec<Document>, ParseError> {
    let mut text = Cow::Borrowed(text);
    let mut added = Added::default();
    let end = end(&text);
    let mut budget = limits.bytes.saturating_mul(READINGS);
    loop {
        let mut cut = Vec::new();
        let attempted = attempt(&text, limits, &added, end, &mut cut)?;
        if let Some(first) = cut.first() {
            let (line, column) = position(&first.start, &added, end);
            let message = "put the text that ends in a colon into quotes".to_owned();
            let refusal = ParseError { line, column, message };
            let read = attempted.as_ref().map_or_else(|stop| stop.error.marker().index(), |_| text.len());
            budget = budget.checked_sub(read).ok_or(refusal)?;
            text = Cow::Owned(repair::quote(&text, &cut, &mut added));
            continue;
        }
        let stop = match attempted {
            Ok(documents) => return Ok(documents),
            Err(stop) => stop,
        };
        let at = stop.error.marker();
        let (line, column) = position(at, &added, end);
        let refusal = ParseError { line, column, message: stop.error.info().to_owned() };
        budget = budget.checked_sub(at.index()).ok_or_else(|| refusal.clone())?;
        text = Cow::Owned(repair(&text, &stop, &mut added, budget).ok_or(refusal)?);
    }
}

/// Clamps the column of the error to the end of its line, so that there is text to show.
fn inside(text: &str, error: ParseError) -> ParseError {
    let line = lines(text).nth(error.line.saturating_sub(1) as usize);
    let end = line.map_or(1, |(_, line)| count(line.chars().count() + 1));
    ParseError { column: error.column.clamp(1, end), ..error }
}

/// The position behind the last character.
fn end(text: &str) -> (u32, u32) {
    let last = lines(text).enumerate().last();
    last.map_or((1, 1), |(number, (_, line))| (count(number + 1), count(line.chars().count() + 1)))
}

/// Parses a stream without repairs; the inner error is where the scanner stops. `cut` gets the scalars that the scanner ends before a
/// colon that belongs to them.
fn attempt(
    text: &str,
    limits: &Limits,
    added: &Added,
    end: (u32, u32),
    cut: &mut Vec<Quoted>,
) -> Result<Result<Vec<Document>, Stop>, ParseError> {
    let mut loader = Loader::new(limits);
    let mut parser = Parser::new_from_str(text);
    let mut colons = repair::Colons::of(text);
    let mut read = Span::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => return Ok(Err(Stop { error, read })),
        };
        if let (Some(colons), Event::Scalar(_, ScalarStyle::Plain, anchor, tag)) = (&mut colons, &event) {
            cut.extend(colons.cut(&span, *anchor != 0 || tag.is_some()));
        }
        // A sequence without indentation starts behind its first dash, which is needed for repairs.
        if !matches!(event, Event::SequenceStart(..)) {
            read = span;
        }
        loader.take(event, position(&span.start, added, end))?;
    }
    Ok(Ok(loader.documents))
}

/// The position of a marker in the original text. For the scanner, the end of a text is in a line of its own.
fn position(marker: &Marker, added: &Added, end: (u32, u32)) -> (u32, u32) {
    let column = added.original_column(marker.line(), marker.col()) + 1;
    (count(marker.line()), count(column)).min(end)
}

/// An incomplete collection.
struct Frame {
    collection: Collection,
    anchor: usize,
    line: u32,
    column: u32,
}

enum Collection {
    Sequence(Vec<Node>),
    Mapping(Building),
}

/// The cost of a value to its readers.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Values.
    nodes: usize,
    /// Bytes of text.
    bytes: usize,
    /// The nesting depth of collections.
    depth: usize,
}

struct Loader<'a> {
    limits: &'a Limits,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Node, Cost)>,
    /// Values of the whole stream, and the text that aliases repeat.
    spent: Cost,
    root: Option<Node>,
    warnings: Vec<Warning>,
    documents: Vec<Document>,
}

impl<'t> block::Sink<'t> for Loader<'_> {
    fn event(&mut self, event: Event<'t>, line: u32, column: u32) -> Option<()> {
        self.take(event, (line, column)).ok()
    }
}

impl<'a> Loader<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            stack: Vec::new(),
            anchors: HashMap::new(),
            spent: Cost::default(),
            root: None,
            warnings: Vec::new(),
            documents: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, (line, column): (u32, u32)) -> Result<(), ParseError> {
        let at = |message: String| ParseError { line, column, message };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(1, 0).map_err(at)?;
                let kind = match resolve(&text, style, tag).map_err(at)? {
                    Scalar::Kind(kind) => kind,
                    Scalar::Merge => match self.stack.last_mut() {
                        Some(Frame { collection: Collection::Mapping(building), .. }) if building.key.is_none() => {
                            building.key = Some(Key::Merge { line, column });
                            return Ok(());
                        }
                        _ => Kind::String("<<".into()),
                    },
                };
                self.value(Node { kind, line, column }, anchor)
            }
            Event::Alias(anchor) => {
                let Some((node, cost)) = self.anchors.get(&anchor) else {
                    return Err(at("the alias is inside its own anchor".to_owned()));
                };
                let (kind, cost) = (node.kind.clone(), *cost);
                self.spend(cost.nodes, cost.bytes).map_err(at)?;
                if self.stack.len() + cost.depth > self.limits.depth {
                    return Err(at(self.too_deep()));
                }
                self.value(Node { kind, line, column }, 0)
            }
            Event::SequenceStart(anchor, _) => {
                self.open(Frame { collection: Collection::Sequence(Vec::new()), anchor, line, column })
            }
            Event::MappingStart(anchor, _) => {
                self.open(Frame { collection: Collection::Mapping(Building::default()), anchor, line, column })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentEnd => {
                self.end_document();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => Ok(()),
        }
    }

    fn spend(&mut self, nodes: usize, bytes: usize) -> Result<(), String> {
        self.spent.nodes = self.spent.nodes.saturating_add(nodes);
        self.spent.bytes = self.spent.bytes.saturating_add(bytes);
        if self.spent.nodes > self.limits.nodes {
            return Err(format!("more than {} values, with aliases expanded", self.limits.nodes));
        }
        if self.spent.bytes > self.limits.bytes {
            return Err(format!("aliases repeat more than {} bytes of text", self.limits.bytes));
        }
        Ok(())
    }

    fn too_deep(&self) -> String {
        format!("values are nested more than {} levels deep", self.limits.depth)
    }

    fn open(&mut self, frame: Frame) -> Result<(), ParseError> {
        let (line, column) = (frame.line, frame.column);
        let at = |message: String| ParseError { line, column, message };
        if let Some(Frame { collection: Collection::Mapping(building), .. }) = self.stack.last()
            && building.key.is_none()
        {
            return Err(at("a key must be a scalar".to_owned()));
        }
        if self.stack.len() >= self.limits.depth {
            return Err(at(self.too_deep()));
        }
        self.spend(1, 0).map_err(at)?;
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self) -> Result<(), ParseError> {
        let Some(Frame { collection, anchor, line, column }) = self.stack.pop() else { return Ok(()) };
        let kind = match collection {
            Collection::Sequence(items) => Kind::Sequence(items),
            Collection::Mapping(building) => Kind::Mapping(building.finish(&mut self.warnings)),
        };
        self.warnings.truncate(MOST_WARNINGS);
        self.value(Node { kind, line, column }, anchor)
    }

    /// Adds a complete value to its parent.
    fn value(&mut self, node: Node, anchor: usize) -> Result<(), ParseError> {
        if anchor != 0 {
            let cost = cost(&node);
            // The copy is kept until the end of the document, whether an alias uses it or not.
            let (line, column) = (node.line, node.column);
            self.spend(cost.nodes, cost.bytes).map_err(|message| ParseError { line, column, message })?;
            self.anchors.insert(anchor, (node.clone(), cost));
        }
        let as_value = |node: Node| Node { kind: number::value(node.kind), ..node };
        match self.stack.last_mut().map(|frame| &mut frame.collection) {
            None => self.root = Some(as_value(node)),
            Some(Collection::Sequence(items)) => items.push(as_value(node)),
            Some(Collection::Mapping(building)) => match building.key.take() {
                Some(key) => building.value(key, as_value(node))?,
                None => building.key = Some(key(node)?),
            },
        }
        Ok(())
    }

    fn end_document(&mut self) {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        self.anchors.clear();
        if let Some(root) = self.root.take().filter(|root| !root.is_null()) {
            self.documents.push(Document { root, warnings });
        }
    }
}

fn resolve(text: &str, style: ScalarStyle, tag: Option<Cow<'_, Tag>>) -> Result<Scalar, String> {
    match tag {
        // `!!merge` is the explicit tag of `<<`.
        Some(tag) if text == "<<" && tag.is_yaml_core_schema() && tag.suffix == "merge" => Ok(Scalar::Merge),
        Some(tag) => scalar::tagged(text, &tag.handle, &tag.suffix).map(Scalar::Kind),
        None if style == ScalarStyle::Plain => scalar::plain(text),
        None => Ok(Scalar::Kind(Kind::String(text.into()))),
    }
}

/// A scalar as a key: text, as `sigs.k8s.io/yaml` formats it. That refuses null, too.
fn key(node: Node) -> Result<Key, ParseError> {
    let Node { kind, line, column } = node;
    let refuse = |message: &str| Err(ParseError { line, column, message: message.to_owned() });
    let key = match kind {
        Kind::String(text) => text,
        Kind::Bool(value) => value.to_string().into(),
        Kind::Int(value) => value.to_string().into(),
        Kind::UInt(value) => value.to_string().into(),
        Kind::Float(value) => number::key(value).into(),
        Kind::Null => return refuse("a key must not be null"),
        Kind::Sequence(_) | Kind::Mapping(_) => return refuse("a key must be a scalar"),
    };
    Ok(Key::Text { key, line, column })
}

fn cost(node: &Node) -> Cost {
    let sum = |one: Cost, other: Cost| Cost {
        nodes: one.nodes + other.nodes,
        bytes: one.bytes + other.bytes,
        depth: one.depth.max(other.depth),
    };
    let around = |inner: Cost| Cost { nodes: inner.nodes + 1, bytes: inner.bytes, depth: inner.depth + 1 };
    match &node.kind {
        Kind::Sequence(items) => around(items.iter().map(cost).fold(Cost::default(), sum)),
        Kind::Mapping(mapping) => around(mapping.iter().fold(Cost::default(), |total, entry| {
            let key = Cost { nodes: 1, bytes: entry.key.len(), depth: 0 };
            sum(sum(total, key), cost(&entry.value))
        })),
        Kind::String(text) => Cost { nodes: 1, bytes: text.len(), depth: 0 },
        _ => Cost { nodes: 1, bytes: 0, depth: 0 },
    }
}
