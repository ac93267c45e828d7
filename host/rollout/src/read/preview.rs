//! Previews a rollout.
//!
//! Both sides of a comparison come from the API server: the live object and the result of a dry run. Defaults and changes by
//! webhooks are on both sides, so they do not show.

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        crd::redefined_kinds,
        deletion_plan::{self, DeletionPlan},
        desired::Desired,
        dry_run::{can_be_dry_run, refused},
        error::{ApiError, ApplyError, ObjectFailure, RolloutError},
        fields::{self, FieldChange},
        immutable, managed_fields,
        member::Member,
        owner::Owner,
        preview::{Change, ChangeKind, Preview, overlaid, terminating},
        situation::{Action, Situation},
    },
    read::{
        dry_run::dry_run_write,
        immutable::{is_immutable, refusal_of_update},
    },
};

/// What the release would change, according to the cluster and to dry runs.
pub(crate) async fn preview(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
    unwanted: &DeletionPlan<Member>,
) -> Result<Preview, RolloutError> {
    let redefined = redefined_kinds(desired, situations);
    let objects = desired.iter().zip(situations).zip(live);
    let requests = objects.map(|((desired, situation), live)| {
        let askable = can_be_dry_run(desired, &redefined);
        of_object(cluster, owner, desired, situation, live.as_ref(), askable).boxed()
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
    changes.extend(unwanted.orphan.iter().map(gone(ChangeKind::Orphan)));
    let findings = unwanted.keep.iter().map(|member| deletion_plan::kept(&member.key)).collect();
    let mut refusals = Vec::new();
    if !failures.is_empty() {
        refusals.push(RolloutError::Objects(failures).to_string());
    }
    refusals.extend(terminating(desired, situations));
    Ok(Preview { changes, unchanged, refusals, findings, crd_upgrades: Vec::new() })
}

/// What a rollout would do with an object, and the failure that the API server predicts.
async fn of_object(
    cluster: &Cluster,
    owner: &Owner,
    desired: &Desired,
    situation: &Situation,
    live: Option<&Value>,
    askable: bool,
) -> Option<(Change, Option<ObjectFailure>)> {
    let action = situation.action();
    let kind = match action {
        // A terminating object will be created again.
        Action::Create | Action::Wait => ChangeKind::Create,
        Action::Adopt => ChangeKind::Adopt,
        Action::Update => ChangeKind::Change,
        Action::Recreate => ChangeKind::Recreate,
        Action::Recover => ChangeKind::Repair,
        Action::Refuse => ChangeKind::Refuse,
        Action::Keep => return None,
    };
    let mut change = Change { kind, object: desired.key.clone(), fields: Vec::new(), note: None };
    let mut failure = None;
    match (situation, live) {
        (Situation::Foreign(existing_owner), _) => change.note = Some(format!("it exists and {existing_owner}")),
        (Situation::Terminating, _) => change.note = Some("it is being deleted and will be created again".to_owned()),
        (_, Some(live)) => {
            let (fields, error) = compare(cluster, desired, action, live, askable).await;
            change.fields = fields;
            change.note = error.as_ref().map(|refusal| refusal.error.to_string());
            let invalid = error.as_ref().filter(|refusal| matches!(refusal.error, ApiError::Invalid(_)));
            if let Some(refusal) = invalid.filter(|_| action == Action::Update)
                && owner.on_immutable.recreates(desired, live)
                && is_immutable(cluster, desired, refusal).await
            {
                change.kind = ChangeKind::Recreate;
                change.note = Some(immutable::note(&desired.key, live));
            } else if let Some(refusal) = invalid
                && !may_be_valid(cluster, desired, live).await
            {
                failure = refusal_of_update(cluster, owner, desired, action, live, refusal).await;
            } else if !askable && action == Action::Update && owner.on_immutable.recreates(desired, live) {
                let lost = immutable::lost(&desired.key, live);
                let note = change.note.take().unwrap_or_default();
                change.note =
                    Some(format!("{note}; if an immutable field changes, it is deleted and created again: {lost}"));
            }
            if let Situation::Adoptable(existing_owner) = situation {
                change.note = Some(
                    change.note.map_or_else(|| existing_owner.to_string(), |note| format!("{existing_owner}; {note}")),
                );
            }
        }
        (_, None) if askable => {
            if let Err(refusal) = dry_run_write(cluster, desired, action, None).await {
                failure = refused(desired, action, &refusal.error);
                change.note = failure.as_ref().map(|failure| failure.error.to_string());
            }
        }
        (_, None) => {}
    }
    Some((change, failure))
}

/// The fields of another owner's object that would change, by a dry run or else as far as known, and why no dry run was
/// possible.
pub(crate) async fn difference(
    cluster: &Cluster,
    desired: &Desired,
    live: &Value,
    askable: bool,
) -> (Vec<FieldChange>, Option<String>) {
    let (fields, error) = compare(cluster, desired, Action::Adopt, live, askable).await;
    (fields, error.map(|refusal| refusal.error.to_string()))
}

async fn compare(
    cluster: &Cluster,
    desired: &Desired,
    action: Action,
    live: &Value,
    askable: bool,
) -> (Vec<FieldChange>, Option<ApplyError>) {
    let error = if askable {
        match dry_run_write(cluster, desired, action, Some(live)).await {
            Ok(applied) => return (fields::changes(&desired.key, live, &applied), None),
            Err(error) => error,
        }
    } else {
        ApiError::Refused("no dry run is possible because the release changes the CRD of its kind".to_owned()).into()
    };
    (fields::changes(&desired.key, live, &overlaid(live, &desired.value)), Some(error))
}

/// Whether an object that the dry run finds invalid may be valid in the rollout. For an object that was created and never
/// applied, the dry run keeps fields that the release dropped, such as one of two fields that exclude each other. A rollout
/// first prepares the field managers, which a preview may not write. In this case the object alone is validated.
async fn may_be_valid(cluster: &Cluster, desired: &Desired, live: &Value) -> bool {
    managed_fields::upgrade(live).is_some()
        && !matches!(cluster.replace(desired, live, true).await, Err(ApiError::Invalid(_)))
}
