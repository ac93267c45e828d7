//! What a component imports, against what this host provides.

use std::fmt;

/// Something that a component imports and this host does not provide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingImport {
    /// The interface, such as `wasi:http/types@0.2.6`, with `#function` behind it where only a function is missing.
    pub name: String,
    /// What would supply it.
    pub remedy: &'static str,
}

impl MissingImport {
    pub(crate) fn list(imports: &[Self]) -> String {
        imports.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for MissingImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.remedy)
    }
}
