//! A controller with a selector reconciles only selected objects, and leaves all others to other controllers.

use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_tests::{Cluster, World, bundles::Bundle, run, wait, world::condition};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{PLAIN, permissions::request_reconcile};

async fn bundle(world: &World, depth: &str) -> String {
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: chart}}\ndata: {{depth: '{depth}'}}\n");
    world.push(&Bundle::empty().with("manifests/map.yaml", &map)).await
}

async fn label(world: &World, name: &str, shard: &str) -> BundleDeployment {
    let labels = Patch::Merge(json!({"metadata": {"labels": {"example.com/shard": shard}}}));
    world.deployments().patch(name, &PatchParams::default(), &labels).await.expect("the object exists")
}

/// Waits until the controller has seen all earlier changes.
async fn wait_until_caught_up(world: &World, name: &str) {
    request_reconcile(world, name).await;
    wait::until(&world.deployments(), name, "reconciled", |deployment| {
        deployment.is_some_and(|deployment| {
            let asked = deployment.annotations().get("reconcile.chandler.dev/requestedAt");
            let handled = deployment.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_ref());
            asked.is_some() && asked == handled
        })
    })
    .await;
}

#[tokio::test]
async fn a_controller_reconciles_only_selected_objects() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let (mine, other) = (world.name(), format!("{}-other", world.name()));
    let image = bundle(&world, "10").await;
    let class: ProvisionerClass =
        world.create(json!({"metadata": {"name": other}, "spec": {"image": "registry.invalid/none:v1"}})).await;
    world.deploy(&other, PLAIN, &image).await;
    let untouched = label(&world, &other, "b").await;
    world.deploy(&mine, &other, &image).await;
    label(&world, &mine, "a").await;
    let selector = format!("{},example.com/shard in (a)", run::selector([world.run()]));
    world.start_controller_changed(|options| options.watch_selector = selector.parse().expect("a selector"));

    // A class that is not selected is not used, and BundleDeployments that name it report why.
    let missing = world.condition(&mine, "Ready", "False", "ProvisionerMissing").await;
    let message = &condition(&missing, "Ready").expect("Ready").message;
    assert!(message.contains(&format!("labels that match --watch-selector {selector:?}")), "{message}");
    world.deploy(&mine, PLAIN, &image).await;
    world.ready(&mine).await;
    let version = |deployment: &BundleDeployment| deployment.resource_version();
    assert_eq!(version(&world.deployments().get(&other).await.expect("the object exists")), version(&untouched));
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let now = classes.get(&other).await.expect("the object exists");
    assert_eq!(now.resource_version(), class.resource_version());

    // An object that is no longer selected is left to another controller, with everything in the cluster.
    world.delete(&mine).await;
    label(&world, &other, "a").await;
    world.ready(&other).await;
    world.deploy(&mine, PLAIN, &image).await;
    label(&world, &mine, "a").await;
    world.condition(&mine, "Ready", "False", "ObjectCollision").await;
    label(&world, &other, "b").await;
    let deeper = bundle(&world, "20").await;
    let released = world.deploy(&other, PLAIN, &deeper).await;
    wait_until_caught_up(&world, &mine).await;
    let now = world.deployments().get(&other).await.expect("the object exists");
    assert_eq!(version(&now), version(&released));
    label(&world, &other, "a").await;
    world.ready(&other).await;
    world.finish().await;
}
