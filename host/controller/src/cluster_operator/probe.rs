//! Whether the controller may read what it reconciles: a watch that is refused is tried again without end, and its cache looks as before.

use std::fmt::Debug;

use chandler_api::{BundleDeployment, PlatformOperator, Resolution};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::context::Context;

/// Why a kind cannot be listed; none if all can.
pub(super) async fn problem(context: &Context) -> Option<String> {
    let (operators, resolutions, deployments) = tokio::join!(
        list::<PlatformOperator>(context),
        list::<Resolution>(context),
        list::<BundleDeployment>(context),
    );
    operators.or(resolutions).or(deployments)
}

async fn list<K>(context: &Context) -> Option<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let parameters = context.options.watch_selector.list().limit(1);
    let listed = Api::<K>::all(context.client.clone()).list_metadata(&parameters).await;
    listed.err().map(|error| format!("{} cannot be listed: {}", K::plural(&()), chandler_source::api_message(&error)))
}
