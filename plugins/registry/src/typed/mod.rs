//! Normalizes a document as a round trip through Go types does.
//!
//! OLM v1 decodes ClusterServiceVersions and CustomResourceDefinitions into Go types and encodes parts of them again.
//! That drops unknown fields, zero values and nulls, adds empty structs and rewrites quantities. The names of Roles are
//! hashes of the result, so it must be exact.
//!
//! Here the types are tables ([`tables`]), and one function ([`convert()`]) walks a document along them, directly to
//! JSON text: a CRD of half a megabyte never becomes a tree of values.

pub(crate) mod convert;
pub(crate) mod number;
pub(crate) mod quantity;
pub(crate) mod tables;
mod time;

pub(crate) use convert::{Conversion, Spelling, convert};

/// The type of a value.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    /// A string.
    String,
    /// A boolean.
    Bool,
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A double.
    Float64,
    /// `resource.Quantity`: a string or a number, written in its canonical form.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `metav1.Time`.
    Time,
    /// Bytes, as base64 text.
    Bytes,
    /// Any JSON, kept as it is.
    Any,
    /// `JSONSchemaPropsOrBool`.
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`.
    SchemaOrList,
    /// `JSONSchemaPropsOrStringArray`.
    SchemaOrStrings,
    /// A list.
    List(&'static Type),
    /// A map from strings.
    Map(&'static Type),
    /// A struct.
    Record(&'static Record),
}

/// When a field is written: the effect of Go's struct tags and pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// `!`: always, with its zero value if absent (a plain value without `omitempty`).
    Always,
    /// `~`: always, though the API calls it optional (a struct with `omitempty`).
    Struct,
    /// `?`: unless it is empty (`omitempty`).
    NonEmpty,
    /// `*`: if present and not null (a pointer with `omitempty`).
    Present,
    /// `+`: the same, but the API calls it required (a list, a map or a pointer without `omitempty`).
    Required,
}

/// A field of a struct.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// When it is written.
    pub(crate) keep: Keep,
    /// Its type.
    pub(crate) kind: Type,
}

/// A struct.
pub(crate) struct Record {
    /// Its fields, sorted by name.
    pub(crate) fields: &'static [Field],
}

impl Record {
    /// The field with this name, if there is one. Names are case-sensitive.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        let index = self.fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        self.fields.get(index)
    }
}

impl std::fmt::Debug for Record {
    /// Only the names: types may be recursive.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.fields.iter().map(|field| field.name)).finish()
    }
}

/// `NAME { "field" mark type, ... }`: declares structs. The marks are the variants of [`Keep`]; `[type]` is a list, `{type}` a
/// map from strings.
macro_rules! records {
    ($($record:ident { $($name:literal $keep:tt $kind:tt),* $(,)? })*) => {
        $(pub(crate) static $record: $crate::typed::Record = $crate::typed::Record {
            fields: &[$($crate::typed::Field {
                name: $name,
                keep: $crate::typed::keep!($keep),
                kind: $crate::typed::kind!($kind),
            }),*],
        };)*
    };
}

macro_rules! keep {
    (!) => {
        $crate::typed::Keep::Always
    };
    (~) => {
        $crate::typed::Keep::Struct
    };
    (?) => {
        $crate::typed::Keep::NonEmpty
    };
    (*) => {
        $crate::typed::Keep::Present
    };
    (+) => {
        $crate::typed::Keep::Required
    };
}

macro_rules! kind {
    (string) => {
        $crate::typed::Type::String
    };
    (bool) => {
        $crate::typed::Type::Bool
    };
    (i32) => {
        $crate::typed::Type::Int32
    };
    (i64) => {
        $crate::typed::Type::Int64
    };
    (f64) => {
        $crate::typed::Type::Float64
    };
    (quantity) => {
        $crate::typed::Type::Quantity
    };
    (intstr) => {
        $crate::typed::Type::IntOrString
    };
    (time) => {
        $crate::typed::Type::Time
    };
    (bytes) => {
        $crate::typed::Type::Bytes
    };
    (any) => {
        $crate::typed::Type::Any
    };
    (schema_or_bool) => {
        $crate::typed::Type::SchemaOrBool
    };
    (schema_or_list) => {
        $crate::typed::Type::SchemaOrList
    };
    (schema_or_strings) => {
        $crate::typed::Type::SchemaOrStrings
    };
    ([$kind:tt]) => {
        $crate::typed::Type::List(&$crate::typed::kind!($kind))
    };
    ({$kind:tt}) => {
        $crate::typed::Type::Map(&$crate::typed::kind!($kind))
    };
    ($record:ident) => {
        $crate::typed::Type::Record(&$record)
    };
}

pub(crate) use {keep, kind, records};
