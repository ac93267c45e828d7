//! The kinds that the simulation reads and writes.

use kube::{api::GroupVersionKind, core::ApiResource};
use serde_json::Value;

use crate::metadata;

/// A kind that the simulation knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    ApiService,
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    EndpointSlice,
    Endpoints,
    Job,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    Service,
    StatefulSet,
}

impl Kind {
    pub(super) const ALL: [Self; 16] = [
        Self::ApiService,
        Self::ControllerRevision,
        Self::CronJob,
        Self::DaemonSet,
        Self::Deployment,
        Self::EndpointSlice,
        Self::Endpoints,
        Self::Job,
        Self::Node,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::Pod,
        Self::PodDisruptionBudget,
        Self::ReplicaSet,
        Self::Service,
        Self::StatefulSet,
    ];

    /// Group, version, kind, plural.
    const fn row(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::ApiService => ("apiregistration.k8s.io", "v1", "APIService", "apiservices"),
            Self::ControllerRevision => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            Self::CronJob => ("batch", "v1", "CronJob", "cronjobs"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet", "daemonsets"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            Self::Endpoints => ("", "v1", "Endpoints", "endpoints"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
            Self::Node => ("", "v1", "Node", "nodes"),
            Self::PersistentVolume => ("", "v1", "PersistentVolume", "persistentvolumes"),
            Self::PersistentVolumeClaim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::PodDisruptionBudget => ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
        }
    }

    /// `kind` of the objects.
    pub(super) const fn name(self) -> &'static str {
        self.row().2
    }

    /// `apiVersion` of the objects.
    pub(super) fn api_version(self) -> String {
        let (group, version, ..) = self.row();
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }

    /// How kube addresses the resource.
    pub(super) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = self.row();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// The kind of an owner reference, when it is one of these.
    pub(super) fn of_reference(reference: &Value) -> Option<Self> {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        Self::ALL.into_iter().find(|kind| kind.row().0 == group && kind.name() == text("kind"))
    }
}

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    /// Empty for cluster-scoped objects.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The place of an object of a kind.
    pub(super) fn of(kind: Kind, object: &Value) -> Self {
        Self::new(kind, metadata::namespace(object), metadata::name(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owner_references_name_kinds() {
        let reference = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind});
        for kind in Kind::ALL {
            assert_eq!(Kind::of_reference(&reference(&kind.api_version(), kind.name())), Some(kind));
        }
        assert_eq!(Kind::of_reference(&reference("example.com/v1", "Deployment")), None);
        assert_eq!(Kind::of_reference(&reference("v1", "ConfigMap")), None);
    }
}
