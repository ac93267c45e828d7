//! Checks at startup that the API server serves a kind.

use std::fmt::Debug;

use kube::{Api, Client, Resource, api::ListParams};
use serde::de::DeserializeOwned;

/// Lists one object of a kind. Fails where the API server does not serve the kind; a watch would retry forever.
pub async fn probe<K>(client: &Client, parameters: ListParams) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    Api::<K>::all(client.clone()).list_metadata(&parameters.limit(1)).await.map(drop)
}
