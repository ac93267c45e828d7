//! A race: an object is orphaned after the controller reads it and before the controller writes it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chandler_tests::{Cluster, InProcess, Interruption, World, bundles::Bundle, wait};
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use serde_json::json;
use tower::{BoxError, buffer::BufferLayer, filter::AsyncFilterLayer};

use crate::PLAIN;

const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {depth: '10'}\n";

fn charts(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

/// Whether a request applies the chart, without a dry run.
fn applies(request: &Request<Body>) -> bool {
    request.method() == Method::PATCH
        && request.uri().path().ends_with("/configmaps/chart")
        && request.headers().get("content-type").is_some_and(|kind| kind == "application/apply-patch+yaml")
        && !request.uri().query().unwrap_or_default().contains("dryRun")
}

/// The garbage collector has removed the owner reference. An apply that ignores this would restore the reference, and the garbage
/// collector would delete the object.
#[tokio::test]
async fn an_object_orphaned_during_a_repair_is_not_adopted_again() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    if !world.collects_garbage() {
        eprintln!("skipped: no garbage collector runs on this API server, so nothing is orphaned");
        return world.finish().await;
    }
    // The controller must not see the deletion, or it would drop the request itself.
    let interruption = Interruption::of("/bundledeployments");
    let name = world.name();
    let (armed, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let orphaning = {
        let (client, deployments, interruption) = (world.client.clone(), world.deployments(), interruption.clone());
        let (name, namespace, armed, sent) = (name.clone(), world.namespace.clone(), armed.clone(), sent.clone());
        AsyncFilterLayer::new(move |request: Request<Body>| {
            let meets = applies(&request) && armed.swap(false, Ordering::SeqCst);
            if sent.load(Ordering::SeqCst) && !request.uri().path().ends_with("/bundledeployments") {
                // The request has completed, and the controller continues.
                interruption.end();
            }
            let (deployments, charts, name) = (deployments.clone(), charts(&client, &namespace), name.clone());
            let (interruption, sent) = (interruption.clone(), Arc::clone(&sent));
            async move {
                if meets {
                    interruption.begin();
                    deployments.delete(&name, &DeleteParams::orphan()).await.expect("the object exists");
                    wait::until(&charts, "chart", "orphaned", |chart| {
                        chart.is_some_and(|chart| chart.owner_references().is_empty())
                    })
                    .await;
                    sent.store(true, Ordering::SeqCst);
                }
                Ok::<_, BoxError>(request)
            }
        })
    };
    let config: Config = world.config();
    let client = chandler_client::builder(config).expect("a usable configuration").with_layer(&interruption);
    // The filter needs a service that can be cloned.
    let client = client.with_layer(&BufferLayer::new(1024)).with_layer(&orphaning).build();
    world.start_controller_on(InProcess::ChangesRequests, client);
    let image = world.push(&Bundle::empty().with("manifests/chart.yaml", CHART)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let charts = charts(&world.client, &world.namespace);
    let before = charts.get("chart").await.expect("the object exists");

    armed.store(true, Ordering::SeqCst);
    let edit = Patch::Merge(json!({"data": {"depth": "0"}}));
    charts.patch("chart", &PatchParams::default(), &edit).await.expect("an edit");
    wait::until(&world.deployments(), &name, "gone", |found| found.is_none()).await;
    assert!(sent.load(Ordering::SeqCst), "the repair was sent during the deletion");
    let after = charts.get("chart").await.expect("the object stays");
    assert_eq!((after.uid(), after.owner_references()), (before.uid(), [].as_slice()));
    assert_eq!(after.metadata.deletion_timestamp, None);
    world.finish().await;
}
