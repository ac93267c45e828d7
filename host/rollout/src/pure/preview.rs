//! What a rollout would change. Pure.

use std::fmt;

use chandler_core::{Digest, ObjectKey};
use serde::Serialize;
use serde_json::{Value, json};

use crate::pure::{desired::Desired, error::list, fields::FieldChange, situation::Situation};

/// What a rollout would do to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It does not exist and is created.
    Create,
    /// It is somebody else's and taken over.
    Adopt,
    /// It is brought from another release to this one.
    Change,
    /// What somebody changed is undone.
    Repair,
    /// It is not in the release any more, and is deleted.
    Remove,
    /// It is not in the release any more, and is left to itself.
    Orphan,
    /// It is somebody else's, so that the rollout is refused.
    Refuse,
}

impl ChangeKind {
    /// The verb.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Change => "change",
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

/// What a rollout would do to one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What.
    pub kind: ChangeKind,
    /// The object.
    pub object: ObjectKey,
    /// The fields that differ, where the object exists before and after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// What the API server says against it, or why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a rollout would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The objects that would change, in the order in which they would.
    pub changes: Vec<Change>,
    /// How many objects would stay as they are.
    pub unchanged: usize,
    /// What the rollout would be refused for: objects of others, missing namespaces, kinds and permissions, unsafe changes of
    /// CRDs, what the API server calls invalid, and objects that are being deleted, which it would wait for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// What checks find that stops nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl Preview {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What stands for all of this: the release, its namespace, and what is done to which objects. Fields do not count, so
    /// that it stays the same while others edit objects that change anyway.
    pub fn digest(&self, release: &Digest, install_namespace: &str) -> Digest {
        let actions: Vec<Value> = self.changes.iter().map(|change| json!([change.kind, change.object])).collect();
        Digest::of(json!([release, install_namespace, actions]).to_string().as_bytes())
    }

    /// How many objects this would be done to.
    pub fn count(&self, kind: ChangeKind) -> usize {
        self.changes.iter().filter(|change| change.kind == kind).count()
    }
}

/// What a rollout would wait for before it writes these objects.
pub(crate) fn terminating(desired: &[Desired], situations: &[Situation]) -> Option<String> {
    let objects = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Terminating);
    let objects: Vec<&ObjectKey> = objects.map(|(desired, _)| &desired.key).collect();
    let line = |object: &&ObjectKey| format!("{object} is being deleted: the rollout would wait until it is gone");
    (!objects.is_empty()).then(|| list(&objects, line))
}

/// What an object becomes, as far as it can be told without the API server: what is desired is laid over it.
pub(crate) fn laid_over(live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut result = live.clone();
            for (name, desired) in desired {
                let merged = match live.get(name) {
                    Some(live) => laid_over(live, desired),
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
    fn the_digest_stands_for_what_is_done_to_which_objects() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let digest = |release: &Digest, namespace: &str, changes: &[Change]| {
            let preview =
                Preview { changes: changes.to_vec(), unchanged: 0, refusals: Vec::new(), findings: Vec::new() };
            preview.digest(release, namespace)
        };
        let changes = [change(ChangeKind::Create, "x"), change(ChangeKind::Remove, "y")];
        let one = digest(&a, "n", &changes);
        let noted = [Change { note: Some("no".into()), ..changes[0].clone() }, changes[1].clone()];
        assert_eq!(one, digest(&a, "n", &noted), "what is said about it does not count");
        assert_ne!(one, digest(&b, "n", &changes));
        assert_ne!(one, digest(&a, "m", &changes));
        assert_ne!(one, digest(&a, "n", &changes[..1]));
        assert_ne!(one, digest(&a, "n", &[change(ChangeKind::Change, "x"), changes[1].clone()]));
    }

    #[test]
    fn what_is_desired_is_laid_over_what_is_there() {
        let live = json!({"a": {"b": 1, "c": 2}, "d": [1, 2]});
        assert_eq!(laid_over(&live, &json!({"a": {"b": 3}, "d": [4]})), json!({"a": {"b": 3, "c": 2}, "d": [4]}));
    }
}
