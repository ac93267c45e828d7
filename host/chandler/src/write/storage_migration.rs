//! Writes objects again as they are, so that the API server stores them in the current version, and sets `status.storedVersions`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    CommandError,
    read::stored_versions::{self, OutdatedCrd},
};

/// The field manager of the requests. It owns no field of an object, since none changes.
const FIELD_MANAGER: &str = "chandler-migrate-storage";
/// The attempts for an object, or a CRD, that others change meanwhile.
const ATTEMPTS: usize = 5;

/// Whether the current version is the only one in which objects may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleared {
    /// It is.
    Yes,
    /// The versions of the CRD have changed since it was read: objects may be stored in any of them.
    Changed,
}

/// Writes an object as it is. An object that does not exist any more needs nothing.
///
/// An empty patch changes nothing, but the API server writes the object if it is stored in another version. It applies the patch to the
/// object as it is then, so a change of another client is never undone.
///
/// # Errors
/// The API server refuses it, or others change the object all the time.
pub async fn rewrite(client: &Client, crd: &OutdatedCrd, name: &str) -> Result<(), kube::Error> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &crd.resource);
    let parameters = parameters();
    let mut attempt = 1;
    loop {
        match api.patch_metadata(name, &parameters, &Patch::Merge(json!({}))).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
            done => return done.map(drop),
        }
    }
}

/// Removes the old versions from `status.storedVersions`, unless the versions of the CRD have changed since it was read.
///
/// # Errors
/// The API server refuses it, or others change the CRD all the time.
pub async fn clear(client: &Client, crd: &OutdatedCrd) -> Result<Cleared, CommandError> {
    let failed = |error: &kube::Error| {
        CommandError::failed(format!("failed to set status.storedVersions of CRD {}", crd.name)).because(error)
    };
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut attempt = 1;
    loop {
        let current = stored_versions::crd(client, &crd.name).await?;
        let Some(current) = current.filter(|current| current.metadata.generation == crd.generation) else {
            return Ok(Cleared::Changed);
        };
        let patch = json!({
            "metadata": {"resourceVersion": current.resource_version()},
            "status": {"storedVersions": [crd.storage]},
        });
        match crds.patch_status(&crd.name, &parameters(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(failed(&error)),
            Ok(_) => return Ok(Cleared::Yes),
        }
    }
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
