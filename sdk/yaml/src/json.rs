//! JSON, for texts that begin like it. YAML cannot parse all of JSON, for example surrogate pairs.

use crate::{
    Document, Kind, Limits, Mapping, Node, Warning,
    mapping::{Building, Key},
    number,
    text::count,
};

/// More warnings than this are not kept for one document.
const MOST_WARNINGS: usize = 100;

/// The values of a stream of JSON, or `None` if it is not JSON (it may be YAML in flow style) or exceeds a limit.
pub(crate) fn load(text: &str, limits: &Limits) -> Option<Vec<Document>> {
    let mut reader = Reader { text, at: 0, line: 1, column: 1, counted: 0, nodes: 0, warnings: Vec::new(), limits };
    let mut documents = Vec::new();
    loop {
        reader.skip_space();
        if reader.peek().is_none() {
            return Some(documents);
        }
        let root = reader.value(0)?;
        let mut warnings = std::mem::take(&mut reader.warnings);
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        if !root.is_null() {
            documents.push(Document { root, warnings });
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// The column of the byte at `counted`; counting continues from there, so that a long line is scanned once.
    column: usize,
    counted: usize,
    nodes: usize,
    warnings: Vec<Warning>,
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
                (self.column, self.counted) = (1, self.at);
            }
        }
    }

    fn eat(&mut self, text: &str) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    fn position(&mut self) -> (u32, u32) {
        let passed = self.text.get(self.counted..self.at).unwrap_or_default();
        self.column += passed.chars().count();
        self.counted = self.at;
        (count(self.line), count(self.column))
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        self.skip_space();
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return None;
        }
        let (line, column) = self.position();
        let kind = match self.peek()? {
            b'{' | b'[' if depth >= self.limits.depth => return None,
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
        let mut building = Building::default();
        self.skip_space();
        if self.eat("}").is_some() {
            return Some(Kind::Mapping(Mapping::default()));
        }
        loop {
            self.skip_space();
            let (line, column) = self.position();
            let key = Key::Text { key: self.string()?, line, column };
            self.nodes += 1;
            self.skip_space();
            self.eat(":")?;
            building.value(key, self.value(depth + 1)?).ok()?;
            self.skip_space();
            if self.eat("}").is_some() {
                let mapping = building.finish(&mut self.warnings);
                self.warnings.truncate(MOST_WARNINGS);
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

    /// Text between quotes; serde_json decodes the escapes.
    fn string(&mut self) -> Option<Box<str>> {
        let inner = self.rest().strip_prefix('"')?;
        let mut bytes = inner.bytes().enumerate();
        let mut escaped = false;
        let end = loop {
            match bytes.next()? {
                (at, b'"') => break at,
                (_, b'\\') => {
                    escaped = true;
                    bytes.next()?;
                }
                (_, 0..0x20) => return None,
                _ => {}
            }
        };
        let quoted = self.rest().get(..end + 2)?;
        self.at += quoted.len();
        if escaped {
            return serde_json::from_str::<String>(quoted).ok().map(Into::into);
        }
        inner.get(..end).map(Into::into)
    }

    fn number(&mut self) -> Option<Kind> {
        let rest = self.rest();
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = rest.get(..end)?;
        // The grammar is JSON's; the value follows YAML, which differs only for numbers that are too large:
        // YAML treats them as text.
        serde_json::from_str::<&serde_json::value::RawValue>(text).ok()?;
        self.at += end;
        number::resolve(text).map(number::value)
    }
}
