//! Walks a document along its type and writes its normalized form.

use chandler_yaml::{Entry, Kind, Node, pointer_segment};
use serde_json::Value;

use super::{Field, Keep, Record, Type, number::write_float, quantity, tables::crd::JSON_SCHEMA_PROPS, time::is_time};

/// The result of a conversion.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// The document as JSON.
    pub(crate) json: Vec<u8>,
    /// Fields that the type does not know. At most [`MOST_DROPPED`] are kept.
    pub(crate) dropped: Vec<Dropped>,
    /// Fields that were matched although the case of their names is wrong. At most [`MOST_DROPPED`] are kept.
    pub(crate) misspelt: Vec<Dropped>,
}

/// How field names are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Exactly.
    Exact,
    /// In any case, if unambiguous.
    AnyCase,
}

/// A field that was dropped, or matched with another name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Its pointer.
    pub(crate) pointer: String,
    /// The line of its name.
    pub(crate) line: u32,
    /// The column of its name.
    pub(crate) column: u32,
    /// A field of the type whose name differs only in case.
    pub(crate) suggested: Option<&'static str>,
}

/// The maximum number of reported fields: a CRD of an old version loses thousands.
const MOST_DROPPED: usize = 20;

/// The maximum number of reported type errors: a list that should be a map has an error in each of its items.
const MOST_MISMATCHES: usize = 20;

/// A value of a wrong type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reference}: {} at {pointer:?}", self.mismatch())]
pub(crate) struct Mismatch {
    /// Its pointer.
    pub(crate) pointer: String,
    /// Its line.
    pub(crate) line: u32,
    /// Its column.
    pub(crate) column: u32,
    /// Its actual type.
    pub(crate) got: &'static str,
    /// The expected type.
    pub(crate) want: &'static str,
    /// The message of OLM v1.
    pub(crate) reference: String,
}

impl Mismatch {
    /// `got string, want integer`.
    pub(crate) fn mismatch(&self) -> String {
        format!("got {}, want {}", self.got, self.want)
    }

    /// The fix: usually YAML parsed a value as another type than intended.
    pub(crate) fn help(&self) -> String {
        let remedy = match (self.want, self.got) {
            ("string", "boolean" | "integer" | "number") => ": put it into quotes",
            ("boolean" | "integer" | "number", "string") => ": write it without quotes",
            ("time", _) => ": write it as 2006-01-02T15:04:05Z, or leave it out",
            _ => "",
        };
        format!("{}{remedy}", self.mismatch())
    }
}

/// Converts a document to the JSON form of its type.
///
/// # Errors
/// The values of a wrong type, in document order; at most [`MOST_MISMATCHES`].
pub(crate) fn convert(node: &Node, record: &'static Record, spelling: Spelling) -> Result<Conversion, Vec<Mismatch>> {
    let mut writer = Writer {
        spelling,
        out: Vec::new(),
        path: Vec::new(),
        dropped: Vec::new(),
        misspelt: Vec::new(),
        mismatches: Vec::new(),
    };
    writer.record(node, record);
    if writer.mismatches.is_empty() {
        Ok(Conversion { json: writer.out, dropped: writer.dropped, misspelt: writer.misspelt })
    } else {
        Err(writer.mismatches)
    }
}

impl Conversion {
    /// The document as a value. The writer's output is always valid JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// The kind of output for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// A value.
    Full,
    /// The zero value, an empty list or an empty map, which `omitempty` omits.
    Empty,
    /// `null`, for a value without content.
    Nothing,
}

impl Written {
    fn unless(empty: bool) -> Self {
        if empty { Self::Empty } else { Self::Full }
    }
}

/// A value as seen by the types.
enum Shape<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    List(&'a [Node]),
    Map,
}

