//! Whether a BundleDeployment may go, and what becomes of its objects then.

use chandler_api::{
    BundleDeployment, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, TEARDOWN_FINALIZER},
};
use chandler_rollout::{Teardown, disposal::held};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    ReconcileError,
    assessment::{Assessment, Reached},
    owner::owner_at_deletion,
    told,
};
use crate::{context::Context, problem::Problem};

/// Puts our finalizer on before anything is created.
pub(super) async fn hold(deployment: &BundleDeployment, context: &Context) -> Result<(), ReconcileError> {
    if deployment.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER) {
        return Ok(());
    }
    let mut finalizers = deployment.finalizers().to_vec();
    finalizers.push(TEARDOWN_FINALIZER.to_owned());
    write_finalizers(deployment, &finalizers, context).await
}

/// Deletes or releases the objects of the release; none once that is done and the BundleDeployment may go too.
pub(super) async fn tear_down(
    deployment: &BundleDeployment,
    context: &Context,
) -> Result<Option<Assessment>, ReconcileError> {
    let torn_down = match owner_at_deletion(deployment, &context.options.accounts) {
        Ok(owner) => context.rollout.teardown(&owner).await.map_err(|error| Problem::from(&error)),
        Err(problem) => Err(problem),
    };
    let name = deployment.name_any();
    let reached = match torn_down {
        Ok(Teardown::Complete { deleted, released }) => {
            tracing::info!(deployment = %name, deleted = deleted.len(), released = released.len(), "torn down");
            let_go(deployment, context).await?;
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

/// Forgets a BundleDeployment and takes our finalizers off, so that it may go.
pub(super) async fn let_go(deployment: &BundleDeployment, context: &Context) -> Result<(), ReconcileError> {
    let name = deployment.name_any();
    context.memory.forget(&name);
    context.watches.forget(&name);
    context.generations.forget(&name);
    context.backoff.succeeded(&name);
    let ours = [TEARDOWN_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
    let kept = deployment.finalizers().iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    write_finalizers(deployment, &kept.cloned().collect::<Vec<_>>(), context).await
}

/// Writes the finalizers, unless the object changed meanwhile: the list is replaced whole.
async fn write_finalizers(
    deployment: &BundleDeployment,
    finalizers: &[String],
    context: &Context,
) -> Result<(), ReconcileError> {
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": deployment.resource_version()}});
    let written = api.patch(&deployment.name_any(), &PatchParams::apply("chandler"), &Patch::Merge(patch)).await;
    written.map(drop).map_err(|source| ReconcileError::Write { what: "finalizers", source })
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
