//! A race: a custom resource is created after the controller found its CRD unused and before the controller deletes the CRD.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chandler_tests::{Cluster, InProcess, World, bundles::Bundle};
use http::{Method, Request};
use kube::{
    api::{DeleteParams, PostParams},
    client::Body,
};
use tower::{BoxError, buffer::BufferLayer, filter::AsyncFilterLayer};

use crate::{
    PLAIN,
    deletion_policy::{CONFIG_MAP, crd, crds, delete, gone, ox, oxen, reports},
};

/// It is deleted before the CRD.
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: operator}\nspec: {ports: [{port: 80}]}\n";

/// A world with a BundleDeployment of a CRD, a ConfigMap and a Service. Once the flag is set, the custom resource `late` is created
/// immediately before the next request of the controller that writes the object at this path with this method.
async fn racing(method: Method, path: &'static str) -> (World, String, Arc<AtomicBool>) {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let armed = Arc::new(AtomicBool::new(false));
    let (oxen, late, is_armed) = (oxen(&world), ox(&world, "late", &[]), Arc::clone(&armed));
    let race = AsyncFilterLayer::new(move |request: Request<Body>| {
        let meets = request.method() == method
            && request.uri().path().ends_with(path)
            && !request.uri().query().unwrap_or_default().contains("dryRun")
            && is_armed.swap(false, Ordering::SeqCst);
        let (oxen, late) = (oxen.clone(), late.clone());
        async move {
            if meets {
                oxen.create(&PostParams::default(), &late).await.expect("the CRD exists");
            }
            Ok::<_, BoxError>(request)
        }
    });
    let client = chandler_client::builder(world.config()).expect("a usable configuration");
    // The filter needs a service that can be cloned.
    let client = client.with_layer(&BufferLayer::new(1024)).with_layer(&race).build();
    world.start_controller_on(InProcess::ChangesRequests, client);
    let bundle = Bundle::empty().with("manifests/crd.yaml", &crd(&world).0).with("manifests/map.yaml", CONFIG_MAP);
    let (name, image) = (world.name(), world.push(&bundle.with("manifests/service.yaml", SERVICE)).await);
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    (world, name, armed)
}

async fn is_kept(world: &World) {
    oxen(world).get("late").await.expect("the object stays");
    let kept = crds(world).get(&crd(world).1).await.expect("the object stays");
    assert_eq!(kept.metadata.deletion_timestamp, None);
}

#[tokio::test]
async fn a_crd_that_is_used_during_an_upgrade_is_not_pruned() {
    let (world, name, armed) = racing(Method::PATCH, "/configmaps/operator").await;
    let changed = format!("{CONFIG_MAP}data: {{depth: '10'}}\n");
    let without = world.push(&Bundle::empty().with("manifests/map.yaml", &changed)).await;
    armed.store(true, Ordering::SeqCst);
    world.deploy(&name, PLAIN, &without).await;
    let ready = world.ready(&name).await;
    assert!(!armed.load(Ordering::SeqCst), "the object was created during the rollout");
    is_kept(&world).await;
    let warnings = ready.status.and_then(|status| status.release).unwrap_or_default().warnings;
    assert!(warnings.iter().any(|warning| warning.code == "CustomResourcesExist"), "{warnings:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_crd_that_is_used_during_a_deletion_is_not_deleted() {
    let (world, name, armed) = racing(Method::DELETE, "/services/operator").await;
    armed.store(true, Ordering::SeqCst);
    delete(&world, &name).await;
    reports(&world, &name, "CustomResourcesExist", "late").await;
    assert!(!armed.load(Ordering::SeqCst), "the object was created during the deletion");
    is_kept(&world).await;
    oxen(&world).delete("late", &DeleteParams::default()).await.expect("the object exists");
    gone(&world, &name).await;
    world.finish().await;
}
