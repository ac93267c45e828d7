//! The verdict on an object by the rules of its kind.
//!
//! The rules follow kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status/{core,generic}.go`); where they differ, the function
//! says why. docs/health.md is the same table for administrators.

use serde_json::Value;

use crate::{
    conditions,
    dependencies::Dependencies,
    health::Health,
    reader::{Reader, terminating},
    resources,
    workloads::{self, pods},
};

/// The health of a live object among what is known of its surroundings.
///
/// Any JSON is accepted; what is no object of a known shape says nothing about itself and is healthy.
pub fn assess(object: &Value, dependencies: &Dependencies) -> Health {
    let object = Reader(object);
    let (group, kind) = object.group_kind();
    if object.is_terminating() {
        return Health::progressing(terminating(object));
    }
    // What the API server's own controllers set has no generation to wait for.
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
        // These always carry the condition once their controller has seen them.
        ("cert-manager.io", "Certificate" | "Issuer" | "ClusterIssuer")
        | ("core.rukpak.io", "BundleDeployment")
        | ("chandler.dev", "ProvisionerClass") => conditions::must_be_ready(object),
        // A budget that allows no disruption and an autoscaler without metrics are what they should be.
        ("" | "batch" | "policy" | "autoscaling" | "networking.k8s.io" | "rbac.authorization.k8s.io", _) => {
            Health::healthy()
        }
        _ => conditions::of_custom_kind(object),
    }
}
