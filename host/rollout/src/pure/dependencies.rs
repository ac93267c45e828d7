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

#[cfg(test)]
mod tests {
    use chandler_core::Object;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        Object::parse(value.to_string().as_bytes(), 0, None).unwrap()
    }

    #[test]
    fn slices_are_watched_if_the_api_server_calls_a_service() {
        let service = json!({"service": {"namespace": "n", "name": "s"}});
        let webhooks = |client: &Value| {
            object(&json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "x"}, "webhooks": [{"name": "a.b.c", "clientConfig": client}]}))
        };
        let config_map = || object(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}));
        let outside = json!({"url": "https://example.com"});
        assert_eq!(watched(&[config_map(), webhooks(&service)]).unwrap().kind, "EndpointSlice");
        assert_eq!(watched(&[config_map(), webhooks(&outside)]), None);
        assert_eq!(watched(&[]), None);
    }

    #[test]
    fn a_claim_is_pending_until_it_is_bound() {
        for (kind, phase, pending) in [
            ("PersistentVolumeClaim", "Pending", true),
            ("PersistentVolumeClaim", "Bound", false),
            ("Pod", "Pending", false),
        ] {
            assert_eq!(is_pending_claim(&json!({"kind": kind, "status": {"phase": phase}})), pending, "{kind} {phase}");
        }
    }
}
