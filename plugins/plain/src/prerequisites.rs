//! Objects of a release whose namespace or kind comes with a later run level.
//!
//! The operator's own manifests of level 0 have ConfigMaps in `openshift-config`, a namespace of level 10. The cluster-version operator applies all
//! levels of an installation in parallel, and retries. Here a level waits for its objects, so that such an object is applied with the level of what
//! it needs.

use std::collections::BTreeMap;

use chandler_sdk::yaml::Node;

use crate::manifest::{Manifest, kind};

/// Moves objects to the level of their namespace and kind, if the release creates them in a later one.
pub(crate) fn defer(manifests: &mut [Manifest]) {
    let (mut namespaces, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    for Manifest { node, stage, .. } in manifests.iter() {
        let Some(stage) = *stage else { continue };
        let text = |pointer: &str| text(node, pointer).to_owned();
        match (group(node), kind(node)) {
            ("", Some("Namespace")) => lower(&mut namespaces, text("/metadata/name"), stage),
            ("apiextensions.k8s.io", Some("CustomResourceDefinition")) => {
                lower(&mut kinds, (text("/spec/group"), text("/spec/names/kind")), stage);
            }
            _ => {}
        }
    }
    for Manifest { node, stage, .. } in manifests {
        let namespace = namespaces.get(text(node, "/metadata/namespace"));
        let defined = kinds.get(&(group(node).to_owned(), kind(node).unwrap_or_default().to_owned()));
        *stage = stage.map(|own| own.max(namespace.copied().unwrap_or(own)).max(defined.copied().unwrap_or(own)));
    }
}

/// The first stage of a name.
fn lower<K: Ord>(stages: &mut BTreeMap<K, u32>, key: K, stage: u32) {
    let first = stages.entry(key).or_insert(stage);
    *first = stage.min(*first);
}

fn text<'a>(node: &'a Node, pointer: &str) -> &'a str {
    node.at(pointer).and_then(Node::as_str).unwrap_or_default()
}

/// The API group of an object.
fn group(node: &Node) -> &str {
    text(node, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}
