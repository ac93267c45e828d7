//! Reads what the health of a release depends on beside its objects: one list for each namespace with a Service that a
//! webhook, a conversion or an aggregated API of the release calls, and one of the storage classes while a claim is pending.

use std::collections::BTreeMap;

use chandler_health::{Dependencies, ServiceName, dependencies::SERVICE_NAME, needs};
use futures::FutureExt as _;
use k8s_openapi::api::{discovery::v1::EndpointSlice, storage::v1::StorageClass};
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    concurrent::all,
    desired::Desired,
    error::{Problem, RolloutError},
};

/// What surrounds a release, and from which stage on it matters.
#[derive(Debug, Default)]
pub(crate) struct ReleaseDependencies {
    dependencies: Dependencies,
    due: BTreeMap<ServiceName, u32>,
}

impl ReleaseDependencies {
    /// Reads it.
    pub(crate) async fn look(
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
            // Who may not look does not wait: the API server tells when a webhook is really called.
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

    /// Whether there is nothing to look at.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// All of it.
    pub(crate) fn all(&self) -> &Dependencies {
        &self.dependencies
    }

    /// What matters while a stage is worked on.
    pub(crate) fn at(&self, stage: u32) -> Dependencies {
        self.dependencies.only(|service| self.is_due(service, stage))
    }

    /// Whether a Service matters from this stage on or before.
    fn is_due(&self, service: &ServiceName, stage: u32) -> bool {
        self.due.get(service).is_some_and(|due| *due <= stage)
    }
}

/// The kind to watch for a release whose webhooks have to be answered: slices carry the labels of their Service.
pub(crate) fn watched<'a>(objects: impl IntoIterator<Item = &'a chandler_core::Object>) -> Option<ApiResource> {
    let mut objects = objects.into_iter();
    objects.any(|object| needs::may_need(&object.key.group, &object.key.kind) && calls(object)).then(slices)
}

fn calls(object: &chandler_core::Object) -> bool {
    !needs::of_object(&Value::Object(object.value.clone())).is_empty()
}

fn slices() -> ApiResource {
    ApiResource::erase::<EndpointSlice>(&())
}

fn needed(desired: &[Desired]) -> BTreeMap<ServiceName, u32> {
    needs::due_stages(desired.iter().map(|desired| (desired.stage, desired.key.namespace.as_deref(), &desired.value)))
}

fn is_pending_claim(object: &Value) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    text("/kind") == Some("PersistentVolumeClaim") && text("/status/phase") == Some("Pending")
}

/// What was found; none where it may not be looked at.
fn allowed(found: Result<Vec<Value>, Problem>, what: &str) -> Result<Option<Vec<Value>>, RolloutError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Problem::Forbidden(message)) => {
            tracing::debug!(%message, "may not list {what}");
            Ok(None)
        }
        Err(problem) => Err(RolloutError::Request { action: format!("list {what}"), problem }),
    }
}
