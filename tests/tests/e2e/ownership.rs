//! Foreign objects are neither changed nor adopted.

use chandler_tests::{World, bundles, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

use crate::REGISTRY;

#[tokio::test]
async fn a_collision_with_a_foreign_object_stops_the_rollout_before_the_first_write() {
    let world = World::new().await;
    let name = world.name();
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let foreign = json!({"metadata": {"name": "harbour-operator-config"}, "data": {"mine": "yes"}});
    let foreign: ConfigMap = serde_json::from_value(foreign).expect("a ConfigMap");
    let foreign = config_maps.create(&PostParams::default(), &foreign).await.expect("a ConfigMap");

    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    let deployment = world.condition(&name, "Installed", "False", "InstallFailed").await;
    let message = &condition(&deployment, "Installed").expect("Installed").message;
    assert!(message.contains(&format!("ConfigMap {}/harbour-operator-config", world.namespace)), "{message}");
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.list(&ListParams::default()).await.expect("a list").items.is_empty());

    // Deleting the BundleDeployment leaves the foreign object alone, too.
    world.delete(&name).await;
    let after = config_maps.get("harbour-operator-config").await.expect("the foreign object");
    assert_eq!(after, foreign);

    // Once the foreign object is deleted, the installation succeeds without further help.
    world.deploy(&name, REGISTRY, &image).await;
    world.condition(&name, "Installed", "False", "InstallFailed").await;
    config_maps.delete("harbour-operator-config", &DeleteParams::default()).await.expect("the deletion is accepted");
    world.ready(&name).await;
    world.finish().await;
}
