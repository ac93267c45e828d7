//! The checks before a rollout writes, including dry runs.

use chandler_crd_upgrade::Upgrade;
use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        crd::redefined_kinds,
        desired::Desired,
        dry_run::{can_be_dry_run, conflict, refused, verb},
        error::{ObjectFailure, RolloutError, object_failure},
        owner::Owner,
        refusals::{OnRefusal, Refusals},
        report::Conflict,
        situation::{Action, Situation},
    },
    read::{
        checks::Checks, creation::CreateAnswer, dry_run::dry_run_write, immutable::refusal_of_update,
        permissions::Reviewed,
    },
    write::apply::claim_fields,
};

/// Results of checks that passed.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Unsafe changes of CRDs that the configuration allows.
    pub(crate) warnings: Vec<String>,
    /// Fields that the apply takes over from other field managers that apply them, too.
    pub(crate) conflicts: Vec<Conflict>,
    /// What the permissions of the account were reviewed for.
    pub(crate) reviewed: Reviewed,
}

/// Runs all checks before a rollout writes. With `created`, the answers to dry runs that were made already, every object is
/// checked by a dry run, and the field managers of `live` are prepared for the apply.
#[tracing::instrument(target = "chandler::trace", name = "preflights", skip_all)]
pub(crate) async fn before_writing(
    checks: &Checks<'_>,
    live: &mut [Option<Value>],
    created: Option<&[Option<CreateAnswer>]>,
) -> Result<Passed, RolloutError> {
    let (upgrades, reviewed) = checks.run(live, &mut Refusals::new(OnRefusal::Stop)).await?;
    let warnings = upgrades.iter().flat_map(Upgrade::warnings).collect();
    let conflicts = match created {
        Some(created) if checks.writes() => {
            dry_run(checks.actor, checks.owner, checks.desired, checks.situations, live, created).await?
        }
        _ => Vec::new(),
    };
    Ok(Passed { warnings, conflicts, reviewed })
}

/// Checks every object that will be created or updated by a dry run, so that an invalid field or the change of an immutable one
/// is found while the old release is still complete.
///
/// Also returns the fields that the apply takes over from other field managers.
///
/// Only errors about invalid objects count. Any other error may be caused by the dry run itself: by a namespace or a service
/// account that the release creates, or by a webhook that does not support dry runs.
pub(crate) async fn dry_run(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
    live: &mut [Option<Value>],
    created: &[Option<CreateAnswer>],
) -> Result<Vec<Conflict>, RolloutError> {
    let redefined = redefined_kinds(desired, situations);
    let checks =
        desired.iter().zip(situations).zip(live).enumerate().filter_map(|(index, ((desired, situation), live))| {
            let action = situation.action();
            let answer = created.get(index).and_then(Option::as_ref).filter(|_| action == Action::Create);
            (can_be_dry_run(desired, &redefined) && matches!(action, Action::Create | Action::Update | Action::Adopt))
                .then(|| check(cluster, owner, desired, action, live, answer).boxed())
        });
    let (mut conflicts, mut failures) = (Vec::new(), Vec::new());
    for result in all(checks.collect()).await {
        match result {
            Ok(conflict) => conflicts.extend(conflict),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(conflicts) } else { Err(RolloutError::Objects(failures)) }
}

async fn check(
    cluster: &Cluster,
    owner: &Owner,
    desired: &Desired,
    action: Action,
    live: &mut Option<Value>,
    answer: Option<&CreateAnswer>,
) -> Result<Option<Conflict>, ObjectFailure> {
    if let Some(answer) = answer {
        return answer.as_ref().err().and_then(|error| refused(desired, action, error)).map_or(Ok(None), Err);
    }
    // Otherwise a field that the release dropped would remain in the dry run.
    if let (Some(object), Action::Update) = (live.as_mut(), action) {
        let claimed = claim_fields(cluster, desired, object).await;
        if let Some(claimed) = claimed.map_err(object_failure(&desired.key, verb(action)))? {
            *object = claimed;
        }
    }
    match dry_run_write(cluster, desired, action, live.as_ref()).await {
        Ok(applied) => Ok(live.as_ref().and_then(|live| conflict(desired, live, &applied))),
        Err(refusal) => {
            let failure = match live {
                Some(live) => refusal_of_update(cluster, owner, desired, action, live, &refusal).await,
                None => refused(desired, action, &refusal.error),
            };
            failure.map_or(Ok(None), Err)
        }
    }
}
