//! The in-memory form of a structural type.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock, OnceLock},
};

use chandler_expression::re2::{self, Regex};
use serde_json::Value;

use crate::schema::expression::CompiledRule;

/// A type of values, as used at one place of an object. Cheap to clone.
///
/// Properties of the type itself are in [`Node`], to which this dereferences; properties of the place (how strategic
/// merge patch treats it, its default) are in this struct, since many places share one type.
#[derive(Clone, Debug)]
pub struct Schema {
    node: NodeReference,
    /// How strategic merge patch treats the value at this place.
    pub patch: PatchStrategy,
    /// The value that an absent field takes.
    pub default: Option<Arc<Value>>,
    /// How the value at this place is written when it holds nothing; only fields of built-in types differ.
    pub presence: Presence,
}

/// How a field of a Go struct is serialised if it has the zero value of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// The value of the field is kept, and nothing is added: for values that are not fields of a Go struct.
    #[default]
    AsIs,
    /// Omitted (`omitempty`).
    Omitted,
    /// Omitted if it is not set; a pointer, so that zero is a value.
    Pointer,
    /// `null`: a pointer without `omitempty`.
    Null,
    /// The zero value: `""`, `0`, `false`, an object of zero values, and `null` for lists and maps.
    Written,
}

#[derive(Clone, Debug)]
enum NodeReference {
    Shared(Arc<Node>),
    /// A definition of the built-in table.
    Definition(Definition),
}

/// A place for a definition of the built-in table, filled after all places are known: definitions refer to one another and to
/// themselves. They live as long as the program.
#[derive(Clone, Default)]
pub(crate) struct Definition(Arc<OnceLock<Node>>);

impl Definition {
    /// Says what the definition is; only the first time counts.
    pub(crate) fn fill(&self, node: Node) {
        let _ = self.0.set(node);
    }

    /// The definition; the empty node before it is known.
    fn node(&self) -> &Node {
        static NOTHING: LazyLock<Node> = LazyLock::new(Node::default);
        self.0.get().unwrap_or(&NOTHING)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The type may be recursive.
        f.write_str("Definition")
    }
}

/// The properties of a type that are the same wherever it is used.
#[derive(Debug, Default)]
pub struct Node {
    /// The name of a definition of the built-in table; empty for other types.
    pub name: String,
    /// Which values the type has.
    pub shape: Shape,
    /// Whether `null` is a value of the type (`nullable: true`).
    pub nullable: bool,
    /// The only values allowed; empty when any value of the shape is.
    pub enumeration: Vec<Value>,
    /// Validation rules in the Common Expression Language (`x-kubernetes-validations`).
    pub rules: Vec<Rule>,
    /// Value validations outside the structural part: `allOf`, `anyOf`, `oneOf`, `not`, as JSON.
    pub combinations: Option<Combinations>,
    /// The schema in OpenAPI v3 form, without `$ref` resolution; `Null` for built-in definitions that are only referenced.
    pub openapi: Value,
}

/// Boolean combinations of value validations; each member is a [`Schema`] of which only the validations count.
#[derive(Debug, Default)]
pub struct Combinations {
    /// All must hold.
    pub all_of: Vec<Schema>,
    /// At least one must hold.
    pub any_of: Vec<Schema>,
    /// Exactly one must hold.
    pub one_of: Vec<Schema>,
    /// Must not hold.
    pub not: Option<Schema>,
}

/// Which values a type has.
#[derive(Debug, Default)]
pub enum Shape {
    /// Any JSON value: no type is stated, nothing is known of the inside.
    #[default]
    Any,
    /// Any JSON value below `x-kubernetes-preserve-unknown-fields`: objects have owners field by field, lists as a whole.
    Deduced,
    /// An object with named properties, with arbitrary keys, or both.
    Object {
        /// Known properties.
        properties: BTreeMap<String, Schema>,
        /// Properties that must be present.
        required: Vec<String>,
        /// The type of the values of keys that are not properties (`additionalProperties`).
        values: Option<Schema>,
        /// Whether owners own single fields or the object as a whole.
        map_type: MapType,
        /// Whether unknown fields survive pruning (`x-kubernetes-preserve-unknown-fields`).
        preserve_unknown: bool,
        /// Whether the object is a complete resource with `apiVersion`, `kind`, `metadata`.
        embedded_resource: bool,
        /// Least and greatest number of keys.
        size: (Option<u64>, Option<u64>),
    },
    /// A list.
    List {
        /// The type of the items; [`Shape::Any`] when not stated.
        items: Schema,
        /// How items are identified.
        list_type: ListType,
        /// Least and greatest number of items.
        size: (Option<u64>, Option<u64>),
        /// `uniqueItems`
        unique: bool,
    },
    /// A single value.
    Scalar(Scalar),
}

