//! What a rollout would change, told before it does.
//!
//! Both sides of a comparison come from the API server: an object as it is, and as a dry run says it would become. What
//! defaults and webhooks add is on both sides, so it does not show.

use std::fmt;

use chandler_core::{Digest, ObjectKey};
use futures::FutureExt as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    concurrent::all,
    deletion_plan::{self, DeletionPlan},
    desired::Desired,
    error::{ObjectFailure, Problem, RolloutError, list},
    fields::{self, FieldChange},
    managed_fields,
    plan::{Action, Situation},
    preflight::{can_be_dry_run, redefined_kinds, refused, rehearse},
    snapshot::Member,
};

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
    Release,
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
            Self::Release => "release",
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

/// What the release would change, by what is in the cluster and what the API server says in dry runs.
pub(crate) async fn preview(
    cluster: &Cluster,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
    unwanted: &DeletionPlan<Member>,
) -> Result<Preview, RolloutError> {
    let redefined = redefined_kinds(desired, situations);
    let objects = desired.iter().zip(situations).zip(live);
    let requests = objects.map(|((desired, situation), live)| {
        let askable = can_be_dry_run(desired, &redefined);
        of_object(cluster, desired, situation, live.as_ref(), askable).boxed()
    });
    let (mut changes, mut failures) = (Vec::new(), Vec::new());
    for (change, failure) in all(requests.collect()).await.into_iter().flatten() {
        changes.push(change);
        failures.extend(failure);
    }
    let unchanged = desired.len().saturating_sub(changes.len());
    let gone =
        |kind| move |member: &Member| Change { kind, object: member.key.clone(), fields: Vec::new(), note: None };
    changes.extend(unwanted.deleted().map(gone(ChangeKind::Remove)));
    changes.extend(unwanted.release.iter().map(gone(ChangeKind::Release)));
    let findings = unwanted.stay.iter().map(|member| deletion_plan::kept(&member.key)).collect();
    let mut refusals = Vec::new();
    if !failures.is_empty() {
        refusals.push(RolloutError::Objects(failures).to_string());
    }
    refusals.extend(terminating(desired, situations));
    Ok(Preview { changes, unchanged, refusals, findings })
}

/// What a rollout would wait for before it writes these objects.
fn terminating(desired: &[Desired], situations: &[Situation]) -> Option<String> {
    let objects = desired.iter().zip(situations).filter(|(_, situation)| **situation == Situation::Terminating);
    let objects: Vec<&ObjectKey> = objects.map(|(desired, _)| &desired.key).collect();
    let line = |object: &&ObjectKey| format!("{object} is being deleted: the rollout would wait until it is gone");
    (!objects.is_empty()).then(|| list(&objects, line))
}

/// What would be done to an object, and for what the API server would refuse it.
async fn of_object(
    cluster: &Cluster,
    desired: &Desired,
    situation: &Situation,
    live: Option<&Value>,
    askable: bool,
) -> Option<(Change, Option<ObjectFailure>)> {
    let action = situation.action();
    let kind = match action {
        // What is being deleted comes back.
        Action::Create | Action::Wait => ChangeKind::Create,
        Action::Adopt => ChangeKind::Adopt,
        Action::Update => ChangeKind::Change,
        Action::Recover => ChangeKind::Repair,
        Action::Refuse => ChangeKind::Refuse,
        Action::Keep => return None,
    };
    let mut change = Change { kind, object: desired.key.clone(), fields: Vec::new(), note: None };
    let mut failure = None;
    match (situation, live) {
        (Situation::Foreign(existing_owner), _) => change.note = Some(format!("it exists and {existing_owner}")),
        (Situation::Terminating, _) => change.note = Some("it is being deleted, and comes back".to_owned()),
        (_, Some(live)) => {
            let (fields, problem) = compare(cluster, desired, action, live, askable).await;
            change.fields = fields;
            if let Some(Problem::Invalid(_)) = &problem
                && !may_be_valid(cluster, desired, live).await
            {
                failure = problem.as_ref().and_then(|problem| refused(desired, action, problem));
            }
            change.note = problem.map(|problem| problem.to_string());
            if let Situation::Adoptable(existing_owner) = situation {
                change.note = Some(
                    change.note.map_or_else(|| existing_owner.to_string(), |note| format!("{existing_owner}; {note}")),
                );
            }
        }
        (_, None) if askable => {
            if let Err(problem) = rehearse(cluster, desired, action, None).await {
                failure = refused(desired, action, &problem);
                change.note = failure.as_ref().map(|failure| failure.problem.to_string());
            }
        }
        (_, None) => {}
    }
    Some((change, failure))
}

/// How an object of somebody else would differ, as the API server says or else as far as it can be told, and why it does not say
/// so.
pub(crate) async fn difference(
    cluster: &Cluster,
    desired: &Desired,
    live: &Value,
    askable: bool,
) -> (Vec<FieldChange>, Option<String>) {
    let (fields, problem) = compare(cluster, desired, Action::Adopt, live, askable).await;
    (fields, problem.map(|problem| problem.to_string()))
}

async fn compare(
    cluster: &Cluster,
    desired: &Desired,
    action: Action,
    live: &Value,
    askable: bool,
) -> (Vec<FieldChange>, Option<Problem>) {
    let problem = if askable {
        match rehearse(cluster, desired, action, Some(live)).await {
            Ok(applied) => return (fields::changes(&desired.key, live, &applied), None),
            Err(problem) => problem,
        }
    } else {
        Problem::Refused("the release changes the CRD of its kind, so that no dry run could be made".to_owned())
    };
    (fields::changes(&desired.key, live, &laid_over(live, &desired.value)), Some(problem))
}

/// Whether what the API server calls invalid may be valid in the rollout. What was created and never applied keeps, in a dry run,
/// the fields that the release dropped, such as the other one of two that exclude each other; a rollout first prepares the
/// field managers, which a preview may not write. Whether the object alone is valid tells then.
async fn may_be_valid(cluster: &Cluster, desired: &Desired, live: &Value) -> bool {
    managed_fields::upgrade(live).is_some()
        && !matches!(cluster.replace(desired, live, true).await, Err(Problem::Invalid(_)))
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
