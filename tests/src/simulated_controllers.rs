//! Simulates a controller manager on an API server without one: workloads become available, and deleted namespaces are finalized.

use std::future::Future;

use chandler_devcluster::workloads::{Simulation, simulate_workloads};
use futures::{StreamExt as _, future::select, pin_mut};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Namespace, Node},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};

use crate::run::{self, Run};

/// The node that the workload simulation creates.
const SIMULATED_NODE: &str = "devcluster-node";

/// Whether the server needs no simulation, because controllers run on it. A controller manager holds a lease, unless it runs
/// without leader election (k3s); nodes also show that this is a complete cluster.
pub async fn are_needless(client: &Client) -> bool {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get_opt("kube-controller-manager").await.ok().flatten();
    let holder = lease.and_then(|lease| lease.spec).and_then(|spec| spec.holder_identity);
    if holder.is_some_and(|holder| !holder.is_empty()) {
        return true;
    }
    let nodes = Api::<Node>::all(client.clone()).list_metadata(&ListParams::default()).await;
    nodes.map_or(true, |nodes| nodes.iter().any(|node| node.name_any() != SIMULATED_NODE))
}

/// Runs until `shutdown` completes. Finalizes namespaces only if `bare`: the server has no namespace controller.
pub async fn run(client: Client, bare: bool, shutdown: impl Future<Output = ()>) {
    let simulation = Simulation { bare: true, ..Simulation::default() };
    let workloads = simulate_workloads(client.clone(), simulation, shutdown);
    let namespaces = finalize_namespaces(client, bare);
    pin_mut!(workloads, namespaces);
    select(workloads, namespaces).await;
}

/// If `bare`, removes the finalizer `kubernetes` from deleted namespaces of tests. Tests delete the content of a namespace before
/// the namespace. Never returns.
pub async fn finalize_namespaces(client: Client, bare: bool) {
    let api: Api<Namespace> = Api::all(client.clone());
    let mut changes = watcher(api, watcher::Config::default()).default_backoff().touched_objects().boxed();
    while bare && let Some(change) = changes.next().await {
        let Ok(mut namespace) = change else { continue };
        if namespace.metadata.deletion_timestamp.is_none() || !belongs_to_test(&namespace.metadata) {
            continue;
        }
        let Some(spec) = namespace.spec.as_mut().filter(|spec| spec.finalizers.is_some()) else { continue };
        spec.finalizers = None;
        let name = namespace.name_any();
        if let Err(error) = finalize(&client, &name, &namespace).await {
            tracing::debug!(namespace = %name, %error, "failed to finalize");
        }
    }
    std::future::pending::<()>().await;
}

/// Whether a test created the object, or it belongs to the release of a BundleDeployment that a test created.
pub fn belongs_to_test(metadata: &ObjectMeta) -> bool {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get("core.rukpak.io/owner-name"));
    let in_test_namespace = metadata.namespace.as_deref().is_some_and(run::is_name);
    Run::of(metadata).is_some() || in_test_namespace || owner.is_some_and(|owner| run::is_name(owner))
}

async fn finalize(client: &Client, name: &str, namespace: &Namespace) -> anyhow::Result<()> {
    let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(namespace)?)?;
    client.request::<Namespace>(request).await?;
    Ok(())
}
