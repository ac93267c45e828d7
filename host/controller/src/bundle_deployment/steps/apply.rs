//! Apply: preflight checks, stages and pruning, by the rollout engine.

use chandler_api::BundleDeployment;
use chandler_certificates::completion::Completed;
use chandler_decisions::gates;
use chandler_rollout::{Changes, Drift, DriftOptions, Owner, Progress, RolloutError, RolloutRequest};

use super::super::handles::RolloutHandles;

/// The objects of a release could not be applied.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ApplyError(#[from] pub(crate) RolloutError);

/// The result of applying a release.
pub(super) struct Applied {
    pub(super) progress: Progress,
    /// Why objects that were set aside could not be written.
    pub(super) refused: Option<ApplyError>,
}

/// How often one reconcile sets objects aside.
const ASIDE: usize = 8;

/// Applies a release, and watches its objects from now on.
///
/// If an object of a complete release cannot be written, the other objects are still repaired: it is set aside, and the first refusal is
/// returned with the changes that were made.
pub(super) async fn apply(
    handles: &RolloutHandles<'_>,
    deployment: &BundleDeployment,
    owner: &Owner,
    completed: &Completed,
    drift_options: &mut DriftOptions,
    seen: &[Drift],
) -> Result<Applied, ApplyError> {
    let applied = set_aside(handles, deployment, owner, completed, drift_options, seen).await;
    // Also after a failure: the objects that were applied before it must be watched.
    handles.rollout.watch(owner, &completed.release).await;
    applied
}

async fn set_aside(
    handles: &RolloutHandles<'_>,
    deployment: &BundleDeployment,
    owner: &Owner,
    completed: &Completed,
    drift_options: &mut DriftOptions,
    seen: &[Drift],
) -> Result<Applied, ApplyError> {
    let (rules, release) = (gates::rules(deployment), completed.release.as_ref());
    let mut refused: Option<RolloutError> = None;
    for _ in 0..ASIDE {
        let request = RolloutRequest::new(owner, release).rules(&rules).drift(drift_options.clone());
        let error = match handles.rollout.advance(&request).await {
            Err(error) if drift_options.complete => error,
            progress => return Ok(Applied { progress: progress?, refused: refused.map(ApplyError) }),
        };
        let before = drift_options.skipped.len();
        let concerned = seen.iter().map(|drift| &drift.object).filter(|object| error.concerns(object));
        drift_options.skipped.extend(concerned.cloned());
        let first = refused.take().unwrap_or(error);
        if drift_options.skipped.len() == before {
            return Err(ApplyError(first));
        }
        refused = Some(first);
    }
    let request = RolloutRequest::new(owner, release).rules(&rules).drift(drift_options.clone());
    let progress = handles.rollout.advance(&request).await?;
    Ok(Applied { progress, refused: refused.map(ApplyError) })
}

/// Logs the names of objects only: their content may be secret.
pub(super) fn log(owner: &Owner, changes: &Changes) {
    if !changes.is_empty() {
        tracing::info!(
            deployment = %owner.name,
            created = changes.created.len(),
            adopted = changes.adopted.len(),
            updated = changes.updated.len(),
            recreated = changes.recreated.len(),
            recovered = changes.recovered.len(),
            pruned = changes.pruned.len(),
            orphaned = changes.orphaned.len(),
            "applied"
        );
    }
}
