//! Field paths as kube-apiserver writes them.

use std::fmt;

/// A path into an object: `spec.template.spec.containers[0].ports`, `metadata.labels[app.kubernetes.io/name]`.
///
/// A path is a linked list on the stack of the walk; it costs nothing until it is rendered.
#[derive(Clone, Copy, Debug)]
pub enum FieldPath<'a> {
    /// The object itself.
    Root,
    /// A named field of an object.
    Field(&'a FieldPath<'a>, &'a str),
    /// A key of a map.
    Key(&'a FieldPath<'a>, &'a str),
    /// An item of a list.
    Index(&'a FieldPath<'a>, usize),
}

impl<'a> FieldPath<'a> {
    /// The path of the field `name` below this one.
    pub fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    /// The path of the map key `key` below this one.
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    /// The path of the list item `index` below this one.
    pub fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
