//! Reads the state of objects that the health of a release depends on: one list for each namespace with a Service that a
//! webhook, a conversion or an aggregated API of the release uses, and one list of the storage classes while a claim is
//! pending.

use std::collections::BTreeMap;

use chandler_health::{Dependencies, ServiceName, dependencies::SERVICE_NAME};
use futures::FutureExt as _;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        dependencies::{ReleaseDependencies, is_pending_claim, needed, slices},
        desired::Desired,
        error::{ApiError, RolloutError},
    },
};

impl ReleaseDependencies {
    /// Reads the dependencies of a release.
    pub(crate) async fn read(
        cluster: &Cluster,
        desired: &[Desired],
        live: &[Option<Value>],
    ) -> Result<Self, RolloutError> {
        let due = needed(desired);
        let mut dependencies = Dependencies::default();
        let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for service in due.keys() {
            by_namespace.entry(&service.namespace).or_default().push(&service.name);
        }
        let slices = slices();
        let lists = by_namespace.iter().map(|(namespace, names)| {
            let selector = format!("{SERVICE_NAME} in ({})", names.join(","));
            let slices = &slices;
            async move { cluster.list(slices, Some(namespace), &selector).await }.boxed()
        });
        let lists = all(lists.collect()).await;
        for ((namespace, names), found) in by_namespace.iter().zip(lists) {
            // Without permission to list, nothing waits: the API server reports an error when a webhook is really called.
            let Some(found) = allowed(found, "EndpointSlices")? else { continue };
            for name in names {
                dependencies.look_at(ServiceName { namespace: (*namespace).to_owned(), name: (*name).to_owned() });
            }
            for slice in &found {
                dependencies.add_slice(slice);
            }
        }
        if live.iter().flatten().any(is_pending_claim) {
            let classes = ApiResource::erase::<StorageClass>(&());
            let found = cluster.list(&classes, None, "").await;
            for class in &allowed(found, "StorageClasses")?.unwrap_or_default() {
                dependencies.add_storage_class(class);
            }
        }
        Ok(Self { dependencies, due })
    }
}

/// The listed objects, or `None` if the list is not permitted.
fn allowed(found: Result<Vec<Value>, ApiError>, what: &str) -> Result<Option<Vec<Value>>, RolloutError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ApiError::Forbidden(message)) => {
            tracing::debug!(%message, "may not list {what}");
            Ok(None)
        }
        Err(error) => Err(RolloutError::Request { action: format!("list {what}"), error }),
    }
}
