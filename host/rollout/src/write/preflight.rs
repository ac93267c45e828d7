//! What is refused before any field of any object is written.

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        crd::redefined_kinds,
        desired::Desired,
        dry_run::{can_be_dry_run, conflict, refused, verb},
        error::{ObjectFailure, RolloutError, object_failure},
        refusals::{OnRefusal, Refusals},
        report::Conflict,
        situation::{Action, Situation},
    },
    read::{checks::Checks, dry_run::dry_run_write},
    write::apply::take_over,
};

/// What checks found that stops nothing.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// CRDs that are not safe and were let through.
    pub(crate) warnings: Vec<String>,
    /// Fields that are taken over from others who apply them, too.
    pub(crate) conflicts: Vec<Conflict>,
}

/// Makes all checks before a rollout writes. `dry_run` says whether the API server is asked about every object; the field
/// managers of `live` are prepared for what is applied then.
pub(crate) async fn before_writing(
    checks: &Checks<'_>,
    live: &mut [Option<Value>],
    asks: bool,
) -> Result<Passed, RolloutError> {
    let warnings = checks.run(live, &mut Refusals::new(OnRefusal::Stop)).await?;
    let conflicts = if asks && checks.writes() {
        dry_run(checks.actor, checks.desired, checks.situations, live).await?
    } else {
        Vec::new()
    };
    Ok(Passed { warnings, conflicts })
}

/// Has the API server check every object that is to be created or updated, so that an illegal field or the change of an
/// immutable one is found while the old release is still whole.
///
/// Also tells which fields are taken over from others who apply them, too.
///
/// Only what the API server calls invalid counts. Everything else may be the fault of the dry run itself: of a namespace or a
/// service account that comes with the release, or of a webhook that does not support dry runs.
pub(crate) async fn dry_run(
    cluster: &Cluster,
    desired: &[Desired],
    situations: &[Situation],
    live: &mut [Option<Value>],
) -> Result<Vec<Conflict>, RolloutError> {
    let redefined = redefined_kinds(desired, situations);
    let checks = desired.iter().zip(situations).zip(live).filter_map(|((desired, situation), live)| {
        let action = situation.action();
        (can_be_dry_run(desired, &redefined) && matches!(action, Action::Create | Action::Update | Action::Adopt))
            .then(|| check(cluster, desired, action, live).boxed())
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
    desired: &Desired,
    action: Action,
    live: &mut Option<Value>,
) -> Result<Option<Conflict>, ObjectFailure> {
    // Without this a field that the release dropped would stay in the dry run.
    if let (Some(object), Action::Update) = (live.as_mut(), action) {
        let taken_over = take_over(cluster, desired, object).await;
        if let Some(taken_over) = taken_over.map_err(object_failure(&desired.key, verb(action)))? {
            *object = taken_over;
        }
    }
    match dry_run_write(cluster, desired, action, live.as_ref()).await {
        Ok(applied) => Ok(live.as_ref().and_then(|live| conflict(desired, live, &applied))),
        Err(error) => refused(desired, action, &error).map_or(Ok(None), Err),
    }
}
