//! Objects and their health as a tree: by namespace, then by kind, then by name. Pure.

use std::collections::BTreeMap;

use chandler_api::Drifted;
use chandler_core::{ObjectKey, order};
use serde::Serialize;

use crate::text::one_line;

/// How an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It does what it is for.
    Healthy,
    /// It is on its way there.
    Progressing,
    /// It is not, and will not be without help.
    Unhealthy,
    /// It is not there, or nobody could look.
    Unknown,
}

impl Mark {
    /// The sign in front of the name.
    pub fn sign(self) -> String {
        match self {
            Self::Healthy => "✓",
            Self::Progressing => "…",
            Self::Unhealthy => "✗",
            Self::Unknown => "?",
        }
        .to_owned()
    }
}

/// One object of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leaf {
    /// What it is.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// How it is.
    pub health: Mark,
    /// Why, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The tree, line by line: what belongs to the cluster first, then the namespaces; kinds in the order in which they are
/// applied.
///
/// `sign` draws the mark in front of a name, so that a terminal may colour it.
pub fn lines(leaves: &[Leaf], sign: impl Fn(Mark) -> String) -> Vec<String> {
    let mut places: BTreeMap<Option<&str>, BTreeMap<_, Vec<&Leaf>>> = BTreeMap::new();
    for leaf in leaves {
        let key = &leaf.key;
        let kind = (order::phase_of(key), key.kind.as_str(), key.group.as_str());
        places.entry(key.namespace.as_deref()).or_default().entry(kind).or_default().push(leaf);
    }
    let mut lines = Vec::new();
    for (namespace, kinds) in places {
        lines.push(namespace.map_or_else(|| "cluster".to_owned(), |name| format!("namespace {}", one_line(name))));
        let last = kinds.len().saturating_sub(1);
        for (index, ((_, kind, group), mut leaves)) in kinds.into_iter().enumerate() {
            let dot = if group.is_empty() { "" } else { "." };
            let (branch, stem) = if index == last { ("└─", "   ") } else { ("├─", "│  ") };
            lines.push(format!("{branch} {}", one_line(&format!("{kind}{dot}{group}"))));
            leaves.sort_unstable_by(|a, b| a.key.name.cmp(&b.key.name));
            push_leaves(&mut lines, stem, &leaves, &sign);
        }
    }
    lines
}

/// Says of objects that are not as released that they are not, and where.
pub fn mark_drift(leaves: &mut [Leaf], drift: &Drifted) {
    for drifted in &drift.objects {
        let is_it = |leaf: &&mut Leaf| {
            let ObjectKey { group, kind, namespace, name, .. } = &leaf.key;
            (group, kind, namespace, name) == (&drifted.group, &drifted.kind, &drifted.namespace, &drifted.name)
        };
        let Some(leaf) = leaves.iter_mut().find(is_it) else { continue };
        let paths: Vec<&str> = drifted.fields.iter().map(|field| field.path.as_str()).collect();
        let fields = if paths.is_empty() { String::new() } else { format!(": {}", paths.join(", ")) };
        let contested = if drifted.contested { ", contested" } else { "" };
        let health = leaf.message.take().map(|message| format!("{message}; ")).unwrap_or_default();
        leaf.message = Some(format!("{health}drift: {}{contested}{fields}", drifted.state.as_str()));
    }
}

/// How many objects are healthy, of how many.
pub fn healthy(leaves: &[Leaf]) -> (usize, usize) {
    (leaves.iter().filter(|leaf| leaf.health == Mark::Healthy).count(), leaves.len())
}

fn push_leaves(lines: &mut Vec<String>, stem: &str, leaves: &[&Leaf], sign: impl Fn(Mark) -> String) {
    for (index, leaf) in leaves.iter().enumerate() {
        let branch = if index + 1 == leaves.len() { "└─" } else { "├─" };
        let name = one_line(&leaf.key.name);
        let message = leaf.message.as_deref().map(|message| format!("  {}", one_line(message))).unwrap_or_default();
        lines.push(format!("{stem}{branch} {} {name}{message}", sign(leaf.health)));
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{DriftedField, DriftedObject};

    use super::*;

    fn leaf(group: &str, kind: &str, namespace: Option<&str>, name: &str, health: Mark, message: &str) -> Leaf {
        Leaf {
            key: ObjectKey {
                group: group.into(),
                kind: kind.into(),
                namespace: namespace.map(Into::into),
                name: name.into(),
                version: "v1".into(),
            },
            health,
            message: (!message.is_empty()).then(|| message.into()),
        }
    }

    #[test]
    fn objects_stand_by_namespace_and_kind_in_the_order_of_their_application() {
        let leaves = [
            leaf("apps", "Deployment", Some("harbour"), "pilot", Mark::Progressing, "1 of 2 replicas\nare available"),
            leaf("", "Service", Some("harbour"), "metrics", Mark::Healthy, ""),
            leaf("apps", "Deployment", Some("harbour"), "crane", Mark::Unhealthy, "ImagePullBackOff\u{1b}[31m"),
            leaf("", "ConfigMap", Some("elsewhere"), "tides", Mark::Unknown, "not found"),
            leaf("apiextensions.k8s.io", "CustomResourceDefinition", None, "berths.example.com", Mark::Healthy, ""),
            leaf("", "Namespace", None, "harbour", Mark::Healthy, ""),
        ];
        insta::assert_snapshot!(lines(&leaves, Mark::sign).join("\n"), @r"
        cluster
        ├─ Namespace
        │  └─ ✓ harbour
        └─ CustomResourceDefinition.apiextensions.k8s.io
           └─ ✓ berths.example.com
        namespace elsewhere
        └─ ConfigMap
           └─ ? tides  not found
        namespace harbour
        ├─ Service
        │  └─ ✓ metrics
        └─ Deployment.apps
           ├─ ✗ crane  ImagePullBackOff\u{001B}[31m
           └─ … pilot  1 of 2 replicas are available
        ");
        assert_eq!(healthy(&leaves), (3, 6));
    }

    #[test]
    fn what_is_not_as_released_is_marked() {
        let mut leaves = [
            leaf("apps", "Deployment", Some("harbour"), "pilot", Mark::Progressing, "0 of 1 replicas"),
            leaf("apps", "Deployment", Some("elsewhere"), "pilot", Mark::Healthy, ""),
        ];
        let drifted = DriftedObject {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("harbour".into()),
            name: "pilot".into(),
            contested: true,
            fields: vec![DriftedField { path: "spec.replicas".into(), manager: None }],
            ..DriftedObject::default()
        };
        mark_drift(&mut leaves, &Drifted { total: 1, objects: vec![drifted] });
        let messages = leaves.map(|leaf| leaf.message);
        assert_eq!(messages, [Some("0 of 1 replicas; drift: Changed, contested: spec.replicas".to_owned()), None]);
    }

    #[test]
    fn no_objects_make_no_lines() {
        assert_eq!(lines(&[], Mark::sign), [""; 0]);
    }
}
