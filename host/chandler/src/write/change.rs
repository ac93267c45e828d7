//! Changes that several kinds have in common, as merge patches of their objects.

use std::fmt::Debug;

use chandler_api::names::REQUESTED_AT_ANNOTATION;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::ClusterResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::deployment::Effect;
use crate::CommandError;

/// Sets `spec.suspend`.
pub async fn set_suspend<K>(client: &Client, name: &str, suspend: bool, effect: Effect) -> Result<(), CommandError>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let manager = if suspend { "chandler-suspend" } else { "chandler-resume" };
    merge::<K>(client, name, manager, json!({"spec": {"suspend": suspend}}), effect).await
}

/// Requests a reconcile, by a new value of its annotation.
pub async fn request_reconcile<K>(client: &Client, name: &str, at: &str, effect: Effect) -> Result<(), CommandError>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let patch = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: at}}});
    merge::<K>(client, name, "chandler-reconcile", patch, effect).await
}

/// Patches an object as this field manager.
pub(super) async fn merge<K>(
    client: &Client,
    name: &str,
    manager: &str,
    patch: Value,
    effect: Effect,
) -> Result<(), CommandError>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::all(client.clone());
    let parameters = PatchParams {
        dry_run: effect == Effect::Check,
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    objects
        .patch(name, &parameters, &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(|error| CommandError::failed(format!("failed to patch {} {name}", K::kind(&()))).because(&error))
}
