//! Bundles whose content is in ConfigMaps.

use std::collections::BTreeMap;

use chandler_tests::{World, world::condition};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::PLAIN;

async fn config_map(world: &World, name: &str, immutable: bool, files: &[(&str, &str)]) {
    let data: BTreeMap<&str, &str> = files.iter().copied().collect();
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name}, "immutable": immutable, "data": data}))
            .expect("a ConfigMap");
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    api.create(&PostParams::default(), &map).await.expect("a ConfigMap");
}

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: bell}\nstringData: {tone: low}\n";

#[tokio::test]
async fn config_maps_become_files() {
    let world = World::new().await;
    let name = world.name();
    let spec = json!({
        "installNamespace": world.namespace, "provisionerClassName": PLAIN,
        "source": {"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}, "path": "manifests"}]},
    });
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains(&format!("{}/bell", world.system_namespace)), "{message}");

    // The controller watches for the missing ConfigMap.
    config_map(&world, "bell", true, &[("bell.yaml", SECRET)]).await;
    world.ready(&name).await;
    let secret: Secret = Api::namespaced(world.client.clone(), &world.namespace).get("bell").await.expect("the Secret");
    assert_eq!(secret.data.expect("data")["tone"].0, b"low");
    world.finish().await;
}

#[tokio::test]
async fn a_mutable_config_map_is_refused() {
    let world = World::new().await;
    let name = world.name();
    config_map(&world, "bell", false, &[("bell.yaml", SECRET)]).await;
    let spec = json!({
        "installNamespace": world.namespace, "provisionerClassName": PLAIN,
        "source": {"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}, "path": "manifests"}]},
    });
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&deployment, "Unpacked").expect("Unpacked").message;
    assert!(message.contains(r#"configmap "bell" is not immutable"#), "{message}");
    world.finish().await;
}
