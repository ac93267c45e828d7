//! Objects that are nested more deeply than JSON is read here: an API server stores them, and nothing else may suffer.

use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
    world::condition,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

/// JSON that is nested so deeply. The objects of these tests have 127 levels: as many as `serde_json` reads alone, and more than it
/// reads in a list.
fn nested(levels: usize, name: &str) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({name: inner}))
}

async fn edit_is_repaired(world: &World, name: &str) {
    let edit = Patch::Merge(json!({"data": {"from": "somebody"}}));
    world.config_maps().patch(name, &PatchParams::default(), &edit).await.expect("it is there");
    wait::until(&world.config_maps(), name, "as released", |map| {
        map.and_then(|map| map.data.as_ref()?.get("from").map(String::as_str)) == Some("bundle")
    })
    .await;
}

#[tokio::test]
async fn an_object_with_deep_records_stops_neither_repairs_nor_the_deletion() {
    let mut world = World::new().await;
    let name = world.name();
    let bundle = Bundle::empty()
        .with("manifests/a.yaml", &config_map("deep", "bundle"))
        .with("manifests/b.yaml", &config_map("flat", "bundle"));
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let fields = json!({"f:data": nested(121, "f:a")});
    let record = json!({"manager": "mallory", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields});
    let records = json!({"metadata": {"managedFields": [record]}});
    let metadata: Api<kube::core::PartialObjectMeta<ConfigMap>> =
        Api::namespaced(chandler_rollout::readable(&world.client), &world.namespace);
    metadata
        .patch_metadata("deep", &PatchParams::default(), &Patch::Merge(records))
        .await
        .expect("records can be written");

    for _ in 0..2 {
        edit_is_repaired(&world, "flat").await;
        // One that has not seen it before.
        world.stop_controller().await;
        world.start_controller();
    }
    world.ready(&name).await;
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("flat").await.expect("an answer").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_deep_configuration_is_refused_and_stops_no_other_deployment() {
    let mut world = World::new().await;
    let (name, other) = (world.name(), format!("{}-other", world.name()));
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("other", "bundle"))).await;
    world.deploy(&other, PLAIN, &image).await;
    world.ready(&other).await;
    let bundle = Bundle::empty().with("manifests/a.yaml", &config_map("own", "bundle"));
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let deep = Patch::Merge(json!({"spec": {"config": {"deep": nested(123, "a")}}}));
    let readable = chandler_rollout::readable(&world.client);
    let deployments: Api<chandler_api::BundleDeployment> = Api::all(readable);
    deployments.patch(&name, &PatchParams::default(), &deep).await.expect("it can be stored");

    for _ in 0..2 {
        let refused = wait::until(&deployments, &name, "refused", |deployment| {
            deployment.and_then(|it| condition(it, "Progressing")).is_some_and(|it| it.reason == "InvalidConfiguration")
        })
        .await
        .expect("it is there");
        let message = &condition(&refused, "Progressing").expect("Progressing").message;
        assert!(message.contains("spec.config") && message.contains("nested"), "{message}");
        // What runs is looked after all the same, and so are others.
        edit_is_repaired(&world, "own").await;
        edit_is_repaired(&world, "other").await;
        world.stop_controller().await;
        world.start_controller();
    }
    deployments.delete(&name, &DeleteParams::default()).await.expect("it is there");
    wait::until(&deployments, &name, "gone", |deployment| deployment.is_none()).await;
    assert!(world.config_maps().get_opt("own").await.expect("an answer").is_none());
    world.finish().await;
}
