//! Restored: a BundleDeployment that was restored from a backup waits until its objects are, too, so that none is created instead of being
//! restored.

use chandler_api::BundleDeployment;
use chandler_decisions::{
    assessment::{Assessment, ReconcileOutcome},
    problem::Problem,
    restored::{self, Awaited},
};
use chandler_permissions::AccountPolicy;
use chandler_records::Records;
use chandler_rollout::Rollout;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, ResourceExt as _};

use super::super::subject::Subject;

/// What the wait uses.
pub(in super::super) struct RestoredHandles<'a> {
    pub(in super::super) client: &'a Client,
    pub(in super::super) records: &'a Records,
    pub(in super::super) rollout: &'a Rollout,
    pub(in super::super) accounts: &'a AccountPolicy,
    /// How long a restored BundleDeployment waits.
    pub(in super::super) longest: std::time::Duration,
}

/// Whether the record of a BundleDeployment, if there is none, may still be restored, so that none is created instead. It is then looked for
/// again. Only for such a BundleDeployment this is a request.
pub(in super::super) async fn awaits_record(handles: &RestoredHandles<'_>, deployment: &BundleDeployment) -> bool {
    if !restored::lacks_record(deployment) || until(handles, deployment).is_none() {
        return false;
    }
    let api: Api<BundleDeployment> = Api::all(handles.client.clone());
    let name = deployment.name_any();
    // The objects of the watch have no managed fields.
    let live = api.get_metadata_opt(&name).await;
    let awaits = !matches!(live, Ok(Some(live)) if restored::was_written_since(&live.metadata));
    if awaits {
        handles.records.expect(&name);
    }
    awaits
}

fn until(handles: &RestoredHandles<'_>, deployment: &BundleDeployment) -> Option<Timestamp> {
    restored::waits_until(deployment, handles.longest, Timestamp::now())
}

/// What a reconcile reports that waits for the rest of a backup, or `None` if nothing was restored or everything was.
pub(in super::super) async fn wait(
    handles: &RestoredHandles<'_>,
    subject: &Subject,
    awaits_record: bool,
) -> Option<Assessment> {
    let is_restored = subject.record.state().holdings.restored().next().is_some();
    let lacks_record = awaits_record && !subject.record.is_stored();
    if !is_restored && !lacks_record {
        return None;
    }
    let until = until(handles, &subject.deployment)?;
    let awaited = if lacks_record { Awaited::Record } else { awaited(handles, subject).await? };
    let message = restored::message(&subject.name(), &awaited, until);
    let problem = Problem::transient(chandler_api::Reason::RestoreIncomplete, message);
    Some(Assessment::early(ReconcileOutcome::RestoreIncomplete(problem)))
}

async fn awaited(handles: &RestoredHandles<'_>, subject: &Subject) -> Option<Awaited> {
    let owner = subject.owner_at_deletion(handles.accounts).ok()?;
    match handles.rollout.not_restored(&owner).await {
        Ok(missing) if missing.is_empty() => None,
        Ok(missing) => Some(Awaited::Objects(missing)),
        // The account, its roles and their bindings are restored, too.
        Err(error) => Some(Awaited::Permissions(error.to_string())),
    }
}