/// Single values.
#[derive(Debug)]
pub enum Scalar {
    /// A string.
    String {
        /// `format`, e.g. `date-time`, `byte`.
        format: Option<String>,
        /// `pattern`: an unanchored regular expression.
        pattern: Option<Pattern>,
        /// Least and greatest length in characters.
        length: (Option<u64>, Option<u64>),
    },
    /// A whole number.
    Integer {
        /// `format`: `int32` or `int64`.
        format: Option<String>,
        /// Bounds.
        range: Range,
    },
    /// A number.
    Number {
        /// Bounds.
        range: Range,
    },
    /// A truth value.
    Boolean,
    /// A whole number or a string (`x-kubernetes-int-or-string`).
    IntOrString,
    /// A Kubernetes quantity, e.g. `500m`: canonicalised on write.
    Quantity,
}

/// Numeric bounds.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Range {
    /// `minimum`
    pub minimum: Option<f64>,
    /// Whether the value must be greater than `minimum`.
    pub exclusive_minimum: bool,
    /// `maximum`
    pub maximum: Option<f64>,
    /// Whether the value must be less than `maximum`.
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
}

/// How the items of a list are identified (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Items are scalars and unique.
    Set,
    /// Items are objects that are identified by these fields.
    Map(Vec<String>),
}

/// Whether owners own the fields of an object or the object as a whole (`x-kubernetes-map-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapType {
    /// Each field has its owners.
    #[default]
    Granular,
    /// The object has owners only as a whole.
    Atomic,
}

/// How strategic merge patch treats a place (`x-kubernetes-patch-strategy`, `-patch-merge-key`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    /// Lists merge item by item instead of being replaced.
    pub merge: bool,
    /// Keys absent from the patch are dropped when the patch names `$retainKeys`.
    pub retain_keys: bool,
    /// The field that identifies an item of a merging list of objects.
    pub merge_key: Option<String>,
}

/// A regular expression in the syntax of RE2, compiled on first use.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Takes an expression unchanged.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// The expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The compiled expression; `None` for one that is malformed or compiles to more than a megabyte.
    pub fn compiled(&self) -> Option<&Regex> {
        const LARGEST: usize = 1 << 20;
        self.compiled.get_or_init(|| re2::compile(&self.text, LARGEST).ok()).as_ref()
    }
}

/// A validation rule (`x-kubernetes-validations`).
#[derive(Debug, Default)]
pub struct Rule {
    /// The expression; `self` is the value at this place.
    pub rule: String,
    /// The message for a violation.
    pub message: Option<String>,
    /// An expression that yields the message.
    pub message_expression: Option<String>,
    /// `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or `FieldValueDuplicate`.
    pub reason: Option<String>,
    /// A path below this place that the error is reported at.
    pub field_path: Option<String>,
    /// Whether `oldSelf` is an optional, and the rule runs on create too.
    pub optional_old_self: bool,
    pub(crate) compiled: OnceLock<Result<CompiledRule, String>>,
}

impl Schema {
    /// Makes a schema of a node.
    pub fn new(node: Node) -> Self {
        Self {
            node: NodeReference::Shared(Arc::new(node)),
            patch: PatchStrategy::default(),
            default: None,
            presence: Presence::AsIs,
        }
    }

    /// The schema of any value: nothing is known of it.
    pub fn any() -> Self {
        Self::new(Node::default())
    }

    /// The schema of any value whose objects have owners field by field.
    pub fn deduced() -> Self {
        Self::new(Node { shape: Shape::Deduced, ..Node::default() })
    }

    /// A reference to a definition of the built-in table.
    pub(crate) fn definition(definition: &Definition) -> Self {
        Self {
            node: NodeReference::Definition(definition.clone()),
            patch: PatchStrategy::default(),
            default: None,
            presence: Presence::AsIs,
        }
    }

    /// Whether this is a type of the built-in table, whose objects are Go structs in kube-apiserver.
    pub fn is_builtin(&self) -> bool {
        matches!(self.node, NodeReference::Definition(_))
    }

    /// The name of a type of the built-in table, without its package, e.g. `PodSpec`.
    pub fn type_name(&self) -> Option<&str> {
        self.name.rsplit('.').next().filter(|name| !name.is_empty())
    }

    /// The type of the property `name`: a named property, else the value type of a map, else `None`.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            Shape::Object { properties, values, .. } => properties.get(name).or(values.as_ref()),
            _ => None,
        }
    }

    /// The type of the items of a list.
    pub fn items(&self) -> Option<&Schema> {
        match &self.shape {
            Shape::List { items, .. } => Some(items),
            _ => None,
        }
    }

    /// How the items of this list are identified; atomic for everything else.
    pub fn list_type(&self) -> &ListType {
        match &self.shape {
            Shape::List { list_type, .. } => list_type,
            _ => &ListType::Atomic,
        }
    }

    /// Whether the value has owners only as a whole: scalars, atomic lists and maps, and values of unknown type.
    pub fn is_atomic(&self) -> bool {
        match &self.shape {
            Shape::Object { map_type, .. } => *map_type == MapType::Atomic,
            Shape::List { list_type, .. } => *list_type == ListType::Atomic,
            Shape::Any | Shape::Scalar(_) => true,
            Shape::Deduced => false,
        }
    }
}

impl Deref for Schema {
    type Target = Node;

    fn deref(&self) -> &Node {
        match &self.node {
            NodeReference::Shared(node) => node,
            NodeReference::Definition(definition) => definition.node(),
        }
    }
}
