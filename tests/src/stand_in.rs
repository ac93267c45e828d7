//! What a controller manager would do on an API server that has none: workloads become available, and deleted namespaces go.

use std::future::{Future, pending};

use chandler_devcluster::workloads::{Simulation, simulate_workloads};
use futures::{StreamExt as _, future::select, pin_mut};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};

/// Works until `shutdown` is ready; on namespaces only where nobody else does.
pub async fn run(client: Client, namespaces: bool, shutdown: impl Future<Output = ()>) {
    let simulation = Simulation { bare: true, ..Simulation::default() };
    let workloads = simulate_workloads(client.clone(), simulation, shutdown);
    let namespaces = async {
        if namespaces {
            finalize_namespaces(client).await;
        } else {
            pending::<()>().await;
        }
    };
    pin_mut!(workloads, namespaces);
    select(workloads, namespaces).await;
}

/// Takes the finalizer `kubernetes` off deleted namespaces. Tests delete what they put into one before it.
async fn finalize_namespaces(client: Client) {
    let api: Api<Namespace> = Api::all(client.clone());
    let mut changes = watcher(api, watcher::Config::default()).default_backoff().touched_objects().boxed();
    while let Some(change) = changes.next().await {
        let Ok(mut namespace) = change else { continue };
        if namespace.metadata.deletion_timestamp.is_none() {
            continue;
        }
        let Some(spec) = namespace.spec.as_mut().filter(|spec| spec.finalizers.is_some()) else { continue };
        spec.finalizers = None;
        let name = namespace.name_any();
        if let Err(error) = finalize(&client, &name, &namespace).await {
            tracing::debug!(namespace = %name, %error, "failed to finalize");
        }
    }
}

async fn finalize(client: &Client, name: &str, namespace: &Namespace) -> anyhow::Result<()> {
    let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(namespace)?)?;
    client.request::<Namespace>(request).await?;
    Ok(())
}
