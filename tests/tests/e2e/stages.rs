//! Run levels are rolled out one after another, and a custom resource follows its CRD.

use chandler_api::BundleDeployment;
use chandler_tests::{World, bundles, wait, world::condition};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};

use crate::PLAIN;

fn beacons(world: &World) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "lighthouse.example.com".into(),
        version: "v1".into(),
        api_version: "lighthouse.example.com/v1".into(),
        kind: "Beacon".into(),
        plural: "beacons".into(),
    };
    Api::namespaced_with(world.client.clone(), "lighthouse", &resource)
}

#[tokio::test]
async fn a_custom_resource_follows_its_crd_in_one_bundle() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let beacon = beacons(&world).get("north-head").await.expect("the custom resource");
    assert_eq!(beacon.data.pointer("/spec/periodSeconds"), Some(&serde_json::json!(10)), "the default of the CRD");
    world.finish().await;
}

#[tokio::test]
async fn a_stage_waits_for_the_previous_one() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::stalled_lighthouse()).await;
    world.deploy(&name, PLAIN, &image).await;
    let keepers: Api<Deployment> = Api::namespaced(world.client.clone(), "lighthouse");
    wait::until(&keepers, "keeper", "created", |keeper| keeper.is_some()).await;
    let waits = |deployment: Option<&BundleDeployment>| {
        deployment.and_then(|deployment| condition(deployment, "Progressing")).is_some_and(|progressing| {
            progressing.reason == "RollingOut" && progressing.message.contains("Deployment.apps lighthouse/keeper")
        })
    };
    wait::until(&world.deployments(), &name, "waiting for the keeper", waits).await;
    assert!(
        beacons(&world).get_opt("north-head").await.expect("a response").is_none(),
        "a later stage started too early"
    );

    // A rollout in progress can be superseded.
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    beacons(&world).get("north-head").await.expect("the custom resource");
    world.finish().await;
}
