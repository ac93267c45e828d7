//! Deleting a BundleDeployment deletes every object of its release, and nothing else.

use chandler_devregistry::{Fault, FaultOn};
use chandler_tests::{World, bundles};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Resource,
    api::{ListParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::REGISTRY;

async fn owned<K>(api: Api<K>, name: &str) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let owned = ListParams::default().labels(&format!("core.rukpak.io/owner-name={name}"));
    let objects = api.list(&owned).await.expect("the API server answers").items;
    objects.into_iter().filter_map(|object| object.meta().name.clone()).collect()
}

#[tokio::test]
async fn deletion_removes_the_release_and_nothing_else() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let bystander: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "bystander", "labels": {"app.kubernetes.io/name": "harbour-operator"}}
    }))
    .expect("a ConfigMap");
    config_maps.create(&PostParams::default(), &bystander).await.expect("a bystander");
    assert_eq!(owned(config_maps.clone(), &name).await, ["harbour-operator-config", "harbour-operator-tides"]);

    world.delete(&name).await;
    let client = || world.client.clone();
    assert_eq!(owned(config_maps.clone(), &name).await, [""; 0]);
    assert_eq!(owned(Api::<Deployment>::namespaced(client(), &world.namespace), &name).await, [""; 0]);
    assert_eq!(owned(Api::<ClusterRole>::all(client()), &name).await, [""; 0]);
    assert_eq!(owned(Api::<CustomResourceDefinition>::all(client()), &name).await, [""; 0]);
    config_maps.get("bystander").await.expect("the bystander still exists");
    world.finish().await;
}

#[tokio::test]
async fn deletion_completes_after_a_controller_outage_without_the_bundle() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;
    world.stop_controller().await;
    world.registry.set_fault(Some((FaultOn::Everything, Fault::Status(500))));
    let deleted = world.deployments().delete(&name, &kube::api::DeleteParams::default()).await;
    deleted.expect("the object is there");
    world.start_controller();
    chandler_tests::wait::until(&world.deployments(), &name, "gone", |deployment| deployment.is_none()).await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert_eq!(owned(deployments, &name).await, [""; 0]);
    world.finish().await;
}
