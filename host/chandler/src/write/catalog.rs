//! Creates, changes and deletes Catalogs.

use chandler_api::Catalog;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, PostParams, Preconditions},
};

use super::deployment::Effect;
use crate::CommandError;

/// The field manager of new Catalogs.
const FIELD_MANAGER: &str = "chandler-catalog";

/// Creates a Catalog.
pub async fn create(client: &Client, catalog: &Catalog, effect: Effect) -> Result<Catalog, CommandError> {
    let catalogs: Api<Catalog> = Api::all(client.clone());
    let parameters = PostParams { dry_run: effect == Effect::Check, field_manager: Some(FIELD_MANAGER.to_owned()) };
    catalogs.create(&parameters, catalog).await.map_err(|error| {
        let name = catalog.name_any();
        let failed = CommandError::failed(format!("failed to create Catalog {name}")).because(&error);
        match &error {
            kube::Error::Api(status) if status.is_already_exists() => failed
                .hint(format!("`chandler catalog remove {name}` removes it; `kubectl edit catalog {name}` changes it")),
            _ => failed,
        }
    })
}

/// Deletes a Catalog from [`create`] that the controller refused, with its files. The error then also says whether it is gone.
pub async fn discard(client: &Client, created: &Catalog, error: CommandError) -> CommandError {
    let catalogs: Api<Catalog> = Api::all(client.clone());
    let same = Preconditions { uid: created.metadata.uid.clone(), resource_version: None };
    match catalogs.delete(&created.name_any(), &DeleteParams::background().preconditions(same)).await {
        Ok(_) => error.hint("the Catalog was deleted again; `--wait=false` keeps one that the controller refuses"),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => error,
        Err(_) => left(error, &created.name_any()),
    }
}

/// An error after which the Catalog exists.
pub fn left(error: CommandError, name: &str) -> CommandError {
    error.hint(format!("the Catalog exists: `chandler catalog remove {name}` removes it, with its files"))
}

/// Deletes a Catalog. Returns it if finalizers hold it, so that it still exists.
pub async fn delete(client: &Client, name: &str, effect: Effect) -> Result<Option<Catalog>, CommandError> {
    let catalogs: Api<Catalog> = Api::all(client.clone());
    let parameters = DeleteParams { dry_run: effect == Effect::Check, ..DeleteParams::background() };
    let answer = catalogs.delete(name, &parameters).await.map_err(|error| {
        let failed = CommandError::failed(format!("failed to delete Catalog {name}")).because(&error);
        match &error {
            kube::Error::Api(status) if status.is_not_found() => {
                failed.hint("`chandler catalog list` lists the Catalogs of the cluster")
            }
            _ => failed,
        }
    })?;
    Ok(answer.left().filter(|catalog| !catalog.finalizers().is_empty()))
}
