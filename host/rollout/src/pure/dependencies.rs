//! What the health of a release depends on beside its objects, and from which stage on. Pure.

use std::collections::BTreeMap;

use chandler_health::{Dependencies, ServiceName, needs};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ApiResource;
use serde_json::Value;

use crate::pure::desired::Desired;

/// The state of objects that the health of a release depends on, and the stage from which each Service matters.
#[derive(Debug, Default)]
pub(crate) struct ReleaseDependencies {
    pub(crate) dependencies: Dependencies,
    pub(crate) due: BTreeMap<ServiceName, u32>,
}

impl ReleaseDependencies {
    /// Whether the release depends on no Service.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// All dependencies.
    pub(crate) fn all(&self) -> &Dependencies {
        &self.dependencies
    }

    /// The dependencies that matter in a stage.
    pub(crate) fn at(&self, stage: u32) -> Dependencies {
        self.dependencies.only(|service| self.is_due(service, stage))
    }

    /// Whether a Service matters in this stage.
    fn is_due(&self, service: &ServiceName, stage: u32) -> bool {
        self.due.get(service).is_some_and(|due| *due <= stage)
    }
}

/// The kind to watch for a release whose webhooks need endpoints: slices carry the labels of their Service.
pub(crate) fn watched<'a>(objects: impl IntoIterator<Item = &'a chandler_core::Object>) -> Option<ApiResource> {
    let mut objects = objects.into_iter();
    objects.any(|object| needs::may_need(&object.key.group, &object.key.kind) && calls(object)).then(slices)
}

fn calls(object: &chandler_core::Object) -> bool {
    !needs::of_object(&Value::Object(object.value.clone())).is_empty()
}

pub(crate) fn slices() -> ApiResource {
    ApiResource::erase::<EndpointSlice>(&())
}

pub(crate) fn needed(desired: &[Desired]) -> BTreeMap<ServiceName, u32> {
    needs::due_stages(desired.iter().map(|desired| (desired.stage, desired.key.namespace.as_deref(), &desired.value)))
}

pub(crate) fn is_pending_claim(object: &Value) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    text("/kind") == Some("PersistentVolumeClaim") && text("/status/phase") == Some("Pending")
}
