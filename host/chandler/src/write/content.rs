//! ConfigMaps with files: created before the BundleDeployment or the Catalog that uses them, and owned by it afterwards.

use std::collections::BTreeSet;

use chandler_api::BundleDeployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::PartialObjectMeta,
};
use serde_json::json;

use crate::{CommandError, read::packaging::CONTENT_OF, view::text::count};

/// The field manager of ConfigMaps with files.
const FIELD_MANAGER: &str = "chandler-install";

/// Creates the ConfigMaps, and returns those that did not exist. One with the same name and content may exist, from an attempt that was
/// interrupted. If one cannot be created, those that this call created are deleted again.
pub async fn create(client: &Client, config_maps: &[ConfigMap]) -> Result<Vec<ConfigMap>, CommandError> {
    let mut created = Vec::new();
    match create_each(client, config_maps, &mut created).await {
        Ok(()) => Ok(created),
        Err(error) => Err(discard(client, &created, error).await),
    }
}

/// Deletes ConfigMaps from [`create`] that nothing refers to, since what followed failed. The error then also names those that are left.
pub async fn discard(client: &Client, created: &[ConfigMap], error: CommandError) -> CommandError {
    let mut left = Vec::new();
    for config_map in created {
        let same = Preconditions { uid: config_map.metadata.uid.clone(), resource_version: None };
        let parameters = DeleteParams::background().preconditions(same);
        match api(client, config_map).delete(&config_map.name_any(), &parameters).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(_) => left.push(config_map),
        }
    }
    match leftover(&left) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// How to delete ConfigMaps that are left over.
fn leftover(left: &[&ConfigMap]) -> Option<String> {
    let namespace = left.first()?.metadata.namespace.clone().unwrap_or_default();
    let names: Vec<String> = left.iter().map(|config_map| config_map.name_any()).collect();
    let what = count(left.len(), "ConfigMap");
    Some(format!(
        "{what} with files could not be deleted again: kubectl delete configmap -n {namespace} {}",
        names.join(" ")
    ))
}

async fn create_each(
    client: &Client,
    config_maps: &[ConfigMap],
    created: &mut Vec<ConfigMap>,
) -> Result<(), CommandError> {
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    for config_map in config_maps {
        let api = api(client, config_map);
        let error = match api.create(&parameters, config_map).await {
            Ok(stored) => {
                created.push(stored);
                continue;
            }
            Err(error) => error,
        };
        let name = config_map.name_any();
        if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
            let existing = api.get(&name).await.map_err(|error| failed(config_map, &error))?;
            let same = existing.immutable == config_map.immutable
                && existing.data == config_map.data
                && existing.binary_data == config_map.binary_data
                && existing.metadata.annotations == config_map.metadata.annotations;
            if same {
                continue;
            }
            return Err(failed(config_map, &error)
                .hint(format!("it has other content: delete it, or install {name} under another name")));
        }
        return Err(failed(config_map, &error));
    }
    Ok(())
}

/// Makes a BundleDeployment or a Catalog the owner of its ConfigMaps, so that the garbage collector deletes them with it.
pub async fn own<K: Resource<DynamicType = ()>>(
    client: &Client,
    user: &K,
    config_maps: &[ConfigMap],
) -> Result<(), CommandError> {
    let Some(owner) = user.owner_ref(&()) else { return Ok(()) };
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    for config_map in config_maps {
        let patch = json!({"metadata": {"ownerReferences": [owner]}});
        let patched = api(client, config_map).patch(&config_map.name_any(), &parameters, &Patch::Merge(patch)).await;
        patched.map_err(|error| failed(config_map, &error))?;
    }
    Ok(())
}

/// Makes a BundleDeployment the owner of its ConfigMaps in this namespace that have no owner, since an attempt was interrupted before.
pub async fn own_left(client: &Client, deployment: &BundleDeployment, namespace: &str) -> Result<(), CommandError> {
    if deployment.spec.source.config_maps.is_none() {
        return Ok(());
    }
    let name = deployment.name_any();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let labelled = ListParams::default().labels(&format!("{CONTENT_OF}={name}"));
    let listed = config_maps.list_metadata(&labelled).await.map_err(|error| {
        CommandError::failed(format!("failed to list the ConfigMaps of {name} in namespace {namespace}"))
            .because(&error)
    })?;
    let in_use = in_use(deployment);
    let is_left = |existing: &PartialObjectMeta<ConfigMap>| {
        existing.owner_references().is_empty() && in_use.contains(existing.name_any().as_str())
    };
    let left = listed.items.into_iter().filter(is_left);
    let left: Vec<ConfigMap> =
        left.map(|existing| ConfigMap { metadata: existing.metadata, ..ConfigMap::default() }).collect();
    own(client, deployment, &left).await
}

/// Deletes ConfigMaps of earlier content that neither the spec nor a revision in the history refers to.
pub async fn prune(client: &Client, deployment: &BundleDeployment, namespace: &str) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let not_pruned = |error: kube::Error| {
        CommandError::failed(format!("failed to delete earlier content of {name} in namespace {namespace}"))
            .because(&error)
    };
    let labelled = ListParams::default().labels(&format!("{CONTENT_OF}={name}"));
    let in_use = in_use(deployment);
    for existing in config_maps.list_metadata(&labelled).await.map_err(not_pruned)?.items {
        if is_of(&existing, deployment) && !in_use.contains(existing.name_any().as_str()) {
            let same = Preconditions { uid: existing.metadata.uid.clone(), resource_version: None };
            let parameters = DeleteParams::background().preconditions(same);
            config_maps.delete(&existing.name_any(), &parameters).await.map_err(not_pruned)?;
        }
    }
    Ok(())
}

/// Whether the BundleDeployment owns a ConfigMap.
fn is_of(config_map: &PartialObjectMeta<ConfigMap>, deployment: &BundleDeployment) -> bool {
    let uid = deployment.metadata.uid.as_deref();
    config_map.owner_references().iter().any(|owner| Some(owner.uid.as_str()) == uid)
}

/// The names of the ConfigMaps that the spec and the history refer to.
fn in_use(deployment: &BundleDeployment) -> BTreeSet<&str> {
    let history = deployment.status.iter().flat_map(|status| &status.history).map(|revision| &revision.source);
    let resolved = deployment.status.iter().filter_map(|status| status.resolved_source.as_ref());
    let sources = history.chain(resolved).chain([&deployment.spec.source]);
    let config_maps = sources.filter_map(|source| source.config_maps.as_ref()).flatten();
    config_maps.map(|source| source.config_map.name.as_str()).collect()
}

fn api(client: &Client, config_map: &ConfigMap) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), config_map.metadata.namespace.as_deref().unwrap_or_default())
}

fn failed(config_map: &ConfigMap, error: &kube::Error) -> CommandError {
    let namespace = config_map.metadata.namespace.as_deref().unwrap_or_default();
    let failed =
        CommandError::failed(format!("failed to write ConfigMap {namespace}/{}", config_map.name_any())).because(error);
    match error {
        kube::Error::Api(status) if status.is_not_found() => failed.hint(format!(
            "files of a directory are stored in the namespace of the controller, and {namespace} does not exist: set \
             --system-namespace"
        )),
        kube::Error::Api(status) if status.is_forbidden() => failed.hint(format!(
            "files of a directory are stored in ConfigMaps of namespace {namespace}: ask an administrator for `create` and `patch` on \
             them, or push the bundle as an image and install that"
        )),
        _ => failed,
    }
}
