//! Objects and their health as a tree: by namespace, kind and name.

use std::collections::BTreeMap;

use chandler_api::{Drifted, ReleaseInUse};
use chandler_core::{ObjectKey, order};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::{overview::Overview, table::cut_end, text::one_line};

/// The health of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectHealth {
    /// It is ready.
    Healthy,
    /// It is becoming ready.
    Progressing,
    /// It has failed.
    Unhealthy,
    /// It does not exist, or its health could not be determined.
    Unknown,
}

impl ObjectHealth {
    /// The sign before the name.
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

/// An object of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectStatus {
    /// Its kind, namespace and name.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// Its health.
    pub health: ObjectHealth,
    /// The reason for its health, and its drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was created.
    #[serde(skip)]
    pub created: Option<Timestamp>,
}

/// An object of the tree with the objects below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeNode {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectStatus,
    /// What it owns: ReplicaSets, Jobs, Pods and claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<TreeNode>,
}

impl From<&ObjectStatus> for TreeNode {
    fn from(object: &ObjectStatus) -> Self {
        Self { object: object.clone(), dependents: Vec::new() }
    }
}

/// The space before a message.
const GAP: &str = "  ";
/// The number of characters to which messages are cut at most, however narrow the terminal is.
const LEAST_MESSAGE: usize = 20;

/// What the sign before a label means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The health of an object.
    Health(ObjectHealth),
    /// A bundle that is installed.
    Installed,
    /// A bundle that would be installed next.
    Next,
    /// A bundle that is deprecated.
    Deprecated,
}

impl Mark {
    /// The sign before the name.
    pub fn sign(self) -> String {
        match self {
            Self::Health(health) => return health.sign(),
            Self::Installed => "●",
            Self::Next => "→",
            Self::Deprecated => "!",
        }
        .to_owned()
    }
}

/// A line of a tree, and those below it. All text is one printable line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// A place, a kind, or the name of an object.
    pub label: String,
    /// The sign before it; none for places and kinds.
    pub mark: Option<Mark>,
    /// The reason for the sign.
    pub message: Option<String>,
    /// What is below it.
    pub branches: Vec<Branch>,
}

impl Branch {
    /// A line without a sign.
    pub fn of(label: &str, branches: Vec<Self>) -> Self {
        Self { label: one_line(label), mark: None, message: None, branches }
    }

    fn of_object(node: &TreeNode, label: &str) -> Self {
        let dependents = node.dependents.iter();
        Self {
            label: one_line(label),
            mark: Some(Mark::Health(node.object.health)),
            message: node.object.message.as_deref().map(one_line),
            branches: dependents
                .map(|node| Self::of_object(node, &format!("{} {}", node.object.key.kind, node.object.key.name)))
                .collect(),
        }
    }
}

/// The first line about a BundleDeployment: what runs and what waits, unless the spec is rolled out. The signs of the objects say the rest.
pub fn title(overview: &Overview) -> String {
    let waits = if overview.is_ready() { overview.waits() } else { Some(overview.text()) };
    let title = format!("BundleDeployment {}", overview.name);
    one_line(&waits.map_or_else(|| title.clone(), |waits| format!("{title}: {waits}")))
}

/// The tree: cluster-scoped objects first, then the namespaces; kinds in the order in which they are applied.
pub fn branches(nodes: &[TreeNode]) -> Vec<Branch> {
    let mut places: BTreeMap<Option<&str>, BTreeMap<_, Vec<&TreeNode>>> = BTreeMap::new();
    for node in nodes {
        let key = &node.object.key;
        let kind = (order::phase_of(key), key.kind.as_str(), key.group.as_str());
        places.entry(key.namespace.as_deref()).or_default().entry(kind).or_default().push(node);
    }
    let of_kind = |((_, kind, group), mut nodes): ((_, &str, &str), Vec<&TreeNode>)| {
        let dot = if group.is_empty() { "" } else { "." };
        nodes.sort_unstable_by(|a, b| a.object.key.name.cmp(&b.object.key.name));
        let objects = nodes.into_iter().map(|node| Branch::of_object(node, &node.object.key.name)).collect();
        Branch::of(&format!("{kind}{dot}{group}"), objects)
    };
    let of_place = |(namespace, kinds): (Option<&str>, BTreeMap<_, Vec<&TreeNode>>)| {
        let name = namespace.map_or_else(|| "cluster".to_owned(), |name| format!("namespace {name}"));
        Branch::of(&name, kinds.into_iter().map(of_kind).collect())
    };
    places.into_iter().map(of_place).collect()
}

