//! Changes of Resolutions: suspend, roll back to a decision, request a reconcile.

use chandler_api::{Resolution, names::REQUESTED_AT_ANNOTATION};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::CommandError;

/// Sets `spec.suspend`.
pub async fn set_suspend(client: &Client, name: &str, suspend: bool) -> Result<(), CommandError> {
    let manager = if suspend { "chandler-suspend" } else { "chandler-resume" };
    merge(client, name, manager, json!({"spec": {"suspend": suspend}})).await
}

/// Sets the decision to roll back to; `None` removes it. Fails if the Resolution has changed since it was read.
pub async fn set_decision(client: &Client, resolution: &Resolution, number: Option<i64>) -> Result<(), CommandError> {
    let patch = json!({
        // After a change by another client the history may hold other decisions.
        "metadata": {"resourceVersion": resolution.metadata.resource_version},
        "spec": {"output": {"resolveSet": {"toDecision": number.map_or(Value::Null, Value::from)}}},
    });
    merge(client, &resolution.name_any(), "chandler-rollback", patch).await
}

/// Requests a reconcile, by a new value of its annotation.
pub async fn request_reconcile(client: &Client, name: &str, at: &str) -> Result<(), CommandError> {
    let patch = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: at}}});
    merge(client, name, "chandler-reconcile", patch).await
}

async fn merge(client: &Client, name: &str, manager: &str, patch: Value) -> Result<(), CommandError> {
    let resolutions: Api<Resolution> = Api::all(client.clone());
    let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    resolutions
        .patch(name, &parameters, &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(|error| CommandError::failed(format!("failed to patch Resolution {name}")).because(&error))
}
