//! Deletes a BundleDeployment.

use chandler_api::{BundleDeployment, Deletion};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use crate::CommandError;

/// The field manager of the patch.
const FIELD_MANAGER: &str = "chandler-delete";

/// Sets `spec.deletion` if it differs, then deletes the BundleDeployment with this UID. Fails if it has changed since it was read and
/// `spec.deletion` must be set.
pub async fn delete(
    deployments: &Api<BundleDeployment>,
    deployment: &BundleDeployment,
    options: Deletion,
) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let failed = |error: kube::Error| {
        CommandError::failed(format!("failed to delete BundleDeployment {name}"))
            .because(&error)
            .hint("run the command again; the BundleDeployment may have changed since it was read")
    };
    if options != deployment.spec.deletion.unwrap_or_default() {
        let patch = json!({
            "metadata": {"resourceVersion": deployment.metadata.resource_version},
            "spec": {"deletion": options},
        });
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        deployments.patch(&name, &parameters, &Patch::Merge(patch)).await.map_err(failed)?;
    }
    // The UID prevents the deletion of another BundleDeployment that took the name since the preview.
    let same = Preconditions { uid: deployment.metadata.uid.clone(), resource_version: None };
    deployments.delete(&name, &DeleteParams::background().preconditions(same)).await.map(drop).map_err(failed)
}
