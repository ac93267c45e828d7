//! The health of an object by the rules of its kind.
//!
//! The rules follow kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status/{core,generic}.go`). Where a rule differs, its function
//! explains why. docs/health.md has the same table for administrators.

use serde_json::Value;

use crate::{
    conditions,
    dependencies::Dependencies,
    health::Health,
    reader::{Reader, terminating},
    resources,
    workloads::{self, pods},
};

/// The health of a live object, given the state of the objects that it depends on.
///
/// Any JSON is accepted. An object of unknown shape reports nothing about itself and counts as healthy.
pub fn assess(object: &Value, dependencies: &Dependencies) -> Health {
    let object = Reader(object);
    let (group, kind) = object.group_kind();
    if object.is_terminating() {
        return Health::progressing(terminating(object));
    }
    // The API server's own controllers set no generation, so there is none to wait for.
    if (group, kind) == ("apiregistration.k8s.io", "APIService") {
        return resources::api_service(object, dependencies);
    }
    if let Some(health) = conditions::of_any_kind(object, kind) {
        return health;
    }
    match (group, kind) {
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("", "ReplicationController") => workloads::replication_controller(object),
        ("batch", "Job") => pods::job(object),
        ("", "Pod") => pods::pod(object),
        ("", "PersistentVolumeClaim") => resources::persistent_volume_claim(object, dependencies),
        ("", "PersistentVolume") => resources::persistent_volume(object),
        ("", "Service") => resources::service(object),
        ("", "Namespace") => resources::namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            resources::custom_resource_definition(object, dependencies)
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            resources::webhook_configuration(object, dependencies)
        }
        // The controllers of these kinds always set the condition once they have observed the object.
        ("cert-manager.io", "Certificate" | "Issuer" | "ClusterIssuer")
        | ("core.rukpak.io", "BundleDeployment")
        | ("core.deppy.io", "Resolution")
        | ("chandler.dev", "Catalog" | "ProvisionerClass") => conditions::must_be_ready(object),
        // A PodDisruptionBudget that allows no disruption and an autoscaler without metrics are as specified.
        ("" | "batch" | "policy" | "autoscaling" | "networking.k8s.io" | "rbac.authorization.k8s.io", _) => {
            Health::healthy()
        }
        _ => conditions::of_custom_kind(object),
    }
}
