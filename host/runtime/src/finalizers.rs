//! Writes the finalizers of an object.

use std::fmt::Debug;

use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::FIELD_MANAGER;

/// Replaces the finalizers of an object. The list is replaced whole, so the write is refused as a conflict where the object has
/// changed since it was read. Returns the object.
pub async fn write<K>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<K, kube::Error>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
    let parameters = PatchParams::apply(FIELD_MANAGER);
    api.patch(&object.name_any(), &parameters, &Patch::Merge(patch)).await
}
