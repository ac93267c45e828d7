//! Whether the controller may read what it reconciles: a watch that is refused is retried endlessly, and its cache does not change.

use std::fmt::Debug;

use chandler_api::{BundleDeployment, PlatformOperator, Resolution};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::cluster::Cluster;

/// Why a kind cannot be listed; `None` if all can be listed.
pub(super) async fn problem(cluster: &Cluster) -> Option<String> {
    let (operators, resolutions, deployments) = tokio::join!(
        list::<PlatformOperator>(cluster),
        list::<Resolution>(cluster),
        list::<BundleDeployment>(cluster),
    );
    operators.or(resolutions).or(deployments)
}

async fn list<K>(cluster: &Cluster) -> Option<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let parameters = cluster.options.watch_selector.list().limit(1);
    let listed = Api::<K>::all(cluster.client.clone()).list_metadata(&parameters).await;
    listed.err().map(|error| format!("{} cannot be listed: {}", K::plural(&()), chandler_source::api_message(&error)))
}
