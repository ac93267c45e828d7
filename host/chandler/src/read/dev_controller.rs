//! Finds the controller of `chandler dev` on a cluster: it holds a Lease, so that no second controller works beside it.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

/// The name of the Lease in the system namespace.
pub const LEASE: &str = "chandler-dev";

/// The process that runs the controller of `chandler dev`, if the cluster is one of `chandler dev`. Without the permission to read the
/// Lease there is none: on a `chandler dev` everybody who has its kubeconfig is an administrator.
pub async fn holder(client: &Client, system_namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), system_namespace);
    leases.get_opt(LEASE).await.ok()??.spec?.holder_identity
}
