//! Lists objects in `spec.adopt` of a BundleDeployment.

use chandler_api::{AdoptedObject, BundleDeployment};
use chandler_core::ObjectKey;
use chandler_rollout::Adoptee;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::CommandError;

/// The field manager of the patch.
const FIELD_MANAGER: &str = "chandler-adopt";

/// Adds the objects, with their UIDs, to `spec.adopt`. Other entries stay. Fails if the BundleDeployment has changed since it was
/// read.
pub async fn adopt(client: Client, deployment: &BundleDeployment, objects: &[Adoptee]) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let mut adopt = deployment.spec.adopt.clone();
    adopt.retain(|listed| !objects.iter().map(entry).any(|new| is_same_object(listed, &new)));
    adopt.extend(objects.iter().map(entry));
    let patch = json!({
        // Another client may have added other objects since.
        "metadata": {"resourceVersion": deployment.metadata.resource_version},
        "spec": {"adopt": adopt},
    });
    let api: Api<BundleDeployment> = Api::all(client);
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&name, &parameters, &Patch::Merge(patch)).await.map(drop).map_err(|error| {
        CommandError::failed(format!("failed to patch spec.adopt of BundleDeployment {name}"))
            .because(&error)
            .hint("no object was adopted: run the command again")
    })
}

/// An object as an entry of `spec.adopt`.
pub fn entry(adoptee: &Adoptee) -> AdoptedObject {
    let ObjectKey { group, kind, namespace, name, .. } = adoptee.object.clone();
    AdoptedObject { group, kind, namespace, name, uid: adoptee.uid.clone() }
}

fn is_same_object(one: &AdoptedObject, other: &AdoptedObject) -> bool {
    (&one.group, &one.kind, &one.namespace, &one.name) == (&other.group, &other.kind, &other.namespace, &other.name)
}
