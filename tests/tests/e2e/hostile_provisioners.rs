//! A misbehaving provisioner fails within its limits and with its own reason, while other BundleDeployments continue.

use std::fs;

use chandler_api::ProvisionerClass;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

/// Creates a class whose provisioner does what a file of the bundle says.
pub(crate) async fn create_class(world: &World, name: &str, limits: serde_json::Value) {
    let component = bundles::workspace().join("target/plugins/test/hostile.wasm");
    let wasm = fs::read(&component)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", component.display()));
    let pushed = world.registry.push_component("provisioners/hostile", "v1", wasm).expect("the registry takes it");
    let class = json!({"metadata": {"name": name}, "spec": {"image": pushed.reference, "limits": limits}});
    let _: ProvisionerClass = world.create(class).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, name, "ready", |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await;
}

#[tokio::test]
async fn every_misbehaviour_gets_its_own_reason_and_blocks_no_other_deployment() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({"timeout": "2s", "memory": "32Mi", "outputBytes": "4Mi"})).await;

    let cases = [
        ("spin", "PluginTimeout", "2 s"),
        ("allocate", "PluginOutOfMemory", "32 MiB"),
        ("recurse", "PluginTrapped", "call stack exhausted"),
        ("panic", "PluginTrapped", "the hold is on fire"),
        ("emit-million", "PluginLimitExceeded", "the provisioner exceeded the limit of "),
        ("emit-garbage", "InvalidOutput", "object 1 (from manifests/a.yaml:7) is not JSON"),
    ];
    for (index, (behaviour, _, _)) in cases.iter().enumerate() {
        let image = world.push(&Bundle::empty().with("provision", behaviour)).await;
        world.deploy(&format!("{class}-{index}"), &class, &image).await;
    }
    // While all of these misbehave, another BundleDeployment is installed.
    let other = format!("{class}-other");
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&other, PLAIN, &image).await;
    world.ready(&other).await;

    for (index, (behaviour, reason, text)) in cases.iter().enumerate() {
        let name = format!("{class}-{index}");
        let found = wait::until(&world.deployments(), &name, reason, |deployment| {
            deployment
                .and_then(|deployment| condition(deployment, "Ready"))
                .is_some_and(|ready| ready.status == "False" && ready.reason == *reason)
        })
        .await;
        let found = found.expect("the BundleDeployment");
        let installed = condition(&found, "Installed").expect("Installed");
        assert_eq!(installed.reason, "InstallFailed", "{behaviour}");
        assert!(installed.message.contains(text), "{behaviour}: {}", installed.message);
        assert!(installed.message.len() < 4096, "{behaviour}: {}", installed.message);
    }
    world.ready(&other).await;
    world.finish().await;
}

#[tokio::test]
async fn endless_logging_is_truncated_and_harmless() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({"logBytes": "4Ki"})).await;
    let image = world.push(&Bundle::empty().with("provision", "log-forever")).await;
    world.deploy(&class, &class, &image).await;
    let deployment = world.ready(&class).await;
    let status = deployment.status.expect("a status");
    let provisioner = status.provisioner.expect("a provisioner");
    assert_eq!((provisioner.name.as_deref(), provisioner.version.as_deref()), (Some("hostile"), Some("1.2.3")));
    world.finish().await;
}

#[tokio::test]
async fn an_invalid_component_is_rejected_before_use() {
    let world = World::new().await;
    let name = world.name();
    let pushed = world.registry.push_component("provisioners/none", "v1", b"not wasm".to_vec()).expect("pushed");
    let class = json!({"metadata": {"name": name}, "spec": {"image": pushed.reference}});
    let _: ProvisionerClass = world.create(class).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, &name, "refused", |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|condition| {
            condition.type_ == "Ready" && condition.status == "False" && condition.reason == "InvalidComponent"
        })
    })
    .await;
    let image = world.push(&Bundle::empty().with("provision", "ok")).await;
    world.deploy(&name, &name, &image).await;
    world.condition(&name, "Ready", "False", "ProvisionerNotReady").await;
    world.finish().await;
}

/// A class whose new image is unusable keeps its current component, and reports that.
#[tokio::test]
async fn an_update_to_a_broken_component_keeps_the_old_one() {
    let world = World::new().await;
    let name = world.name();
    create_class(&world, &name, json!({})).await;
    let broken = world.registry.push_component("provisioners/broken", "v1", b"not wasm".to_vec()).expect("pushed");
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let update = Patch::Merge(json!({"spec": {"image": broken.reference}}));
    classes.patch(&name, &PatchParams::default(), &update).await.expect("the change is accepted");
    wait::until(&classes, &name, "reported as broken", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        status.is_some_and(|status| {
            status
                .conditions
                .iter()
                .any(|condition| condition.status == "False" && condition.reason == "InvalidComponent")
        })
    })
    .await;
    let image = world.push(&Bundle::empty().with("provision", "ok")).await;
    world.deploy(&name, &name, &image).await;
    let deployment = world.ready(&name).await;
    let provisioner = deployment.status.and_then(|status| status.provisioner).expect("a provisioner");
    assert_eq!(provisioner.name.as_deref(), Some("hostile"));
    world.finish().await;
}
