//! Detects sets.

use chandler_sdk::{Content, documents::parse_documents, yaml::Node};

use crate::load::is_manifest;

/// What a file of a set has in it.
const KIND: &str = "BundleDeployment";

/// Content whose manifests are BundleDeployments, all of them: a plain bundle may have some among other objects.
pub(crate) fn is_set(content: &dyn Content) -> bool {
    let mut files = content.files("").into_iter().filter(|file| is_manifest(&file.path)).peekable();
    files.peek().is_some() && files.all(|file| holds_members(content, &file.path))
}

fn holds_members(content: &dyn Content, path: &str) -> bool {
    let Ok(bytes) = content.read(path) else { return false };
    // Searching text is many times faster than parsing it, and other bundles are large.
    let mentioned = bytes.utf8_chunks().any(|chunk| chunk.valid().contains(KIND));
    mentioned && parse_documents(&bytes, path).is_ok_and(|documents| documents.iter().all(is_member))
}

fn is_member(node: &Node) -> bool {
    let kind = node.get("kind").and_then(Node::as_str);
    match kind {
        Some("List" | "BundleDeploymentList") => {
            node.get("items").and_then(Node::as_sequence).is_some_and(|items| items.iter().all(is_member))
        }
        _ => kind == Some(KIND),
    }
}
