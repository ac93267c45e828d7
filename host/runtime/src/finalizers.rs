//! How changed finalizers are written.

use std::fmt::Debug;

use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Writes the finalizers of an object, unless it changed since it was read: the list is replaced whole.
pub(crate) async fn write<K>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<(), kube::Error>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version()}});
    let written = api.patch_metadata(&object.name_any(), &PatchParams::apply("chandler"), &Patch::Merge(patch)).await;
    written.map(drop)
}
