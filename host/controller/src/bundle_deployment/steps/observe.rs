//! Observe: which objects of a complete release the cluster has. Nothing is written.

use chandler_api::BundleDeployment;
use chandler_certificates::completion::Completed;
use chandler_decisions::gates;
use chandler_rollout::{DriftPolicy, Observation, Owner, RolloutError, RolloutRequest};

use super::super::handles::RolloutHandles;

/// The objects of a release could not be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ObserveError(#[from] pub(crate) RolloutError);

/// Compares the objects of a release with the cluster, and watches them from now on.
pub(super) async fn observe(
    handles: &RolloutHandles<'_>,
    deployment: &BundleDeployment,
    owner: &Owner,
    completed: &Completed,
    drift: DriftPolicy,
) -> Result<Observation, ObserveError> {
    let rules = gates::rules(deployment);
    let request = RolloutRequest::new(owner, &completed.release).rules(&rules).drift(drift);
    let observed = handles.rollout.observe(&request).await?;
    handles.rollout.watch(owner, &completed.release).await;
    Ok(observed)
}
