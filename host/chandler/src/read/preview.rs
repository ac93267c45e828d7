//! Previews: what a rollout, an adoption or a deletion would do. Every request is a read or a dry run.

use std::sync::Arc;

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, ChangeApproval, ConditionType, Deletion, Reason, approved_upgrades,
    find_condition,
};
use chandler_certificates::{
    annotations::ROTATE,
    completion::{CompletionError, ReleaseOwner, complete},
};
use chandler_core::{ObjectKey, Release};
use chandler_decisions::{drift, owner::owner_of};
use chandler_permissions::Account;
use chandler_rollout::{Adoptee, DeletionPreview, Options, Owner, Preview, Rollout, RolloutError, RolloutRequest};
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use crate::{CommandError, view::permissions};

/// What rolling out a release would change. `deployment` is the BundleDeployment if it exists; `name` and `namespace` are used if it
/// does not.
pub async fn rollout(
    client: Client,
    deployment: Option<&BundleDeployment>,
    (name, namespace): (&str, &str),
    release: &Release,
) -> Result<Preview, CommandError> {
    let planned = deployment.cloned().unwrap_or_else(|| {
        let spec = BundleDeploymentSpec::default();
        unstored(&BundleDeployment::new(name, spec))
    });
    let refused = |error: RolloutError| {
        // The request is the user's, and says nothing about what the controller may do.
        let failed = if error.is_forbidden() {
            CommandError::failed(format!("failed to preview the rollout of {name}"))
        } else {
            CommandError::failed(format!("the rollout of {name} would be refused"))
        };
        failed.because(&error)
    };
    Box::pin(previewed(client, &planned, namespace, release, None)).await?.map_err(refused)
}

/// What rolling out a release would change with the permissions of the ServiceAccount in the spec, and every reason for which it would be
/// refused. Where the user may not act as the account, only the controller can find out: then the other result is the reason, and the
/// preview is with the permissions of the user.
pub async fn rollout_as_account(
    client: Client,
    deployment: &BundleDeployment,
    release: &Release,
) -> Result<(Preview, Option<String>), CommandError> {
    let namespace = deployment.spec.install_namespace.as_str();
    let account = permissions::account_of(deployment);
    let why = if account.is_some() {
        match Box::pin(previewed(client.clone(), deployment, namespace, release, account)).await? {
            Ok(preview) => return Ok((preview, None)),
            Err(error) if error.is_forbidden() => Some(error.to_string()),
            Err(error) => return Ok((Preview { refusals: vec![error.to_string()], ..Preview::default() }, None)),
        }
    } else {
        None
    };
    let name = deployment.name_any();
    Ok((rollout(client, Some(deployment), (&name, namespace), release).await?, why))
}

/// Refuses a BundleDeployment whose objects are in another cluster: this one has none of them, and may have others of their names.
fn refuse_elsewhere(deployment: &BundleDeployment) -> Result<(), CommandError> {
    if deployment.spec.kube_config.is_none() {
        return Ok(());
    }
    let name = deployment.name_any();
    Err(CommandError::failed(format!(
        "BundleDeployment {name} is installed into another cluster (spec.kubeConfig), and this command compares with the current one only"
    ))
    .hint(format!("with `spec.approval: Manual` the controller previews each change there: `chandler status {name}`")))
}

/// The preview, or why it cannot be made. The outer error is about the request itself.
async fn previewed(
    client: Client,
    planned: &BundleDeployment,
    namespace: &str,
    release: &Release,
    account: Option<Account>,
) -> Result<Result<Preview, RolloutError>, CommandError> {
    refuse_elsewhere(planned)?;
    let name = planned.name_any();
    let ignored = drift::ignored_fields(&planned.spec).map_err(|error| CommandError::failed(error.to_string()))?;
    let approvals = Api::<ChangeApproval>::all(client.clone()).list(&ListParams::default()).await;
    // Without permission to list approvals, the preview shows every refusal.
    let approved = approvals.map(|approvals| approved_upgrades(&approvals, planned)).unwrap_or_default();
    let owner = &owner(planned, namespace)?.ignoring(ignored).with_approved_upgrades(approved).on_behalf_of(account);
    let drift = drift::of_rollout(planned.spec.drift.unwrap_or_default());
    let rollout = &Rollout::new(client, Options::default());
    let completed = match completed_by(rollout, owner, planned, release).await {
        Ok(completed) => completed,
        Err(CompletionError::Read(error)) => return Ok(Err(error)),
        Err(error) => {
            return Err(CommandError::failed(format!("the rollout of {name} would be refused")).because(&error));
        }
    };
    Ok(rollout.preview(&RolloutRequest::new(owner, &completed).drift(drift)).await)
}