impl<'a> Shape<'a> {
    fn of(node: &'a Node) -> Self {
        match &node.kind {
            Kind::Null => Self::Null,
            Kind::Bool(value) => Self::Bool(*value),
            Kind::Int(value) => Self::Int(*value),
            #[expect(clippy::cast_precision_loss, reason = "beyond 64 bits with a sign, Go reads a double as well")]
            Kind::UInt(value) => Self::Float(*value as f64),
            Kind::Float(value) => Self::Float(*value),
            Kind::String(text) => Self::Text(text),
            Kind::Sequence(items) => Self::List(items),
            Kind::Mapping(_) => Self::Map,
        }
    }
}

enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

struct Writer<'a> {
    spelling: Spelling,
    out: Vec<u8>,
    path: Vec<Segment<'a>>,
    dropped: Vec<Dropped>,
    misspelt: Vec<Dropped>,
    mismatches: Vec<Mismatch>,
}

impl<'a> Writer<'a> {
    fn value(&mut self, node: &'a Node, kind: &Type) -> Written {
        let shape = Shape::of(node);
        if matches!(shape, Shape::Null) {
            return self.zero(kind);
        }
        match (kind, shape) {
            (Type::Any, _) => {
                node.write_json(&mut self.out);
                Written::Full
            }
            (Type::String | Type::Bytes, Shape::Text(text)) => {
                self.text(text);
                Written::unless(text.is_empty())
            }
            (Type::Bool, Shape::Bool(value)) => {
                self.raw(if value { "true" } else { "false" });
                Written::unless(!value)
            }
            (Type::Int32 | Type::Int64, Shape::Int(value)) => self.integer(value, kind, node),
            #[expect(clippy::cast_possible_truncation, reason = "the fraction is zero and the cast saturates")]
            (Type::Int32 | Type::Int64, Shape::Float(value)) if value.fract() == 0.0 => {
                self.integer(value as i64, kind, node)
            }
            (Type::Float64, Shape::Float(value)) => self.float(value),
            #[expect(clippy::cast_precision_loss, reason = "a double is what the type holds")]
            (Type::Float64, Shape::Int(value)) => self.float(value as f64),
            (Type::Quantity, Shape::Text(_) | Shape::Int(_) | Shape::Float(_)) => self.quantity(node),
            (Type::Time, Shape::Text(text)) if !is_time(text) => {
                let reference = format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse it");
                self.mismatch_with(node, "time", reference)
            }
            (Type::Time | Type::IntOrString, Shape::Text(text)) => {
                self.text(text);
                Written::Full
            }
            (Type::IntOrString, Shape::Int(value)) => self.integer(value, &Type::Int32, node),
            (Type::SchemaOrBool, Shape::Bool(value)) => {
                self.raw(if value { "true" } else { "false" });
                Written::Full
            }
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrStrings, Shape::Map) => {
                self.record(node, &JSON_SCHEMA_PROPS);
                Written::Full
            }
            (
                Type::SchemaOrList | Type::SchemaOrStrings,
                Shape::List([]) | Shape::Bool(_) | Shape::Int(_) | Shape::Float(_) | Shape::Text(_),
            ) => {
                self.raw("null");
                Written::Nothing
            }
            (Type::SchemaOrList, Shape::List(items)) => self.list(items, &Type::Record(&JSON_SCHEMA_PROPS)),
            (Type::SchemaOrStrings, Shape::List(items)) => self.list(items, &Type::String),
            (Type::List(item), Shape::List(items)) => self.list(items, item),
            (Type::Map(value), Shape::Map) => self.map(node, value),
            (Type::Record(record), Shape::Map) => {
                self.record(node, record);
                Written::Full
            }
            _ => self.mismatch(node, kind),
        }
    }

    fn record(&mut self, node: &'a Node, record: &'static Record) {
        let Some(entries) = node.as_mapping() else {
            self.mismatch_with(node, "object", format!("cannot restore struct from: {}", go_kind(node)));
            return;
        };
        self.raw("{");
        let start = self.out.len();
        let mut misspelt: Vec<&str> = Vec::new();
        for entry in entries {
            let Some(field) =
                record.field(&entry.key).or_else(|| self.match_ignoring_case(node, entry, record, &mut misspelt))
            else {
                self.drop_field(entry, record);
                continue;
            };
            let value = &entry.value;
            if value.is_null() {
                continue;
            }
            let before = self.out.len();
            self.key(field.name, start);
            self.path.push(Segment::Key(field.name));
            let written = self.value(value, &field.kind);
            self.path.pop();
            if written == Written::Nothing || field.keep == Keep::NonEmpty && written == Written::Empty {
                self.out.truncate(before);
            }
        }
        for field in record.fields {
            let always = matches!(field.keep, Keep::Always | Keep::Struct);
            if always && node.get(field.name).is_none_or(Node::is_null) && !misspelt.contains(&field.name) {
                self.key(field.name, start);
                self.zero(&field.kind);
            }
        }
        self.raw("}");
    }

    fn list(&mut self, items: &'a [Node], kind: &Type) -> Written {
        self.raw("[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            self.path.push(Segment::Index(index));
            self.value(item, kind);
            self.path.pop();
        }
        self.raw("]");
        Written::unless(items.is_empty())
    }

    fn map(&mut self, node: &'a Node, kind: &Type) -> Written {
        self.raw("{");
        let start = self.out.len();
        for entry in node.as_mapping().into_iter().flatten() {
            self.key(&entry.key, start);
            self.path.push(Segment::Key(&entry.key));
            self.value(&entry.value, kind);
            self.path.pop();
        }
        let empty = self.out.len() == start;
        self.raw("}");
        Written::unless(empty)
    }

    /// The zero value of a type.
    fn zero(&mut self, kind: &Type) -> Written {
        match kind {
            Type::String => self.raw("\"\""),
            Type::Bool => self.raw("false"),
            Type::Int32 | Type::Int64 | Type::Float64 | Type::IntOrString => self.raw("0"),
            Type::Quantity => self.raw("\"0\""),
            Type::Record(record) => {
                self.raw("{");
                let start = self.out.len();
                for field in record.fields {
                    if matches!(field.keep, Keep::Always | Keep::Struct) {
                        self.key(field.name, start);
                        self.zero(&field.kind);
                    }
                }
                self.raw("}");
                return Written::Full;
            }
            Type::Time
            | Type::Bytes
            | Type::Any
            | Type::SchemaOrBool
            | Type::SchemaOrList
            | Type::SchemaOrStrings
            | Type::List(_)
            | Type::Map(_) => {
                self.raw("null");
                return Written::Nothing;
            }
        }
        Written::Empty
    }

    fn integer(&mut self, value: i64, kind: &Type, node: &Node) -> Written {
        if matches!(kind, Type::Int32) && i32::try_from(value).is_err() {
            return self.mismatch_with(node, "integer of 32 bits", "value out of range: int32".to_owned());
        }
        self.raw(&value.to_string());
        Written::unless(value == 0)
    }

    fn float(&mut self, value: f64) -> Written {
        let mut text = String::new();
        write_float(value, &mut text);
        self.raw(&text);
        Written::unless(value == 0.0)
    }

    fn quantity(&mut self, node: &Node) -> Written {
        let number = |value: f64| {
            let mut text = String::new();
            write_float(value, &mut text);
            text
        };
        let text = match Shape::of(node) {
            Shape::Text(text) => text.to_owned(),
            Shape::Int(value) => value.to_string(),
            Shape::Float(value) => number(value),
            _ => return self.mismatch(node, &Type::Quantity),
        };
        match quantity::canonical(&text) {
            Ok(canonical) => {
                self.text(&canonical);
                Written::Full
            }
            Err(error) => self.mismatch_with(node, "quantity", error.to_string()),
        }
    }

    /// The field that an entry means, if only the case of its name is wrong and no other entry matches it.
    fn match_ignoring_case(
        &mut self,
        node: &Node,
        entry: &Entry,
        record: &'static Record,
        misspelt: &mut Vec<&'static str>,
    ) -> Option<&'static Field> {
        let suggested = record.fields.iter().find(|field| field.name.eq_ignore_ascii_case(&entry.key))?;
        let taken = entry.value.is_null() || node.get(suggested.name).is_some() || misspelt.contains(&suggested.name);
        if self.spelling == Spelling::Exact || taken {
            return None;
        }
        misspelt.push(suggested.name);
        if self.misspelt.len() < MOST_DROPPED {
            let finding = self.dropped(entry, Some(suggested.name));
            self.misspelt.push(finding);
        }
        Some(suggested)
    }

    fn drop_field(&mut self, entry: &Entry, record: &Record) {
        if self.dropped.len() < MOST_DROPPED {
            let suggested = record.fields.iter().find(|field| field.name.eq_ignore_ascii_case(&entry.key));
            let finding = self.dropped(entry, suggested.map(|field| field.name));
            self.dropped.push(finding);
        }
    }

    fn dropped(&self, entry: &Entry, suggested: Option<&'static str>) -> Dropped {
        let pointer = format!("{}/{}", self.pointer(), pointer_segment(&entry.key));
        Dropped { pointer, line: entry.line, column: entry.column, suggested }
    }

    fn key(&mut self, key: &str, start: usize) {
        if self.out.len() > start {
            self.raw(",");
        }
        self.text(key);
        self.raw(":");
    }

    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &str) {
        let written = serde_json::to_writer(&mut self.out, text);
        debug_assert!(written.is_ok(), "writing a string to memory does not fail");
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                Segment::Key(key) => pointer.push_str(&pointer_segment(key)),
                Segment::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    fn mismatch(&mut self, node: &Node, kind: &Type) -> Written {
        let got = go_kind(node);
        let scalar = |name: &str| match Shape::of(node) {
            Shape::Int(_) | Shape::Float(_) => format!("cannot convert {got} to {name}"),
            _ => format!("unrecognized type: {name}"),
        };
        let (want, reference) = match kind {
            Type::String => ("string", scalar("string")),
            Type::Bool => ("boolean", "unrecognized type: bool".to_owned()),
            Type::Int32 => ("integer", scalar("int32")),
            Type::Int64 => ("integer", scalar("int64")),
            Type::Float64 => ("number", scalar("float64")),
            Type::Bytes | Type::List(_) => ("array", format!("cannot restore slice from {got}")),
            Type::Map(_) => ("object", format!("cannot restore map from {got}")),
            Type::Record(_) => ("object", format!("cannot restore struct from: {got}")),
            Type::Quantity => ("quantity", quantity::QuantityError.to_string()),
            Type::IntOrString => ("integer or string", "cannot unmarshal into int32".to_owned()),
            Type::Time => ("time", "cannot unmarshal into string".to_owned()),
            Type::SchemaOrBool => ("boolean or object", "boolean or JSON schema expected".to_owned()),
            Type::SchemaOrList | Type::SchemaOrStrings | Type::Any => ("object", "JSON schema expected".to_owned()),
        };
        self.mismatch_with(node, want, reference)
    }

    /// Keeps the finding; `null` replaces the value, so that the rest is checked, too.
    fn mismatch_with(&mut self, node: &Node, want: &'static str, reference: String) -> Written {
        if self.mismatches.len() < MOST_MISMATCHES {
            let (pointer, got) = (self.pointer(), node.type_name());
            self.mismatches.push(Mismatch { pointer, line: node.line, column: node.column, got, want, reference });
        }
        self.raw("null");
        Written::Full
    }
}

/// Go's name for the kind of a decoded value.
fn go_kind(node: &Node) -> &'static str {
    match Shape::of(node) {
        Shape::Null => "nil",
        Shape::Bool(_) => "bool",
        Shape::Int(_) => "int64",
        Shape::Float(_) => "float64",
        Shape::Text(_) => "string",
        Shape::List(_) => "slice",
        Shape::Map => "map",
    }
}

#[cfg(test)]
mod tests;