/// The lines of the tree without what is below the objects.
///
/// `sign` returns the sign before a name, so that a terminal can colour it.
pub fn lines(objects: &[ObjectStatus], sign: impl Fn(ObjectHealth) -> String) -> Vec<String> {
    let nodes: Vec<TreeNode> = objects.iter().map(TreeNode::from).collect();
    node_lines(&nodes, sign, None)
}

/// The lines of the tree. In `width` columns messages are cut at the end; names are not.
pub fn node_lines(nodes: &[TreeNode], sign: impl Fn(ObjectHealth) -> String, width: Option<usize>) -> Vec<String> {
    branch_lines(&branches(nodes), sign, width)
}

/// The lines of branches, without a stem at the first level.
pub fn branch_lines(branches: &[Branch], sign: impl Fn(ObjectHealth) -> String, width: Option<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    for place in branches {
        lines.push(place.label.clone());
        push(&mut lines, "", &place.branches, &sign, width);
    }
    lines
}

/// Adds its drift to the message of each drifted object.
pub fn mark_drift(objects: &mut [ObjectStatus], drift: &Drifted) {
    for drifted in &drift.objects {
        let is_same = |object: &&mut ObjectStatus| {
            let ObjectKey { group, kind, namespace, name, .. } = &object.key;
            (group, kind, namespace, name) == (&drifted.group, &drifted.kind, &drifted.namespace, &drifted.name)
        };
        let Some(object) = objects.iter_mut().find(is_same) else { continue };
        let paths: Vec<&str> = drifted.fields.iter().map(|field| field.path.as_str()).collect();
        let fields = if paths.is_empty() { String::new() } else { format!(": {}", paths.join(", ")) };
        let contested = if drifted.contested { ", ownership conflict" } else { "" };
        let health = object.message.take().map(|message| format!("{message}; ")).unwrap_or_default();
        object.message = Some(format!("{health}drift: {}{contested}{fields}", drifted.state.as_str()));
    }
}

/// The number of healthy objects, and of all objects of the release, including objects that do not exist yet.
pub fn healthy(objects: &[ObjectStatus], release: Option<&ReleaseInUse>) -> (usize, usize) {
    let healthy = objects.iter().filter(|object| object.health == ObjectHealth::Healthy).count();
    let expected = release.and_then(|release| usize::try_from(release.objects).ok()).unwrap_or_default();
    (healthy, objects.len().max(expected))
}

