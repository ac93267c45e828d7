//! An object that cannot be repaired does not block the repair of others.

use chandler_tests::{
    World,
    bundles::{Bundle, config_map},
    wait,
    world::condition,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

async fn edit(world: &World, name: &str, edit: Value) {
    world.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(edit)).await.expect("the object exists");
}

fn is_of_bundle(map: Option<&ConfigMap>) -> bool {
    map.and_then(|map| map.data.as_ref()).and_then(|data| data.get("from")).map(String::as_str) == Some("bundle")
}

/// Edits one object and deletes another, and waits until both are repaired.
async fn assert_others_are_repaired(world: &World) {
    edit(world, "edited", json!({"data": {"from": "another-user"}})).await;
    world.config_maps().delete("deleted", &DeleteParams::default()).await.expect("the object exists");
    for name in ["edited", "deleted"] {
        wait::until(&world.config_maps(), name, "as in the release", is_of_bundle).await;
    }
}

async fn installed() -> (World, String) {
    let world = World::new().await;
    let name = world.name();
    let maps = ["unrepairable", "edited", "deleted"];
    let bundle = maps.iter().fold(Bundle::empty(), |bundle, name| {
        bundle.with(&format!("manifests/{name}.yaml"), &config_map(name, "bundle"))
    });
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    (world, name)
}

#[tokio::test]
async fn an_immutable_object_blocks_no_other_repair() {
    let (world, name) = installed().await;
    let poison = json!({"immutable": true, "data": {"from": "another-user"},
        "metadata": {"annotations": {"chandler.dev/applied": "x"}}});
    edit(&world, "unrepairable", poison).await;
    world.condition(&name, "Drifted", "True", "RepairFailed").await;
    assert_others_are_repaired(&world).await;
    let deployment = world.condition(&name, "Ready", "False", "ImmutableField").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(message.contains("/unrepairable") && message.contains("immutable"), "{message}");
    world.config_maps().delete("unrepairable", &DeleteParams::default()).await.expect("the object exists");
    wait::until(&world.config_maps(), "unrepairable", "as in the release", is_of_bundle).await;
    world.condition(&name, "Ready", "True", "Succeeded").await;
    world.finish().await;
}

#[tokio::test]
async fn an_object_with_another_owner_blocks_no_other_repair() {
    let (world, name) = installed().await;
    let other = serde_json::from_value(json!({"metadata": {"name": "other"}})).expect("a ConfigMap");
    let other = world.config_maps().create(&PostParams::default(), &other).await.expect("a ConfigMap");
    let before = world.config_maps().get("unrepairable").await.expect("the object exists");
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.uid(), "controller": true});
    edit(&world, "unrepairable", json!({"metadata": {"ownerReferences": [owner]}})).await;
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    world.condition(&name, "Drifted", "True", "RepairFailed").await;
    assert_others_are_repaired(&world).await;
    // The object still belongs to the other owner: the controller left it alone.
    let after = world.config_maps().get("unrepairable").await.expect("the object exists");
    assert_eq!((after.uid(), after.owner_references()[0].uid.clone()), (before.uid(), other.uid().unwrap_or_default()));
    world.finish().await;
}

#[tokio::test]
async fn an_unhealthy_object_blocks_no_repair_in_a_later_stage() {
    let world = World::new().await;
    let name = world.name();
    let keeper = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: keeper}\nspec:\n  selector: {matchLabels: {app: k}}\n  \
                  template:\n    metadata: {labels: {app: k}}\n    spec: {containers: [{name: k, image: \
                  'registry.k8s.io/pause:3.10'}]}\n";
    let bundle = Bundle::empty()
        .with("manifests/0000_50_a_01.yaml", keeper)
        .with("manifests/0000_60_b_01.yaml", &config_map("edited", "bundle"))
        .with("manifests/0000_60_b_02.yaml", &config_map("deleted", "bundle"));
    let image = world.push(&bundle).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["ignoreDifferences"] =
        json!([{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/template/spec/containers/0/image"]}]);
    world.apply(&name, spec).await;
    world.ready(&name).await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let broken =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.invalid/k:v1"}]);
    let broken: Patch<Deployment> = Patch::Json(serde_json::from_value(broken).expect("a patch"));
    deployments.patch("keeper", &PatchParams::default(), &broken).await.expect("the object exists");
    let weak = |keeper: Option<&Deployment>| {
        let status = keeper.and_then(|keeper| keeper.status.as_ref());
        status.is_some_and(|status| {
            status.updated_replicas.unwrap_or_default() > status.ready_replicas.unwrap_or_default()
                || status.unavailable_replicas.is_some()
        })
    };
    wait::until(&deployments, "keeper", "unhealthy", weak).await;
    assert_others_are_repaired(&world).await;
    world.finish().await;
}
