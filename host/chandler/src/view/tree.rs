//! Objects and their health as a tree: by namespace, kind and name.

use std::collections::BTreeMap;

use chandler_api::{Drifted, ReleaseInUse};
use chandler_core::{ObjectKey, order};
use serde::Serialize;

use super::text::one_line;

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
}

/// The lines of the tree: cluster-scoped objects first, then the namespaces; kinds in the order in which they are applied.
///
/// `sign` returns the sign before a name, so that a terminal can colour it.
pub fn lines(objects: &[ObjectStatus], sign: impl Fn(ObjectHealth) -> String) -> Vec<String> {
    let mut places: BTreeMap<Option<&str>, BTreeMap<_, Vec<&ObjectStatus>>> = BTreeMap::new();
    for object in objects {
        let key = &object.key;
        let kind = (order::phase_of(key), key.kind.as_str(), key.group.as_str());
        places.entry(key.namespace.as_deref()).or_default().entry(kind).or_default().push(object);
    }
    let mut lines = Vec::new();
    for (namespace, kinds) in places {
        lines.push(namespace.map_or_else(|| "cluster".to_owned(), |name| format!("namespace {}", one_line(name))));
        let last = kinds.len().saturating_sub(1);
        for (index, ((_, kind, group), mut objects)) in kinds.into_iter().enumerate() {
            let dot = if group.is_empty() { "" } else { "." };
            let (branch, stem) = if index == last { ("└─", "   ") } else { ("├─", "│  ") };
            lines.push(format!("{branch} {}", one_line(&format!("{kind}{dot}{group}"))));
            objects.sort_unstable_by(|a, b| a.key.name.cmp(&b.key.name));
            push_objects(&mut lines, stem, &objects, &sign);
        }
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

/// The number of healthy objects, and of all objects: those of the release, also if they do not exist yet.
pub fn healthy(objects: &[ObjectStatus], release: Option<&ReleaseInUse>) -> (usize, usize) {
    let healthy = objects.iter().filter(|object| object.health == ObjectHealth::Healthy).count();
    let expected = release.and_then(|release| usize::try_from(release.objects).ok()).unwrap_or_default();
    (healthy, objects.len().max(expected))
}

fn push_objects(lines: &mut Vec<String>, stem: &str, objects: &[&ObjectStatus], sign: impl Fn(ObjectHealth) -> String) {
    for (index, object) in objects.iter().enumerate() {
        let branch = if index + 1 == objects.len() { "└─" } else { "├─" };
        let name = one_line(&object.key.name);
        let message = object.message.as_deref().map(|message| format!("  {}", one_line(message))).unwrap_or_default();
        lines.push(format!("{stem}{branch} {} {name}{message}", sign(object.health)));
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
        }
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
