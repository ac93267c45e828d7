//! What stands in a manifest.

use chandler_sdk::yaml::Node;

/// A value of a manifest. Whether it is an object is not known yet.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The value.
    pub(crate) node: Node,
    /// The file that it comes from.
    pub(crate) path: String,
    /// Its run level.
    pub(crate) stage: Option<u32>,
}

/// The kind that a value says it is.
pub(crate) fn kind(node: &Node) -> Option<&str> {
    node.get("kind").and_then(Node::as_str).filter(|kind| !kind.is_empty())
}
