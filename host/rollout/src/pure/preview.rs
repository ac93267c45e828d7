//! What a rollout would change. Pure.

use std::fmt;

use chandler_core::{Digest, ObjectKey};
use chandler_crd_upgrade::Upgrade;
use serde::Serialize;
use serde_json::{Value, json};

use crate::pure::{desired::Desired, error::list, fields::FieldChange, situation::Situation};

/// What a rollout would do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It does not exist and is created.
    Create,
    /// It belongs to another owner and is adopted.
    Adopt,
    /// It is updated from another release to this one.
    Change,
    /// It is deleted and created again, because an immutable field changes.
    Recreate,
    /// It is repaired.
    Repair,
    /// It is no longer in the release and is deleted.
    Remove,
    /// It is no longer in the release and is orphaned.
    Orphan,
    /// It belongs to another owner, so the rollout is refused.
    Refuse,
}

impl ChangeKind {
    /// The verb.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Change => "change",
            Self::Recreate => "recreate",
            Self::Repair => "repair",
            Self::Remove => "remove",
            Self::Orphan => "orphan",
            Self::Refuse => "refuse",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a rollout would do with one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The change.
    pub kind: ChangeKind,
    /// The object.
    pub object: ObjectKey,
    /// The fields that differ, if the object exists before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// The error of the API server about it, or why no dry run was possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a rollout would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The objects that would change, in order.
    pub changes: Vec<Change>,
    /// The number of objects that would not change.
    pub unchanged: usize,
    /// The reasons for which the rollout would be refused: objects of other owners, missing namespaces, kinds and permissions,
    /// unsafe changes of CRDs and invalid objects; also terminating objects, for which it would wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Warnings, which do not stop the rollout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The upgrades of CRDs with findings, refused or not. Refusals and warnings above summarize them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crd_upgrades: Vec<Upgrade>,
}

impl Preview {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The digest of the preview: the release, its namespace, and the changes of each object. Fields do not count, so the
    /// digest stays the same while other users edit objects that change anyway.
    pub fn digest(&self, release: &Digest, install_namespace: &str) -> Digest {
        let actions: Vec<Value> = self.changes.iter().map(|change| json!([change.kind, change.object])).collect();
        Digest::of(json!([release, install_namespace, actions]).to_string().as_bytes())
    }

    /// The number of objects with this change.
    pub fn count(&self, kind: ChangeKind) -> usize {
        self.changes.iter().filter(|change| change.kind == kind).count()
    }
}

/// The message about terminating objects for which a rollout would wait.
pub(crate) fn terminating(desired: &[Desired], situations: &[Situation]) -> Option<String> {
    let objects = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Terminating);
    let objects: Vec<&ObjectKey> = objects.map(|(desired, _)| &desired.key).collect();
    let line = |object: &&ObjectKey| format!("{object} is being deleted: the rollout would wait until it is gone");
    (!objects.is_empty()).then(|| list(&objects, line))
}

/// The result of an apply as far as known without the API server: the desired object overlaid on the live one.
pub(crate) fn overlaid(live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut result = live.clone();
            for (name, desired) in desired {
                let merged = match live.get(name) {
                    Some(live) => overlaid(live, desired),
                    None => desired.clone(),
                };
                result.insert(name.clone(), merged);
            }
            Value::Object(result)
        }
        (_, desired) => desired.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::desired::tests::desired;

    fn change(kind: ChangeKind, name: &str) -> Change {
        let object = ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: name.into(),
        };
        Change { kind, object, fields: Vec::new(), note: None }
    }

    #[test]
    fn the_digest_covers_the_change_of_each_object() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let digest = |release: &Digest, namespace: &str, changes: &[Change]| {
            let preview = Preview { changes: changes.to_vec(), ..Preview::default() };
            preview.digest(release, namespace)
        };
        let changes = [change(ChangeKind::Create, "x"), change(ChangeKind::Remove, "y")];
        let one = digest(&a, "n", &changes);
        let noted = [Change { note: Some("no".into()), ..changes[0].clone() }, changes[1].clone()];
        assert_eq!(one, digest(&a, "n", &noted), "notes do not count");
        assert_ne!(one, digest(&b, "n", &changes));
        assert_ne!(one, digest(&a, "m", &changes));
        assert_ne!(one, digest(&a, "n", &changes[..1]));
        assert_ne!(one, digest(&a, "n", &[change(ChangeKind::Change, "x"), changes[1].clone()]));
    }

    #[test]
    fn the_desired_object_is_overlaid_on_the_live_one() {
        let live = json!({"a": {"b": 1, "c": 2}, "d": [1, 2]});
        assert_eq!(overlaid(&live, &json!({"a": {"b": 3}, "d": [4]})), json!({"a": {"b": 3, "c": 2}, "d": [4]}));
    }

    #[test]
    fn changes_are_counted_by_kind() {
        let changes =
            vec![change(ChangeKind::Create, "x"), change(ChangeKind::Create, "y"), change(ChangeKind::Adopt, "z")];
        let preview = Preview { changes, unchanged: 3, ..Preview::default() };
        let counted = [ChangeKind::Create, ChangeKind::Adopt, ChangeKind::Remove].map(|kind| preview.count(kind));
        assert_eq!(counted, [2, 1, 0]);
    }

    #[test]
    fn a_rollout_waits_for_objects_that_are_being_deleted() {
        let object =
            |name: &str| desired(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}), true);
        let objects = [object("x"), object("y")];
        assert_eq!(terminating(&objects, &[Situation::Equal, Situation::Absent]), None);
        assert_eq!(
            terminating(&objects, &[Situation::Equal, Situation::Terminating]).unwrap(),
            "ConfigMap install/y is being deleted: the rollout would wait until it is gone"
        );
    }
}
