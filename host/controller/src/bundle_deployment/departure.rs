//! Whether a BundleDeployment may go, and what becomes of its objects then.

use std::sync::Arc;

use chandler_api::{
    BundleDeployment, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, TEARDOWN_FINALIZER},
};
use chandler_records::{Book, Subject};
use chandler_rollout::{Owner, Teardown, deletion_plan::held};
use chandler_runtime::finalizers;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt as _, runtime::controller::Action};

use super::{
    ReconcileError,
    assessment::{Assessment, Reached},
    decide::is_held,
    owner::owner_at_deletion,
    report,
    rolling::told,
    status,
};
use crate::{context::Context, problem::Problem};

/// Puts our finalizer on before anything is created, the record included: it goes with the finalizer.
pub(super) async fn hold(deployment: &BundleDeployment, context: &Context) -> Result<(), ReconcileError> {
    if is_held(deployment) {
        return Ok(());
    }
    let mut finalizers = deployment.finalizers().to_vec();
    finalizers.push(TEARDOWN_FINALIZER.to_owned());
    write_finalizers(deployment, &finalizers, context).await
}

/// The record of a BundleDeployment, which is made for one that is to be installed. What keeps it from being read or written is
/// said in the status, too.
pub(super) async fn book(
    deployment: &BundleDeployment,
    installs: bool,
    context: &Context,
) -> Result<Arc<Book>, ReconcileError> {
    let (name, uid) = (deployment.name_any(), deployment.uid().unwrap_or_default());
    // The record follows our finalizer, and revisions follow the record: what has both had one, which was lost.
    let is_known = is_held(deployment) && deployment.status.as_ref().is_some_and(|status| !status.history.is_empty());
    let opened = context.records.open(Subject { name: &name, uid: &uid, is_known, installs }).await;
    match opened {
        Ok(book) => Ok(book),
        Err(error) => {
            let found = Assessment::early(Reached::Unrecorded(Problem::from(&error)));
            if !error.is_transient() || context.backoff.failures(&name) >= super::HICCUPS {
                let status = status::derive(deployment, &found, Timestamp::now());
                report::write(deployment, deployment.status.as_ref(), &status, context).await?;
            }
            Err(error.into())
        }
    }
}

/// The owner of the objects, with the record of them.
fn owner(subject: &super::Subject, context: &Context) -> Result<Owner, Problem> {
    let owner = owner_at_deletion(&subject.deployment, &context.options.accounts)?;
    Ok(owner.recorded_in(Arc::<Book>::clone(&subject.book)))
}

/// Deletes or releases the objects of the release; none once that is done and the BundleDeployment may go too.
pub(super) async fn tear_down(
    subject: &super::Subject,
    context: &Context,
) -> Result<Option<Assessment>, ReconcileError> {
    let deployment = &subject.deployment;
    let torn_down = match owner(subject, context) {
        Ok(owner) => context.rollout.teardown(&owner).await.map_err(|error| Problem::from(&error)),
        Err(problem) => Err(problem),
    };
    let name = deployment.name_any();
    let reached = match torn_down {
        Ok(Teardown::Complete { deleted, orphaned }) => {
            tracing::info!(deployment = %name, deleted = deleted.len(), orphaned = orphaned.len(), "torn down");
            return Ok(None);
        }
        Ok(Teardown::Waiting { waiting, .. }) => Reached::Deleting(waiting.iter().map(told).collect()),
        Ok(Teardown::Held { in_use }) => {
            Reached::NotDeleted(Problem::passing(Reason::CustomResourcesExist, held(&in_use)))
        }
        Err(problem) => Reached::NotDeleted(with_way_out(&name, problem)),
    };
    Ok(Some(Assessment::early(reached)))
}

/// A problem of a deletion, with what helps where somebody lacks rights and nobody can give them.
fn with_way_out(name: &str, problem: Problem) -> Problem {
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

/// What became of the objects of a BundleDeployment that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// They were deleted, or left behind one by one.
    Gone,
    /// All of them stay where they are.
    Stay,
}

/// Ends the record, forgets the BundleDeployment and takes our finalizers off, so that it may go.
pub(super) async fn let_go(
    subject: &super::Subject,
    objects: Objects,
    context: &Context,
) -> Result<Action, ReconcileError> {
    let deployment = &subject.deployment;
    let name = deployment.name_any();
    if objects == Objects::Stay {
        let_go_of_objects(subject, context).await;
        subject.book.leave_all().await?;
    }
    context.records.close(&name, &subject.book).await?;
    context.memory.forget(&name);
    context.watches.forget(&name);
    context.generations.forget(&name);
    context.backoff.succeeded(&name);
    let ours = [TEARDOWN_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
    let kept = deployment.finalizers().iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    write_finalizers(deployment, &kept.cloned().collect::<Vec<_>>(), context).await?;
    Ok(Action::await_change())
}

/// Takes our reference off the objects, as far as that is allowed: `--cascade=orphan` is the way out for who lacks rights, too.
async fn let_go_of_objects(subject: &super::Subject, context: &Context) {
    let deployment = &subject.deployment;
    let let_go = async {
        let owner = owner(subject, context)?;
        context.rollout.remove_owner_references(&owner).await.map_err(|error| Problem::from(&error))
    };
    if let Err(problem) = let_go.await {
        let message = &problem.message;
        tracing::warn!(deployment = %deployment.name_any(), message, "left the references to the garbage collector");
    }
}

async fn write_finalizers(
    deployment: &BundleDeployment,
    finalizers: &[String],
    context: &Context,
) -> Result<(), ReconcileError> {
    let written = finalizers::write(&Api::all(context.client.clone()), deployment, finalizers).await;
    written.map_err(|source| ReconcileError::Write { what: "finalizers", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_rights_is_told_how_to_go_without_them() {
        let message = |reason| with_way_out("harbour", Problem::passing(reason, "no")).message;
        assert_eq!(
            message(Reason::ServiceAccountNotFound),
            "no; or leave the objects where they are: kubectl delete bundledeployment harbour --cascade=orphan"
        );
        assert_eq!(message(Reason::ObjectRefused), "no");
    }
}