fn push(
    lines: &mut Vec<String>,
    stem: &str,
    branches: &[Branch],
    sign: &impl Fn(ObjectHealth) -> String,
    width: Option<usize>,
) {
    for (index, branch) in branches.iter().enumerate() {
        let (fork, below) = if index + 1 == branches.len() { ("└─", "   ") } else { ("├─", "│  ") };
        let mark = branch.mark.map(|mark| match mark {
            Mark::Health(health) => format!("{} ", sign(health)),
            mark => format!("{} ", mark.sign()),
        });
        let mark = mark.unwrap_or_default();
        // Without colours, which take no columns.
        let plain = branch.mark.map(|mark| format!("{} ", mark.sign())).unwrap_or_default();
        let taken = format!("{stem}{fork} {plain}{}", branch.label).chars().count() + GAP.len();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(taken).max(LEAST_MESSAGE));
        let message = branch.message.as_deref().map(|message| format!("{GAP}{}", cut_end(message, room)));
        lines.push(format!("{stem}{fork} {mark}{}{}", branch.label, message.unwrap_or_default()));
        push(lines, &format!("{stem}{below}"), &branch.branches, sign, width);
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{DriftedField, DriftedObject};

    use super::*;

    fn object(
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        health: ObjectHealth,
        message: &str,
    ) -> ObjectStatus {
        ObjectStatus {
            key: ObjectKey {
                group: group.into(),
                kind: kind.into(),
                namespace: namespace.map(Into::into),
                name: name.into(),
                version: "v1".into(),
            },
            health,
            message: (!message.is_empty()).then(|| message.into()),
            created: None,
        }
    }

    #[test]
    fn messages_are_cut_to_the_width_of_the_terminal() {
        let why = "0 of 1 replica is available: ImagePullBackOff: registry.example.com/harbour/pilot:v1: not found in the registry, and \
                   no other node has it";
        let long = "a-name-that-is-as-long-as-names-of-objects-can-be-in-bundles-that-people-write";
        let unhealthy = |name| object("apps", "Deployment", Some("harbour"), name, ObjectHealth::Unhealthy, why);
        let objects = [unhealthy("pilot"), unhealthy(long)];
        let nodes: Vec<TreeNode> = objects.iter().map(TreeNode::from).collect();
        let text = |width| node_lines(&nodes, ObjectHealth::sign, width).join("\n");
        insta::assert_snapshot!("tree.80", text(Some(80)));
        insta::assert_snapshot!("tree.160", text(Some(160)));
        assert!(text(None).contains(why));
    }

    #[test]
    fn objects_are_grouped_by_namespace_and_by_kind_in_apply_order() {
        let objects = [
            object(
                "apps",
                "Deployment",
                Some("harbour"),
                "pilot",
                ObjectHealth::Progressing,
                "1 of 2 replicas\nare available",
            ),
            object("", "Service", Some("harbour"), "metrics", ObjectHealth::Healthy, ""),
            object(
                "apps",
                "Deployment",
                Some("harbour"),
                "crane",
                ObjectHealth::Unhealthy,
                "ImagePullBackOff\u{1b}[31m",
            ),
            object("", "ConfigMap", Some("elsewhere"), "tides", ObjectHealth::Unknown, "not found"),
            object(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                None,
                "berths.example.com",
                ObjectHealth::Healthy,
                "",
            ),
            object("", "Namespace", None, "harbour", ObjectHealth::Healthy, ""),
        ];
        insta::assert_snapshot!(lines(&objects, ObjectHealth::sign).join("\n"), @r"
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
        assert_eq!(healthy(&objects, None), (3, 6));
        let release = |objects| ReleaseInUse { objects, ..ReleaseInUse::default() };
        assert_eq!(healthy(&objects, Some(&release(21))), (3, 21), "15 objects do not exist yet");
        assert_eq!(healthy(&objects, Some(&release(2))), (3, 6), "objects of the previous release remain");
    }

    #[test]
    fn what_an_object_owns_is_below_it() {
        let node = |kind: &str, name: &str, health, message: &str, dependents: Vec<TreeNode>| TreeNode {
            object: object("", kind, Some("harbour"), name, health, message),
            dependents,
        };
        let pods = vec![
            node("Pod", "crane-5f6-a", ObjectHealth::Healthy, "", vec![]),
            node("Pod", "crane-5f6-b", ObjectHealth::Unhealthy, "ImagePullBackOff: x: not found", vec![]),
        ];
        let set = node("ReplicaSet", "crane-5f6", ObjectHealth::Progressing, "1 of 2 replicas are available", pods);
        let nodes = [
            node("Deployment", "crane", ObjectHealth::Progressing, "ImagePullBackOff: x: not found", vec![set]),
            node("Deployment", "pilot", ObjectHealth::Healthy, "", vec![]),
        ];
        insta::assert_snapshot!(node_lines(&nodes, ObjectHealth::sign, None).join("\n"), @r"
        namespace harbour
        └─ Deployment
           ├─ … crane  ImagePullBackOff: x: not found
           │  └─ … ReplicaSet crane-5f6  1 of 2 replicas are available
           │     ├─ ✓ Pod crane-5f6-a
           │     └─ ✗ Pod crane-5f6-b  ImagePullBackOff: x: not found
           └─ ✓ pilot
        ");
        let json = serde_json::to_value(&nodes).unwrap();
        assert_eq!(json[0]["dependents"][0]["dependents"][1]["health"], "unhealthy");
        assert_eq!((&json[0]["name"], json[1].get("dependents")), (&serde_json::json!("crane"), None));
    }

    #[test]
    fn drifted_objects_have_their_drift_in_the_message() {
        let mut objects = [
            object("apps", "Deployment", Some("harbour"), "pilot", ObjectHealth::Progressing, "0 of 1 replicas"),
            object("apps", "Deployment", Some("elsewhere"), "pilot", ObjectHealth::Healthy, ""),
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
        mark_drift(&mut objects, &Drifted { total: 1, objects: vec![drifted] });
        let messages = objects.map(|object| object.message);
        assert_eq!(
            messages,
            [Some("0 of 1 replicas; drift: Changed, ownership conflict: spec.replicas".to_owned()), None]
        );
    }

    #[test]
    fn no_objects_make_no_lines() {
        assert_eq!(lines(&[], ObjectHealth::sign), [""; 0]);
    }
}
