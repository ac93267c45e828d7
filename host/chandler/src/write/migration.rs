//! Detaches another installer from what a BundleDeployment has adopted: removes its owner references, deletes its objects without what
//! depends on them, and marks the BundleDeployment as migrated. Each step can be repeated.

use chandler_api::{AdoptedObject, BundleDeployment};
use kube::{
    Api, Client, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, Preconditions,
        PropagationPolicy,
    },
    discovery,
};
use serde_json::{Value, json};

use crate::{
    CommandError,
    migrate::{ForeignObject, pending::ANNOTATION},
};

/// The field manager of the patches.
const FIELD_MANAGER: &str = "chandler-migrate";

/// Whether an object was deleted, or is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, or the API server deletes it.
    Done,
    /// It remains until these finalizers are removed.
    Waits(Vec<String>),
}

/// Removes the references to these owners from an object. Other references stay. An object that is gone, or another one of its name,
/// is left alone.
pub async fn remove_owners(
    client: &Client,
    object: &AdoptedObject,
    owners: &[ForeignObject],
) -> Result<(), CommandError> {
    let AdoptedObject { group, kind, namespace, name, uid } = object;
    let failed = |error: &kube::Error| {
        CommandError::failed(format!("failed to remove the owner references of {kind} {name}"))
            .because(error)
            .hint("the BundleDeployment has adopted the objects: run the command again")
    };
    let served = discovery::oneshot::group(client, group).await.map_err(|error| failed(&error))?;
    let Some((resource, _)) = served.recommended_kind(kind) else { return Ok(()) };
    let api = api(client, &resource, namespace.as_deref());
    loop {
        let Some(found) = api.get_opt(name).await.map_err(|error| failed(&error))? else { return Ok(()) };
        let is_theirs = |uid: &str| owners.iter().any(|owner| owner.uid == uid);
        let references = found.owner_references();
        if found.uid().as_deref() != Some(uid) || !references.iter().any(|reference| is_theirs(&reference.uid)) {
            return Ok(());
        }
        let kept: Vec<_> = references.iter().filter(|reference| !is_theirs(&reference.uid)).collect();
        let metadata = json!({"resourceVersion": found.resource_version(), "uid": uid, "ownerReferences": kept});
        match api.patch(name, &parameters(), &Patch::Merge(json!({"metadata": metadata}))).await {
            Ok(_) => return Ok(()),
            // Another client has changed it since it was read.
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Deletes an object of another installer, and nothing that depends on it.
pub async fn delete(client: &Client, object: &ForeignObject) -> Result<Deleted, CommandError> {
    let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &object.kind));
    let api = api(client, &resource, object.namespace.as_deref());
    let parameters = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        preconditions: Some(Preconditions { uid: Some(object.uid.clone()), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(&object.name, &parameters).await {
        Ok(answer) => {
            let finalizers = answer.left().map(|deleting| deleting.finalizers().to_vec()).unwrap_or_default();
            // The garbage collector removes this one, once it has removed the references to the object.
            let finalizers: Vec<String> = finalizers.into_iter().filter(|finalizer| finalizer != "orphan").collect();
            Ok(if finalizers.is_empty() { Deleted::Done } else { Deleted::Waits(finalizers) })
        }
        // It is gone, or another object has its name.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(Deleted::Done),
        Err(error) => Err(CommandError::failed(format!("failed to delete {object}"))
            .because(&error)
            .hint("the BundleDeployment has adopted the objects: run the command again")),
    }
}

/// Removes the list of the objects to delete from a BundleDeployment: all of them are deleted.
pub async fn complete(client: &Client, deployment: &BundleDeployment) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let patch = json!({"metadata": {"uid": deployment.metadata.uid, "annotations": {ANNOTATION: Value::Null}}});
    deployments.patch(&name, &parameters(), &Patch::Merge(patch)).await.map(drop).map_err(|error| {
        CommandError::failed(format!("failed to patch BundleDeployment {name}"))
            .because(&error)
            .hint("everything is migrated; run the command again, which removes the annotation")
    })
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}
