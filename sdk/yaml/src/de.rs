//! Deserialization with positions in errors.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor},
    forward_to_deserialize_any,
};

use crate::{Entry, Kind, Node};

/// A value of an unexpected type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// The JSON pointer (RFC 6901) to the value.
    pub pointer: String,
    /// The problem.
    pub message: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}: {}", self.line, self.column, self.pointer, self.message)
    }
}

impl std::error::Error for TypeError {}

impl de::Error for TypeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { line: 0, column: 0, pointer: String::new(), message: message.to_string() }
    }
}

impl TypeError {
    /// Keeps the innermost location that failed.
    fn at(mut self, node: &Node) -> Self {
        if self.line == 0 {
            (self.line, self.column) = (node.line, node.column);
        }
        self
    }

    fn below(mut self, segment: &str) -> Self {
        self.pointer = format!("/{}{}", segment.replace('~', "~0").replace('/', "~1"), self.pointer);
        self
    }
}

/// Deserializes a node.
///
/// # Errors
/// The first value of a wrong type.
pub fn from_node<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<T, TypeError> {
    T::deserialize(node).map_err(|error| error.at(node))
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = TypeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match &self.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => visitor.visit_i64(*value),
            Kind::UInt(value) => visitor.visit_u64(*value),
            Kind::Float(value) => visitor.visit_f64(*value),
            Kind::String(text) => visitor.visit_borrowed_str(text),
            Kind::Sequence(items) => visitor.visit_seq(Items { items: items.iter(), index: 0 }),
            Kind::Mapping(mapping) => visitor.visit_map(Entries { entries: mapping.iter(), value: None }),
        }
        .map_err(|error| error.at(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        let access = match &self.kind {
            Kind::String(text) => Variant { name: text, value: None },
            Kind::Mapping(mapping) => match mapping.entries.as_slice() {
                [entry] => Variant { name: &entry.key, value: Some(&entry.value) },
                _ => return Err(<TypeError as de::Error>::custom("want an object with one member").at(self)),
            },
            _ => return Err(<TypeError as de::Error>::custom("want a string or an object").at(self)),
        };
        visitor.visit_enum(access).map_err(|error| error.at(self))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = TypeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, TypeError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.at(item).below(&index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, Entry>,
    value: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = TypeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TypeError> {
        self.value = self.entries.next();
        let Some(entry) = self.value else { return Ok(None) };
        seed.deserialize(de::value::BorrowedStrDeserializer::new(&entry.key))
            .map(Some)
            .map_err(|error: TypeError| TypeError { line: entry.line, column: entry.column, ..error })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, TypeError> {
        let entry = self.value.take().ok_or_else(|| <TypeError as de::Error>::custom("a value without a key"))?;
        seed.deserialize(&entry.value).map_err(|error| error.at(&entry.value).below(&entry.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

struct Variant<'de> {
    name: &'de str,
    value: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = TypeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), TypeError> {
        let name: de::value::StrDeserializer<'_, TypeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = TypeError;

    fn unit_variant(self) -> Result<(), TypeError> {
        match self.value {
            None => Ok(()),
            Some(node) => Err(<TypeError as de::Error>::custom("want a string").at(node)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TypeError> {
        let node = self.value.ok_or_else(|| <TypeError as de::Error>::custom("want an object with one member"))?;
        seed.deserialize(node).map_err(|error| error.at(node).below(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TypeError> {
        self.newtype_variant_seed(AnyOf(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, TypeError> {
        self.newtype_variant_seed(AnyOf(visitor))
    }
}

/// Passes any value to a visitor.
struct AnyOf<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for AnyOf<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, parse};

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Pod {
        name: String,
        ports: Vec<u16>,
        policy: Option<Policy>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Policy {
        Always,
        Sometimes { weight: i32 },
    }

    fn read(text: &str) -> Result<Pod, String> {
        let documents = parse(text.as_bytes(), &Limits::default()).unwrap();
        from_node(&documents[0].root).map_err(|error| error.to_string())
    }

    #[test]
    fn types_are_read() {
        let pod = read("name: a\nports: [1, 2]\npolicy: Always\nother: 3\n").unwrap();
        assert_eq!(pod, Pod { name: "a".into(), ports: vec![1, 2], policy: Some(Policy::Always) });
        let pod = read("name: a\nports: []\npolicy: {Sometimes: {weight: 2}}\n").unwrap();
        assert_eq!(pod.policy, Some(Policy::Sometimes { weight: 2 }));
    }

    #[test]
    fn errors_have_positions() {
        for (text, message) in [
            ("name: 1\nports: []\n", "line 1, column 7: /name: invalid type: integer `1`, expected a string"),
            ("name: a\nports:\n- 1\n- x\n", "line 4, column 3: /ports/1: invalid type: string \"x\", expected u16"),
            ("name: a\n", "line 1, column 1: : missing field `ports`"),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
    }
}
