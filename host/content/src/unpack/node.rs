//! The nodes of a tree while layers are combined.

use std::{collections::BTreeMap, ops::Bound};

use crate::tree::Stored;

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Stored),
    /// A symbolic link and its target, as written.
    Link(String),
}

/// What an absolute link target is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootedAt {
    /// Absolute targets leave the tree.
    Nothing,
    /// The root of the image, as for a process that runs in it.
    Tree,
}

/// Whether something lies below a path.
pub(super) fn is_directory(nodes: &BTreeMap<String, Node>, path: &str) -> bool {
    below(nodes, path).next().is_some()
}

/// The paths below a directory.
pub(super) fn below<'a>(nodes: &'a BTreeMap<String, Node>, directory: &str) -> impl Iterator<Item = &'a String> {
    let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
    let from = (Bound::Included(prefix.clone()), Bound::Unbounded);
    nodes.range(from).map(|(path, _)| path).take_while(move |path| path.starts_with(&prefix))
}

/// Removes a directory's paths, not the directory itself.
pub(super) fn remove_below(nodes: &mut BTreeMap<String, Node>, directory: &str) {
    let paths: Vec<String> = below(nodes, directory).cloned().collect();
    for path in paths {
        nodes.remove(&path);
    }
}
