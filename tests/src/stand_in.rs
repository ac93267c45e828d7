//! What a controller manager would do on an API server that has none: workloads become available, and deleted namespaces go.

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

/// The node that the simulation of workloads makes.
const SIMULATED_NODE: &str = "devcluster-node";

/// Whether somebody else runs controllers on this server. A running controller manager holds a lease, unless it was told not to
/// elect a leader (k3s); where there are nodes, there is a cluster.
pub async fn is_needless(client: &Client) -> bool {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get_opt("kube-controller-manager").await.ok().flatten();
    let holder = lease.and_then(|lease| lease.spec).and_then(|spec| spec.holder_identity);
    if holder.is_some_and(|holder| !holder.is_empty()) {
        return true;
    }
    let nodes = Api::<Node>::all(client.clone()).list_metadata(&ListParams::default()).await;
    nodes.map_or(true, |nodes| nodes.iter().any(|node| node.name_any() != SIMULATED_NODE))
}

/// Works until `shutdown` is ready; on namespaces only where nobody else does.
pub async fn run(client: Client, bare: bool, shutdown: impl Future<Output = ()>) {
    let simulation = Simulation { bare: true, ..Simulation::default() };
    let workloads = simulate_workloads(client.clone(), simulation, shutdown);
    let namespaces = namespaces(client, bare);
    pin_mut!(workloads, namespaces);
    select(workloads, namespaces).await;
}

/// Where nobody else does it: takes the finalizer `kubernetes` off deleted namespaces of tests, which delete what they put into
/// one before it. Never ends.
pub async fn namespaces(client: Client, bare: bool) {
    let api: Api<Namespace> = Api::all(client.clone());
    let mut changes = watcher(api, watcher::Config::default()).default_backoff().touched_objects().boxed();
    while bare && let Some(change) = changes.next().await {
        let Ok(mut namespace) = change else { continue };
        if namespace.metadata.deletion_timestamp.is_none() || !is_of_a_test(&namespace.metadata) {
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

/// Whether a test made an object, or the release of a BundleDeployment that a test made holds it.
pub fn is_of_a_test(metadata: &ObjectMeta) -> bool {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get("core.rukpak.io/owner-name"));
    let in_a_namespace_of_a_test = metadata.namespace.as_deref().is_some_and(run::is_name);
    Run::of(metadata).is_some() || in_a_namespace_of_a_test || owner.is_some_and(|owner| run::is_name(owner))
}

async fn finalize(client: &Client, name: &str, namespace: &Namespace) -> anyhow::Result<()> {
    let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(namespace)?)?;
    client.request::<Namespace>(request).await?;
    Ok(())
}
