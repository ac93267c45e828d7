//! Observe: what the cluster holds of a complete release. Nothing is written.

use chandler_api::BundleDeployment;
use chandler_rollout::{DriftPolicy, Observation, Owner, RolloutError, RolloutRequest};

use super::super::{decide::gates, handles::RolloutHandles};
use crate::certificates::Completed;

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
    watch(handles, owner, completed);
    Ok(observed)
}

/// Watches the kinds of a release: on behalf of its ServiceAccount where it has one, so that the controller needs no right to read
/// them.
pub(super) fn watch(handles: &RolloutHandles<'_>, owner: &Owner, completed: &Completed) {
    if let Some(account) = &owner.account {
        let places = handles.rollout.managed_places(owner, &completed.release);
        handles.watches.ensure_on_behalf(&owner.name, account, places);
    } else {
        handles.watches.forget(&owner.name);
        handles.watches.ensure(handles.rollout.managed_kinds(&completed.release));
    }
}
