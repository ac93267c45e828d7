//! Installs the CRDs of `chandler dev --with`.

use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::wait::{await_condition, conditions},
};

use super::control_plane::{ESTABLISHED_TIMEOUT, FIELD_MANAGER};
use crate::{
    CommandError,
    read::expected_kinds::{self, KindSet},
};

/// Where CRDs come from: one value of `--with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindSource {
    /// A set of this program.
    Set(KindSet),
    /// A file with CRDs.
    File(PathBuf),
}

/// Installs the CRDs of these sources, and waits until they are established. Returns the number of CRDs.
pub async fn install(client: &Client, sources: &[KindSource]) -> Result<usize, CommandError> {
    let mut installed = 0;
    for source in sources {
        let crds = match source {
            KindSource::Set(set) => expected_kinds::crds(*set),
            KindSource::File(path) => expected_kinds::read(path)?,
        };
        for crd in crds {
            let crd: CustomResourceDefinition = serde_json::from_value(crd)
                .map_err(|error| CommandError::usage("a CRD of --with is invalid").because(&error))?;
            apply(client, &crd).await?;
            installed += 1;
        }
    }
    Ok(installed)
}

async fn apply(client: &Client, crd: &CustomResourceDefinition) -> Result<(), CommandError> {
    let name = crd.name_any();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let failed = || CommandError::failed(format!("failed to install the CRD {name}"));
    // Without force: a CRD of a bundle that is installed already is not replaced.
    crds.patch(&name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(crd))
        .await
        .map_err(|error| failed().because(&error))?;
    let established = await_condition(crds, &name, conditions::is_crd_established());
    match tokio::time::timeout(ESTABLISHED_TIMEOUT, established).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed().because(&error)),
        Err(error) => Err(failed().because(&error)),
    }
}
