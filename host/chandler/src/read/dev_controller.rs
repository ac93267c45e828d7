//! Finds the controller of `chandler dev` on a cluster: it holds the Lease of controllers, so that no second controller works beside it.

use chandler_controller::options::LEASE;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

/// How the identities of these controllers begin.
const IDENTITY: &str = "chandler dev, process ";

/// The identity of the controller of this process.
#[cfg(feature = "dev")]
pub fn identity() -> String {
    format!("{IDENTITY}{}", std::process::id())
}

/// Whether a Lease is held by the controller of a `chandler dev`.
pub fn holds(lease: &Lease) -> bool {
    holder(lease).is_some_and(|holder| holder.starts_with(IDENTITY))
}

/// The process that runs the controller of `chandler dev`, if the cluster is one of `chandler dev`. Without the permission to read the
/// Lease there is none: in `chandler dev`, all users of its kubeconfig are administrators.
pub async fn process(client: &Client, system_namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), system_namespace);
    let lease = leases.get_opt(LEASE).await.ok()??;
    holder(&lease).filter(|_| holds(&lease)).map(str::to_owned)
}

/// The identity of the holder of a Lease.
pub fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}
