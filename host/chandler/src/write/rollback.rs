//! Sets or removes `spec.rollout.toRevision` of a BundleDeployment.

use chandler_api::BundleDeployment;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::deployment::Effect;
use crate::CommandError;

/// The field manager of the patch.
const FIELD_MANAGER: &str = "chandler-rollback";

/// Sets the revision to roll back to; `None` removes it. Fails if the BundleDeployment has changed since it was read.
pub async fn set_revision(
    client: Client,
    deployment: &BundleDeployment,
    revision: Option<i64>,
    effect: Effect,
) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let deployments: Api<BundleDeployment> = Api::all(client);
    let patch = json!({
        // After a change by another client the history may hold other revisions.
        "metadata": {"resourceVersion": deployment.metadata.resource_version},
        "spec": {"rollout": {"toRevision": revision.map_or(Value::Null, Value::from)}},
    });
    let parameters = PatchParams {
        dry_run: effect == Effect::Check,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    deployments
        .patch(&name, &parameters, &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(|error| CommandError::failed(format!("failed to patch BundleDeployment {name}")).because(&error))
}
