//! Values that the API server stores although it cannot merge an apply with them, values that it drops, and values that take too much memory.

use chandler_api::{ConditionType, Resolution, find_condition};
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

const ACCOUNT: &str =
    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: keeper}\nautomountServiceAccountToken: false\n";

/// Since the item has no key, the API server can neither attribute it to a manager nor compute the result of an apply.
#[tokio::test]
async fn a_list_item_without_its_key_is_removed_and_the_object_repaired() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/keeper.yaml", ACCOUNT)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;

    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = json!({"secrets": [{"name": "theirs"}, {}], "automountServiceAccountToken": true});
    accounts.patch("keeper", &PatchParams::default(), &Patch::Merge(edit)).await.expect("an edit");
    let keeper = wait::until(&accounts, "keeper", "repaired", |keeper| {
        keeper.and_then(|keeper| keeper.automount_service_account_token) == Some(false)
    })
    .await;
    let secrets: Vec<_> = keeper.into_iter().flat_map(|keeper| keeper.secrets.unwrap_or_default()).collect();
    assert_eq!(secrets.iter().map(|secret| secret.name.as_deref()).collect::<Vec<_>>(), [Some("theirs")]);
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    world.finish().await;
}

#[tokio::test]
async fn an_unknown_field_is_rejected_before_the_first_write() {
    let world = World::new().await;
    let name = world.name();
    let bundle = Bundle::empty()
        .with("manifests/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\ndata: {a: b}\n")
        .with("manifests/b.yaml", &format!("{ACCOUNT}colour: red\n"));
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.condition(&name, "Ready", "False", "ObjectRefused").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(message.contains("keeper") && message.contains("colour"), "{message}");
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(maps.get_opt("first").await.expect("a response").is_none());
    world.finish().await;
}

/// The configuration takes 20 MiB of memory once it is decoded.
#[tokio::test]
async fn a_configuration_that_takes_too_much_memory_is_refused_and_affects_no_other() {
    let mut world = World::new().await;
    let (name, other) = (world.name(), format!("{}-other", world.name()));
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n");
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &map("own"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let mut config = json!({"spec": {"config": {"dense": vec![json!({"": 0}); 30_000]}}});
    world
        .deployments()
        .patch(&name, &PatchParams::default(), &Patch::Merge(&config))
        .await
        .expect("the API server accepts it");
    let refused = world.condition(&name, "Ready", "False", "InvalidSpec").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    assert!(message.contains("MiB of memory") && message.contains("ConfigMaps or Secrets"), "{message}");

    // A controller that starts reads it in a list.
    world.stop_controller().await;
    world.start_controller();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &map("other"))).await;
    world.deploy(&other, PLAIN, &image).await;
    world.ready(&other).await;
    assert!(world.config_maps().get_opt("own").await.expect("a response").is_some(), "what is installed stays");

    config["spec"]["config"] = json!(null);
    world
        .deployments()
        .patch(&name, &PatchParams::default(), &Patch::Merge(&config))
        .await
        .expect("the API server accepts it");
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_resolution_that_takes_too_much_memory_is_reported() {
    let world = World::new().await;
    let resolutions: Api<Resolution> = Api::all(world.client.clone());
    let dense = vec![json!({"": 0}); 30_000];
    let mut resolution = json!({
        "metadata": {"name": world.name()},
        "spec": {
            "packages": [],
            "output": {"type": "ResolveSet", "resolveSet": {"installNamespace": world.namespace, "config": {"app": {"dense": dense}}}},
        },
    });
    world.mark(&mut resolution);
    let resolution: Resolution = serde_json::from_value(resolution).expect("a Resolution");
    resolutions.create(&PostParams::default(), &resolution).await.expect("the API server accepts it");
    let stalled = wait::until(&resolutions, &world.name(), "reported", |resolution| {
        let status = resolution.and_then(|resolution| resolution.status.as_ref());
        status.is_some_and(|status| find_condition(&status.conditions, ConditionType::Stalled).is_some())
    })
    .await;
    let status = stalled.and_then(|resolution| resolution.status).expect("a status");
    let stalled = find_condition(&status.conditions, ConditionType::Stalled).expect("Stalled");
    assert_eq!(stalled.reason, "InvalidSpec");
    assert!(stalled.message.contains("MiB of memory"), "{}", stalled.message);
    resolutions.delete(&world.name(), &DeleteParams::default()).await.expect("it exists");
    world.finish().await;
}
