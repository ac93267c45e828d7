//! Finalize: adds and removes the finalizers of a BundleDeployment, opens its record, and deletes or orphans its objects.

use std::sync::Arc;

use chandler_api::{
    BundleDeployment, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, TEARDOWN_FINALIZER},
};
use chandler_decisions::{
    account,
    assessment::{Assessment, ReconcileOutcome},
    intent::has_finalizer,
    problem::Problem,
    spec_error::SpecError,
};
use chandler_informers::Informers;
use chandler_permissions::AccountPolicy;
use chandler_records::{Record, Records, Subject as RecordSubject};
use chandler_rollout::{Rollout, RolloutError, Teardown, deletion_plan::held};
use chandler_runtime::{Backoff, GenerationTracker, OwnWrites, finalizers};
use kube::{Api, Client, ResourceExt as _, runtime::controller::Action};

use super::{
    super::{ReconcileError, subject::Subject},
    prepare::Preparations,
    rollout::line,
};
use crate::memory::Memory;

/// What opening the record and finalizing a BundleDeployment use.
pub(in super::super) struct FinalizeHandles<'a> {
    pub(in super::super) client: &'a Client,
    pub(in super::super) own_writes: &'a OwnWrites<BundleDeployment>,
    pub(in super::super) rollout: &'a Rollout,
    pub(in super::super) records: &'a Records,
    pub(in super::super) accounts: &'a AccountPolicy,
    pub(in super::super) memory: &'a Memory,
    pub(in super::super) preparations: &'a Preparations,
    pub(in super::super) informers: &'a Informers,
    pub(in super::super) generations: &'a GenerationTracker,
    pub(in super::super) backoff: &'a Backoff,
}

impl FinalizeHandles<'_> {
    /// Forgets what is known of a BundleDeployment between reconciles.
    pub(in super::super) fn forget(&self, name: &str) {
        self.memory.forget(name);
        self.preparations.end(name);
        self.informers.forget(name);
    }
}

/// The objects of a release could not be deleted or orphaned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FinalizeError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Rollout(#[from] RolloutError),
}

/// The record of a BundleDeployment, which is created for a BundleDeployment that the controller will install.
///
/// Our finalizer is written before the record, which is deleted with it, and before anything else is created: the first rollout adds both.
/// A BundleDeployment with a record and without a finalizer has lost its finalizer, and gets it back here.
pub(in super::super) async fn open_record(
    handles: &FinalizeHandles<'_>,
    deployment: &BundleDeployment,
    installs: bool,
) -> Result<Arc<Record>, ReconcileError> {
    let (name, uid) = (deployment.name_any(), deployment.uid().unwrap_or_default());
    let is_held = has_finalizer(deployment);
    // Revisions follow the record: an object that has both a finalizer and revisions had a record, which was lost.
    let is_known = is_held && deployment.status.as_ref().is_some_and(|status| !status.history.is_empty());
    let account = account::recorded(deployment, handles.accounts);
    let subject = RecordSubject { name: &name, uid: &uid, account: account.as_deref(), is_known, installs, is_held };
    let record = handles.records.open(subject).await?;
    if installs && !is_held && record.is_stored() {
        let mut finalizers = deployment.finalizers().to_vec();
        finalizers.push(TEARDOWN_FINALIZER.to_owned());
        let written = write_finalizers(handles, deployment, &finalizers).await?;
        handles.own_writes.finalizers(written);
    }
    Ok(record)
}

/// Deletes or orphans the objects of the release. `None` once that is done and the finalizers can be removed.
pub(in super::super) async fn tear_down(handles: &FinalizeHandles<'_>, subject: &Subject) -> Option<Assessment> {
    let torn_down: Result<Teardown, FinalizeError> = async {
        let owner = subject.owner_at_deletion(handles.accounts)?;
        Ok(handles.rollout.teardown(&owner).await?)
    }
    .await;
    let name = subject.name();
    let outcome = match torn_down {
        Ok(Teardown::Complete { deleted, orphaned }) => {
            tracing::info!(deployment = %name, deleted = deleted.len(), orphaned = orphaned.len(), "torn down");
            return None;
        }
        Ok(Teardown::Waiting { waiting, .. }) => ReconcileOutcome::Deleting(waiting.iter().map(line).collect()),
        Ok(Teardown::Held { in_use }) => {
            ReconcileOutcome::DeletionFailed(Problem::transient(Reason::CustomResourcesExist, held(&in_use)))
        }
        Err(error) => ReconcileOutcome::DeletionFailed(with_orphaning(&name, Problem::from(&error))),
    };
    Some(Assessment::early(outcome))
}

/// The problem of a deletion. If permissions are missing, the message names the kind of deletion that needs none.
fn with_orphaning(name: &str, problem: Problem) -> Problem {
    let is_about_rights =
        matches!(problem.reason, Reason::ServiceAccountNotFound | Reason::PermissionsMissing | Reason::Forbidden);
    if !is_about_rights {
        return problem;
    }
    let message = format!(
        "{}; or leave the objects where they are: kubectl delete bundledeployment {name} --cascade=orphan",
        problem.message
    );
    Problem { message, ..problem }
}

/// The result for the objects of a BundleDeployment that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Objects {
    /// They were deleted, or orphaned one by one.
    Deleted,
    /// All of them stay.
    Orphaned,
}

/// Closes the record, forgets the BundleDeployment and removes our finalizers, so that the API server deletes it.
pub(in super::super) async fn remove_finalizer(
    handles: &FinalizeHandles<'_>,
    subject: &Subject,
    objects: Objects,
) -> Result<Action, ReconcileError> {
    let (deployment, name) = (&subject.deployment, subject.name());
    if objects == Objects::Orphaned {
        orphan_objects(handles, subject).await;
        subject.record.leave_all().await?;
    }
    handles.records.close(&name, &subject.record).await?;
    handles.forget(&name);
    handles.generations.forget(&name);
    handles.backoff.succeeded(&name);
    let ours = [TEARDOWN_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
    let kept = deployment.finalizers().iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    write_finalizers(handles, deployment, &kept.cloned().collect::<Vec<_>>()).await?;
    Ok(Action::await_change())
}

/// Removes our owner references, as far as that is allowed: `--cascade=orphan` must work without permissions, too.
async fn orphan_objects(handles: &FinalizeHandles<'_>, subject: &Subject) {
    let orphaned: Result<(), FinalizeError> = async {
        let owner = subject.owner_at_deletion(handles.accounts)?;
        Ok(handles.rollout.remove_owner_references(&owner).await.map(drop)?)
    }
    .await;
    if let Err(error) = orphaned {
        tracing::warn!(deployment = %subject.name(), %error, "the owner references are left to the garbage collector");
    }
}

async fn write_finalizers(
    handles: &FinalizeHandles<'_>,
    deployment: &BundleDeployment,
    finalizers: &[String],
) -> Result<BundleDeployment, ReconcileError> {
    let written = finalizers::write(&Api::all(handles.client.clone()), deployment, finalizers).await;
    written.map_err(ReconcileError::Finalizers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_without_rights_names_the_one_that_needs_none() {
        let message = |reason| with_orphaning("harbour", Problem::transient(reason, "no")).message;
        assert_eq!(
            message(Reason::ServiceAccountNotFound),
            "no; or leave the objects where they are: kubectl delete bundledeployment harbour --cascade=orphan"
        );
        assert_eq!(message(Reason::ObjectRefused), "no");
    }
}
