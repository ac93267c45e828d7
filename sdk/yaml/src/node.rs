//! A value with its position.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub kind: Kind,
    /// Its line, counted from 1.
    pub line: u32,
    /// Its column, counted from 1 in Unicode scalar values.
    pub column: u32,
}

/// The kind of a node. Numbers without a fraction that fit are integers, as JSON has only one kind of number.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that only fits without a sign.
    UInt(u64),
    /// Any other finite number.
    Float(f64),
    /// Text.
    String(Box<str>),
    /// A sequence.
    Sequence(Vec<Node>),
    /// A mapping.
    Mapping(Mapping),
}

/// A mapping, in the order of the text, without duplicate keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key. Keys other than strings are formatted as in Go: `true`, `1`, `0.5`.
    pub key: Box<str>,
    /// The line of the key, counted from 1.
    pub line: u32,
    /// The column of the key, counted from 1.
    pub column: u32,
    /// The value.
    pub value: Node,
}

impl Mapping {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// The entries, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in the order of JSON output: by key.
    pub(crate) fn sorted(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        entries
    }
}

impl<'a> IntoIterator for &'a Mapping {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Node {
    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_mapping()?.get(key)
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Changes the positions of this node and of all nodes and keys below it: of a text that was generated to those in its source, for example.
    pub fn relocate(&mut self, origin: &impl Fn(u32, u32) -> (u32, u32)) {
        (self.line, self.column) = origin(self.line, self.column);
        match &mut self.kind {
            Kind::Sequence(items) => items.iter_mut().for_each(|item| item.relocate(origin)),
            Kind::Mapping(mapping) => {
                for entry in &mut mapping.entries {
                    (entry.line, entry.column) = origin(entry.line, entry.column);
                    entry.value.relocate(origin);
                }
            }
            _ => {}
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The integer, if this is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.kind {
            Kind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The items, if this is a sequence.
    pub fn as_sequence(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The mapping, if this is one.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.kind {
            Kind::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// The JSON name of this kind of value.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Int(_) | Kind::UInt(_) => "integer",
            Kind::Float(_) => "number",
            Kind::String(_) => "string",
            Kind::Sequence(_) => "array",
            Kind::Mapping(_) => "object",
        }
    }

    /// The JSON name of this kind of value with its article, for messages: `a string`, `an array`.
    pub fn article_and_type(&self) -> String {
        let name = self.type_name();
        let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// The value at a JSON pointer (RFC 6901).
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        let (found, whole) = self.follow(pointer);
        whole.then_some(found)
    }

    /// The deepest existing value on the path of a JSON pointer; for findings about something that is missing.
    pub fn nearest(&self, pointer: &str) -> &Self {
        self.follow(pointer).0
    }

    fn follow(&self, pointer: &str) -> (&Self, bool) {
        let Some(path) = pointer.strip_prefix('/') else {
            return (self, pointer.is_empty());
        };
        let mut node = self;
        for segment in path.split('/') {
            let child = match &node.kind {
                Kind::Mapping(mapping) => mapping.get(&segment.replace("~1", "/").replace("~0", "~")),
                Kind::Sequence(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            match child {
                Some(child) => node = child,
                None => return (node, false),
            }
        }
        (node, true)
    }

    /// The value without positions.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::from(*value),
            Kind::UInt(value) => Value::from(*value),
            Kind::Float(value) => Value::from(*value),
            Kind::String(text) => Value::from(&**text),
            Kind::Sequence(items) => items.iter().map(Self::to_json).collect(),
            Kind::Mapping(mapping) => {
                mapping.iter().map(|entry| (String::from(&*entry.key), entry.value.to_json())).collect()
            }
        }
    }

    /// Writes the value as JSON, keys sorted: the text of [`to_json`](Self::to_json) without building it.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Null => out.extend_from_slice(b"null"),
            Kind::Bool(true) => out.extend_from_slice(b"true"),
            Kind::Bool(false) => out.extend_from_slice(b"false"),
            Kind::String(text) => write_text(text, out),
            Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => {
                out.extend_from_slice(self.to_json().to_string().as_bytes());
            }
            Kind::Sequence(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_json(out);
                }
                out.push(b']');
            }
            Kind::Mapping(mapping) => {
                out.push(b'{');
                for (index, entry) in mapping.sorted().into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(&entry.key, out);
                    out.push(b':');
                    entry.value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool(value) => serializer.serialize_bool(*value),
            Kind::Int(value) => serializer.serialize_i64(*value),
            Kind::UInt(value) => serializer.serialize_u64(*value),
            Kind::Float(value) => serializer.serialize_f64(*value),
            Kind::String(text) => serializer.serialize_str(text),
            Kind::Sequence(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| sequence.serialize_element(item))?;
                sequence.end()
            }
            Kind::Mapping(mapping) => {
                let mut map = serializer.serialize_map(Some(mapping.len()))?;
                mapping.sorted().into_iter().try_for_each(|entry| map.serialize_entry(&entry.key, &entry.value))?;
                map.end()
            }
        }
    }
}

/// A key as a segment of a JSON pointer (RFC 6901), as [`Node::at`] reads it.
pub fn pointer_segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn every_value_and_key_is_relocated() {
        let mut root = parse(b"a: [1, {b: c}]\n", &Limits::default()).unwrap().remove(0).root;
        root.relocate(&|line, column| (line + 10, column + 100));
        let (list, entry) = (root.get("a").unwrap(), root.as_mapping().unwrap().iter().next().unwrap());
        let nested = list.as_sequence().unwrap()[1].as_mapping().unwrap().iter().next().unwrap();
        let places = [
            (root.line, root.column),
            (entry.line, entry.column),
            (list.line, list.column),
            (nested.line, nested.column),
            (nested.value.line, nested.value.column),
        ];
        assert_eq!(places, [(11, 101), (11, 101), (11, 104), (11, 109), (11, 112)]);
    }
}
