//! Flattens `List` kinds.

use crate::{Document, Entry, Kind, Node};

/// The objects of all documents, with `List` kinds expanded, as in `k8s.io/cli-runtime`.
///
/// A list is an object whose kind ends in `List` and whose `items` is a sequence. Items of a typed list, such as
/// `ConfigMapList`, without kind and apiVersion inherit them from the list. Null items are skipped.
///
/// cli-runtime treats any object with a sequence `items` as a list, whatever its kind, and so loses custom resources
/// that have such a field; this function also checks the kind.
pub fn flatten_lists(documents: Vec<Document>) -> Vec<Node> {
    let mut flat = Vec::with_capacity(documents.len());
    let mut stack: Vec<Node> = documents.into_iter().rev().map(|document| document.root).collect();
    while let Some(node) = stack.pop() {
        match into_items(node) {
            Ok(items) => stack.extend(items.into_iter().rev()),
            Err(node) => flat.push(node),
        }
    }
    flat
}

fn into_items(mut node: Node) -> Result<Vec<Node>, Node> {
    let list_kind = match node.get("kind").and_then(Node::as_str) {
        Some(kind) if kind.ends_with("List") => kind.to_owned(),
        _ => return Err(node),
    };
    let api_version = node.get("apiVersion").cloned();
    let Kind::Mapping(mapping) = &mut node.kind else { return Err(node) };
    let items = mapping.entries.iter_mut().find(|entry| &*entry.key == "items");
    let Some(Entry { value: Node { kind: Kind::Sequence(items), .. }, .. }) = items else { return Err(node) };
    let mut items = std::mem::take(items);
    items.retain(|item| !item.is_null());
    let item_kind = list_kind.strip_suffix("List").filter(|kind| !kind.is_empty());
    if let Some(kind) = item_kind {
        for item in items.iter_mut().filter(|item| lacks(item, "kind") && lacks(item, "apiVersion")) {
            let kind = Node { kind: Kind::String(kind.into()), line: item.line, column: item.column };
            set(item, "kind", kind);
            if let Some(api_version) = &api_version {
                set(item, "apiVersion", api_version.clone());
            }
        }
    }
    Ok(items)
}

fn lacks(item: &Node, key: &str) -> bool {
    item.get(key).and_then(Node::as_str).is_none_or(str::is_empty)
}

fn set(item: &mut Node, key: &str, value: Node) {
    let (line, column) = (item.line, item.column);
    if let Kind::Mapping(mapping) = &mut item.kind {
        mapping.entries.retain(|entry| &*entry.key != key);
        mapping.entries.push(Entry { key: key.into(), line, column, value });
    }
}