/// The release with the Secrets that it requests. The values of Secrets that the owner has or may adopt are kept.
async fn completed_by(
    rollout: &Rollout,
    owner: &Owner,
    planned: &BundleDeployment,
    release: &Release,
) -> Result<Arc<Release>, CompletionError<RolloutError>> {
    let (policy, rotate) = (chandler_certificates::Policy::default(), planned.annotations().get(ROTATE));
    let own = |key: ObjectKey| async move { rollout.own(owner, &key).await };
    let rotate = rotate.map(String::as_str);
    let release_owner = ReleaseOwner { name: &owner.name, install_namespace: &owner.install_namespace, rotate };
    Ok(complete(own, &policy, release_owner, Arc::new(release.clone())).await?.release)
}

/// The release with the values of the Secrets that the BundleDeployment has or may adopt. `None` if it cannot be completed: a preview of the
/// rollout says why.
pub async fn completed(client: Client, deployment: &BundleDeployment, release: &Release) -> Option<Arc<Release>> {
    let owner = owner_of(deployment, &deployment.spec.install_namespace)?;
    let rollout = Rollout::new(client, Options::default());
    completed_by(&rollout, &owner, deployment, release).await.ok()
}

/// The objects of a release that exist and belong to another owner, or to none.
pub async fn adoptees(
    client: Client,
    deployment: &BundleDeployment,
    release: &Release,
) -> Result<Vec<Adoptee>, CommandError> {
    refuse_elsewhere(deployment)?;
    let owner = owner(deployment, &deployment.spec.install_namespace)?;
    Rollout::new(client, Options::default()).adoptees(&owner, release).await.map_err(|error| {
        CommandError::failed(format!("failed to compare {} with the cluster", deployment.name_any())).because(&error)
    })
}

/// A BundleDeployment that does not exist yet, for a preview.
pub fn unstored(deployment: &BundleDeployment) -> BundleDeployment {
    let mut unstored = deployment.clone();
    // No object has this UID, so none in the cluster counts as owned.
    unstored.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    unstored
}

/// What deleting a BundleDeployment with these options would delete and keep.
pub async fn deletion(
    client: Client,
    deployment: &BundleDeployment,
    options: Deletion,
) -> Result<DeletionPreview, CommandError> {
    refuse_elsewhere(deployment)
        .map_err(|error| error.hint("`kubectl delete bundledeployment` deletes it without a preview"))?;
    let mut planned = deployment.clone();
    planned.spec.deletion = Some(options);
    let owner = owner(&planned, &planned.spec.install_namespace)?;
    Rollout::new(client, Options::default()).preview_teardown(&owner).await.map_err(|error| {
        CommandError::failed(format!("failed to preview the deletion of {}", planned.name_any()))
            .because(&error)
            .hint("`kubectl delete bundledeployment` deletes it without a preview")
    })
}

/// The refusal that the controller reported about the ServiceAccount of the current spec. Only the controller can check the account:
/// a user who runs a preview may not be allowed to impersonate it.
pub fn account_refusal(deployment: &BundleDeployment) -> Option<String> {
    let status = deployment.status.as_ref()?;
    let progressing = find_condition(&status.conditions, ConditionType::Progressing)?;
    let is_current = progressing.observed_generation == deployment.metadata.generation;
    let about_account = [
        Reason::ServiceAccountRequired,
        Reason::ServiceAccountNotFound,
        Reason::ServiceAccountNotGranted,
        Reason::PermissionsMissing,
    ];
    let reason = Reason::from_name(&progressing.reason)?;
    (is_current && about_account.contains(&reason)).then(|| progressing.message.clone())
}

fn owner(deployment: &BundleDeployment, namespace: &str) -> Result<Owner, CommandError> {
    owner_of(deployment, namespace)
        .ok_or_else(|| CommandError::failed(format!("BundleDeployment {} has no UID", deployment.name_any())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_refusal_counts_for_the_same_generation_only() {
        for (reason, generation, refused) in [
            ("PermissionsMissing", 2, true),
            ("ServiceAccountNotFound", 2, true),
            ("ServiceAccountRequired", 2, true),
            ("PermissionsMissing", 1, false),
            ("Succeeded", 2, false),
        ] {
            let deployment = serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                "metadata": {"name": "harbour", "generation": 2},
                "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
                "status": {"conditions": [{
                    "type": "Progressing", "status": "True", "reason": reason, "message": "it may not",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
                }]},
            }));
            let deployment: BundleDeployment = deployment.unwrap();
            assert_eq!(
                account_refusal(&deployment).as_deref(),
                refused.then_some("it may not"),
                "{reason} {generation}"
            );
        }
    }
}
