//! Objects with the annotation `helm.sh/resource-policy: keep` stay when a release drops them, and when their BundleDeployment is deleted.

use chandler_tests::{World, bundles::Bundle};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    PLAIN,
    deletion_policy::{CONFIG_MAP, crd, crds, create_ox, delete, gone, is_unmarked, oxen},
};

const DATA: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data, annotations: {helm.sh/resource-policy: keep}}\ndata: {a: b}\n";

/// A bundle with a CRD and a ConfigMap that ask to stay, and a ConfigMap that does not; and one with the last only.
async fn pushed(world: &World) -> [String; 2] {
    let kept = crd(world).0.replace("metadata: {", "metadata: {annotations: {helm.sh/resource-policy: keep}, ");
    let bundle = || Bundle::empty().with("manifests/map.yaml", CONFIG_MAP);
    let (without, with) = (bundle(), bundle().with("manifests/crd.yaml", &kept).with("manifests/data.yaml", DATA));
    [world.push(&with).await, world.push(&without).await]
}

async fn data(world: &World) -> Option<ConfigMap> {
    world.config_maps().get_opt("data").await.expect("a response")
}

#[tokio::test]
async fn objects_that_ask_to_stay_outlive_the_release_and_the_bundle_deployment() {
    let world = World::new().await;
    let (name, plural) = (world.name(), crd(&world).1);
    let [with, without] = pushed(&world).await;
    world.deploy(&name, PLAIN, &with).await;
    world.ready(&name).await;
    let uid = data(&world).await.expect("it is installed").uid();
    create_ox(&world, "a", &[]).await;

    // The release no longer has them.
    world.deploy(&name, PLAIN, &without).await;
    let ready = world.ready(&name).await;
    let release = ready.status.and_then(|status| status.release).unwrap_or_default();
    assert!(release.warnings.is_empty(), "{:?}", release.warnings);
    let kept = data(&world).await.expect("the object stays");
    assert!(is_unmarked(&kept.metadata), "{:?}", kept.metadata);
    assert!(is_unmarked(&crds(&world).get(&plural).await.expect("the object stays").metadata));

    // It has them again: they are the same objects.
    world.deploy(&name, PLAIN, &with).await;
    world.ready(&name).await;
    let again = data(&world).await.expect("the object stays");
    assert!(again.uid() == uid && !is_unmarked(&again.metadata), "{:?}", again.metadata);

    delete(&world, &name).await;
    gone(&world, &name).await;
    assert!(world.config_maps().get_opt("operator").await.expect("a response").is_none());
    let left = data(&world).await.expect("the object stays");
    assert!(left.uid() == uid && is_unmarked(&left.metadata), "{:?}", left.metadata);
    oxen(&world).get("a").await.expect("the custom resource stays with its CRD");
    crds(&world).delete(&plural, &DeleteParams::default()).await.expect("the object exists");
    world.finish().await;
}

#[tokio::test]
async fn an_administrator_keeps_an_object_and_the_spec_deletes_what_asks_to_stay() {
    let world = World::new().await;
    let (name, other) = (world.name(), format!("{}-other", world.name()));
    let image = world.push(&Bundle::empty().with("manifests/map.yaml", CONFIG_MAP)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    world
        .config_maps()
        .patch("operator", &PatchParams::default(), &Patch::Merge(keep))
        .await
        .expect("the object exists");
    delete(&world, &name).await;
    gone(&world, &name).await;
    let kept = world.config_maps().get("operator").await.expect("the object stays");
    assert!(is_unmarked(&kept.metadata), "{:?}", kept.metadata);
    world.config_maps().delete("operator", &DeleteParams::default()).await.expect("the object exists");

    let mut spec = world.spec(PLAIN, &pushed(&world).await[0]);
    spec["deletion"] = json!({"policy": "Delete"});
    world.apply(&other, spec).await;
    world.ready(&other).await;
    delete(&world, &other).await;
    gone(&world, &other).await;
    assert!(data(&world).await.is_none());
    assert!(crds(&world).get_opt(&crd(&world).1).await.expect("a response").is_none());
    world.finish().await;
}
