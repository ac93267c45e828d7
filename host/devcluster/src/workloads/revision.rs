//! ControllerRevisions: the current and earlier templates of StatefulSets and DaemonSets.

use serde_json::{Value, json};

use super::{
    action::{Action, Decision},
    fields::{controller_reference, count, label, map, number, text},
    kind::Kind,
    template::{hash, same_template},
    world::World,
};
use crate::metadata;

/// The label with the revision of a Pod.
pub(super) const HASH_LABEL: &str = "controller-revision-hash";
const STATEFUL_HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// How many revisions are kept by default.
const DEFAULT_LIMIT: i64 = 10;

/// The value of [`HASH_LABEL`] on Pods of a revision: its name for StatefulSets, its hash for DaemonSets.
pub(super) fn label_value(kind: Kind, revision: &Value) -> &str {
    match kind {
        Kind::StatefulSet => metadata::name(revision),
        _ => label(revision, HASH_LABEL),
    }
}

/// Whether Pods with this value of [`HASH_LABEL`] are of a revision.
pub(super) fn is_named(kind: Kind, revision: &Value, value: &str) -> bool {
    label_value(kind, revision) == value
}

/// The Pod template of a revision.
pub(super) fn template(revision: &Value) -> Value {
    let mut template = revision.pointer("/data/spec/template").cloned().unwrap_or_default();
    metadata::as_map(&mut template).remove("$patch");
    template
}

/// The revision of the current template; creates it or brings it to the front, in which case there is none yet.
pub(super) fn present<'a>(world: &World<'a>, kind: Kind, set: &Value, decision: &mut Decision) -> Option<&'a Value> {
    let revisions = world.living(Kind::ControllerRevision, set);
    let wanted = set.pointer("/spec/template");
    let newest = revisions.iter().map(|revision| count(revision, "/revision")).max().unwrap_or(0);
    let found = revisions.iter().copied().find(|revision| same_template(Some(&template(revision)), wanted));
    match found {
        Some(found) if count(found, "/revision") == newest => Some(found),
        Some(found) => {
            decision.change(Kind::ControllerRevision, found, json!({"revision": newest + 1}));
            None
        }
        None => {
            decision.push(create(world, kind, set, newest + 1));
            None
        }
    }
}

fn create(world: &World<'_>, kind: Kind, set: &Value, number: i64) -> Action {
    let (namespace, owner) = (metadata::namespace(set), metadata::name(set));
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    // The name of another object is passed over.
    let mut collisions = count(set, "/status/collisionCount");
    let (hash, name) = loop {
        let hash = hash(&template, collisions);
        let prefix: String = owner.chars().take(223).collect();
        let name = format!("{prefix}-{hash}");
        if world.cache.find(Kind::ControllerRevision, namespace, &name).is_none() {
            break (hash, name);
        }
        collisions += 1;
    };
    let mut labels = map(&template, "/metadata/labels");
    let key = if kind == Kind::StatefulSet { STATEFUL_HASH_LABEL } else { HASH_LABEL };
    labels.insert(key.to_owned(), hash.into());
    let mut data = template;
    metadata::as_map(&mut data).insert("$patch".to_owned(), "replace".into());
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels,
            "annotations": map(set, "/metadata/annotations"),
            "ownerReferences": [controller_reference(kind, set)],
        },
        "data": {"spec": {"template": data}}, "revision": number,
    });
    Action::Create { kind: Kind::ControllerRevision, object, note: None, failure: None }
}

/// Deletes the oldest revisions beyond the limit that no Pod is of.
pub(super) fn clean_up(world: &World<'_>, kind: Kind, set: &Value, live: &[&str], decision: &mut Decision) {
    let limit = number(set, "/spec/revisionHistoryLimit").unwrap_or(DEFAULT_LIMIT);
    let pods = world.living(Kind::Pod, set);
    let mut idle: Vec<&Value> = world
        .living(Kind::ControllerRevision, set)
        .into_iter()
        .filter(|revision| {
            let value = label_value(kind, revision);
            !live.contains(&value) && !pods.iter().any(|pod| label(pod, HASH_LABEL) == value)
        })
        .collect();
    idle.sort_by_key(|revision| count(revision, "/revision"));
    let surplus = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    for revision in idle.into_iter().take(surplus) {
        decision.delete(Kind::ControllerRevision, revision, None);
    }
}

/// The revision that a Pod is of.
pub(super) fn of_pod(pod: &Value) -> &str {
    text(pod, "/metadata/labels/controller-revision-hash")
}
