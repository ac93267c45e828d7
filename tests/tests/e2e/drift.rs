//! A managed object that is edited or deleted comes back as it was.

use chandler_tests::{World, bundles, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::REGISTRY;

#[tokio::test]
async fn a_deleted_object_comes_back_and_an_edit_is_undone() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let before = config_maps.get("harbour-operator-tides").await.expect("the ConfigMap");
    config_maps.delete("harbour-operator-tides", &DeleteParams::default()).await.expect("it can be deleted");
    wait::until(&config_maps, "harbour-operator-tides", "created again", |map| {
        map.is_some_and(|map| map.metadata.uid != before.metadata.uid && map.data == before.data)
    })
    .await;

    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("it can be edited");
    wait::until(&config_maps, "harbour-operator-tides", "as it was", |map| {
        map.is_some_and(|map| map.data == before.data)
    })
    .await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn what_others_add_stays() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let restart = json!({"spec": {
        "replicas": 3,
        "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}},
    }});
    operators.patch("harbour-operator", &PatchParams::default(), &Patch::Merge(restart)).await.expect("an edit");
    // The field of the bundle is repaired, the annotation that nobody else owns stays.
    let operator = wait::until(&operators, "harbour-operator", "repaired", |operator| {
        operator.and_then(|operator| operator.spec.as_ref()?.replicas) == Some(1)
    })
    .await;
    let template = operator.and_then(|operator| operator.spec?.template.metadata?.annotations).expect("annotations");
    assert!(template.contains_key("kubectl.kubernetes.io/restartedAt"));
    world.finish().await;
}
