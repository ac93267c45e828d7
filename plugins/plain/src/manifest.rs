//! The values of a manifest.

use chandler_sdk::yaml::Node;

/// A value of a manifest; it may not be an object.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The value.
    pub(crate) node: Node,
    /// The file that contains it.
    pub(crate) path: String,
    /// Its run level.
    pub(crate) stage: Option<u32>,
    /// Annotations that tell the host how to apply it.
    pub(crate) instructions: Vec<(&'static str, String)>,
}

/// The `kind` of a value.
pub(crate) fn kind(node: &Node) -> Option<&str> {
    node.get("kind").and_then(Node::as_str).filter(|kind| !kind.is_empty())
}
