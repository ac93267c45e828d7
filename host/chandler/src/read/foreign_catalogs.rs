//! Catalogs that OLM reads in the cluster, as if they were Catalogs ([`OlmCatalogs`]).

use chandler_api::{Catalog, OlmCatalogs};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};

use super::foreign;
use crate::CommandError;

/// The objects of a kind as Catalogs. A kind that the cluster does not serve has none.
///
/// # Errors
/// The API server does not list them.
pub async fn list(client: &Client, kind: &OlmCatalogs) -> Result<Vec<Catalog>, CommandError> {
    let resource = kind.resource();
    let api: Api<DynamicObject> = match kind.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    match foreign::pages(&api, ListParams::default()).await {
        Ok(found) => Ok(found.unwrap_or_default().iter().map(|object| kind.catalog(object)).collect()),
        Err(error) => Err(CommandError::failed("failed to list the catalogs of OLM in the cluster").because(&error)),
    }
}
