//! Changes a ProvisionerClass.

use chandler_api::{ProvisionerClass, names::REQUESTED_AT_ANNOTATION};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::CommandError;

/// Requests a reconcile with this value of the annotation.
pub async fn request_reconcile(client: &Client, name: &str, at: &str) -> Result<(), CommandError> {
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let patch = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: at}}});
    let parameters = PatchParams { field_manager: Some("chandler-reconcile".to_owned()), ..PatchParams::default() };
    classes
        .patch(name, &parameters, &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(|error| CommandError::failed(format!("failed to patch ProvisionerClass {name}")).because(&error))
}
