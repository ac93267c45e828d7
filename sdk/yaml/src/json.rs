//! JSON, for texts that begin like it. YAML cannot read all of JSON: pairs of surrogates, for one.

use crate::{
    Document, Entry, Kind, Limits, Mapping, Node,
    number::{self, Number},
    parse::count,
};

/// The values of a stream of JSON; none where it is not JSON (it may be YAML in flow style) or exceeds a limit.
pub(crate) fn parse(text: &str, limits: &Limits) -> Option<Vec<Document>> {
    let mut reader = Reader { text, at: 0, line: 1, line_start: 0, nodes: 0, limits };
    let mut documents = Vec::new();
    loop {
        reader.skip_space();
        if reader.peek().is_none() {
            return Some(documents);
        }
        let root = reader.value(0)?;
        documents.push(Document { root, warnings: Vec::new() });
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    line_start: usize,
    nodes: usize,
    limits: &'a Limits,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.at += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.at;
            }
        }
    }

    fn eat(&mut self, text: &str) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    fn position(&self) -> (u32, u32) {
        let before = self.text.get(self.line_start..self.at).unwrap_or_default();
        (count(self.line), count(before.chars().count() + 1))
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        self.skip_space();
        self.nodes += 1;
        if depth > self.limits.depth || self.nodes > self.limits.nodes {
            return None;
        }
        let (line, column) = self.position();
        let kind = match self.peek()? {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => Kind::String(self.string()?),
            b't' => self.eat("true").map(|()| Kind::Bool(true))?,
            b'f' => self.eat("false").map(|()| Kind::Bool(false))?,
            b'n' => self.eat("null").map(|()| Kind::Null)?,
            _ => self.number()?,
        };
        Some(Node { kind, line, column })
    }

    fn object(&mut self, depth: usize) -> Option<Kind> {
        self.eat("{")?;
        let mut mapping = Mapping::default();
        self.skip_space();
        if self.eat("}").is_some() {
            return Some(Kind::Mapping(mapping));
        }
        loop {
            self.skip_space();
            let (line, column) = self.position();
            let key = self.string()?;
            self.skip_space();
            self.eat(":")?;
            let value = self.value(depth + 1)?;
            mapping.entries.push(Entry { key, line, column, value });
            self.skip_space();
            if self.eat("}").is_some() {
                last_wins(&mut mapping);
                return Some(Kind::Mapping(mapping));
            }
            self.eat(",")?;
        }
    }

    fn array(&mut self, depth: usize) -> Option<Kind> {
        self.eat("[")?;
        let mut items = Vec::new();
        self.skip_space();
        if self.eat("]").is_some() {
            return Some(Kind::Sequence(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.eat("]").is_some() {
                return Some(Kind::Sequence(items));
            }
            self.eat(",")?;
        }
    }

    /// The raw text up to the closing quote; serde_json knows the escapes.
    fn string(&mut self) -> Option<Box<str>> {
        let raw = self.rest();
        let mut bytes = raw.bytes().enumerate().skip(1);
        let end = loop {
            match bytes.next()? {
                (at, b'"') => break at + 1,
                (_, b'\\') => {
                    bytes.next()?;
                }
                _ => {}
            }
        };
        if !raw.starts_with('"') {
            return None;
        }
        self.at += end;
        serde_json::from_str::<String>(raw.get(..end)?).ok().map(Into::into)
    }

    fn number(&mut self) -> Option<Kind> {
        let rest = self.rest();
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = rest.get(..end)?;
        // The grammar is JSON's; what it means is what YAML makes of it, which is the same.
        serde_json::from_str::<&serde_json::value::RawValue>(text).ok()?;
        self.at += end;
        match number::resolve(text)? {
            Number::Kind(kind) => Some(kind),
            Number::NotFinite => None,
        }
    }
}

/// Keeps the last of equal keys, at the place of the first.
fn last_wins(mapping: &mut Mapping) {
    let mut places = std::collections::HashMap::new();
    let mut kept: Vec<Entry> = Vec::with_capacity(mapping.entries.len());
    for entry in mapping.entries.drain(..) {
        match places.get(&entry.key).copied().and_then(|at: usize| kept.get_mut(at)) {
            Some(other) => *other = entry,
            None => {
                places.insert(entry.key.clone(), kept.len());
                kept.push(entry);
            }
        }
    }
    mapping.entries = kept;
}
