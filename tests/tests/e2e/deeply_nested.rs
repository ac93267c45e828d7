//! Objects that are nested more deeply than the controller's JSON parser reads: an API server stores them, and they must affect
//! nothing else.

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

/// JSON with this nesting depth. The objects of these tests have 127 levels: as many as `serde_json` reads in a single object, and
/// more than it reads in a list.
fn nested(levels: usize, name: &str) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({name: inner}))
}

async fn edit_is_repaired(world: &World, name: &str) {
    let edit = Patch::Merge(json!({"data": {"from": "another-user"}}));
    world.config_maps().patch(name, &PatchParams::default(), &edit).await.expect("the object exists");
    wait::until(&world.config_maps(), name, "as in the release", |map| {
        map.and_then(|map| map.data.as_ref()?.get("from").map(String::as_str)) == Some("bundle")
    })
    .await;
}

#[tokio::test]
async fn a_deeply_nested_object_blocks_neither_repair_nor_deletion() {
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
        .expect("managedFields can be written");

    for _ in 0..2 {
        edit_is_repaired(&world, "flat").await;
        // A controller that has not seen the object before.
        world.stop_controller().await;
        world.start_controller();
    }
    world.ready(&name).await;
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("flat").await.expect("a response").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_deeply_nested_configuration_is_rejected_and_blocks_no_other_deployment() {
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
    deployments.patch(&name, &PatchParams::default(), &deep).await.expect("the change is accepted");

    for _ in 0..2 {
        let refused = wait::until(&deployments, &name, "refused", |deployment| {
            deployment.and_then(|it| condition(it, "Progressing")).is_some_and(|it| it.reason == "InvalidConfiguration")
        })
        .await
        .expect("the object exists");
        let message = &condition(&refused, "Progressing").expect("Progressing").message;
        assert!(message.contains("spec.config") && message.contains("nested"), "{message}");
        // The current release is still repaired, and so are other BundleDeployments.
        edit_is_repaired(&world, "own").await;
        edit_is_repaired(&world, "other").await;
        world.stop_controller().await;
        world.start_controller();
    }
    deployments.delete(&name, &DeleteParams::default()).await.expect("the object exists");
    wait::until(&deployments, &name, "gone", |deployment| deployment.is_none()).await;
    assert!(world.config_maps().get_opt("own").await.expect("a response").is_none());
    world.finish().await;
}
