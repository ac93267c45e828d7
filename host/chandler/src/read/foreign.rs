//! Lists objects of other installers.

use chandler_core::ObjectKey;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, TypeMeta},
    discovery,
};
use serde_json::Value;

use super::cluster;
use crate::CommandError;

/// A kind of another installer.
#[derive(Clone, Copy, Debug)]
pub struct ForeignKind {
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
}

impl ForeignKind {
    /// How the API server names the kind.
    pub fn resource(&self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(self.group, self.version, self.kind))
    }
}

/// All objects of a kind that have these labels, or `None` if the cluster does not serve the kind.
pub async fn list(
    client: &Client,
    kind: ForeignKind,
    labels: Option<&str>,
) -> Result<Option<Vec<Value>>, CommandError> {
    let resource = kind.resource();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let selected = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() };
    let found = pages(&api, selected).await;
    let found = found.map_err(|error| {
        CommandError::failed(format!("failed to list {}.{}", resource.plural, kind.group)).because(&error)
    })?;
    let value = |mut object: DynamicObject| {
        // The items of a list have neither apiVersion nor kind.
        object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
        serde_json::to_value(object).unwrap_or_default()
    };
    Ok(found.map(|objects| objects.into_iter().map(value).collect()))
}

/// An object as it is now; `None` if it does not exist, or the cluster does not serve its kind.
pub async fn get(client: &Client, key: &ObjectKey) -> Result<Option<Value>, CommandError> {
    let failed = |error: &kube::Error| CommandError::failed(format!("failed to read {key}")).because(error);
    let kind = GroupVersionKind::gvk(&key.group, &key.version, &key.kind);
    let (resource, _) = match discovery::pinned_kind(client, &kind).await {
        Err(kube::Error::Discovery(_)) => return Ok(None),
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
        served => served.map_err(|error| failed(&error))?,
    };
    let api: Api<DynamicObject> = match &key.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let found = api.get_opt(&key.name).await.map_err(|error| failed(&error))?;
    Ok(found.map(|object| serde_json::to_value(object).unwrap_or_default()))
}

/// All objects that are selected, read page by page, or `None` if the cluster does not serve the kind.
pub(super) async fn pages(
    api: &Api<DynamicObject>,
    selected: ListParams,
) -> Result<Option<Vec<DynamicObject>>, kube::Error> {
    match cluster::pages(selected, async |page: &ListParams| api.list(page).await).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        objects => objects.map(Some),
    }
}
