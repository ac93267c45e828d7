//! Plain bundles: components of a run level are rolled out in parallel, and the configuration sets images and versions.

use chandler_api::BundleDeployment;
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, networking::v1::Ingress};
use kube::Api;
use serde_json::json;

use crate::PLAIN;

fn deployment(name: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  \
         template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: {name}, image: '{image}'}}]}}\n"
    )
}

fn ingress(name: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}}}\n\
         spec: {{defaultBackend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}\n"
    )
}

const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// Two components at level 50, of which the first needs an image; one at level 60.
fn levels(image_of_the_first: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/0000_50_anchor_01-deployment.yaml", &deployment("anchor", image_of_the_first))
        .with("manifests/0000_50_buoy_01-deployment.yaml", &deployment("buoy", PAUSE))
        .with("manifests/0000_50_buoy_02-ingress.yaml", &ingress("buoy"))
        .with("manifests/0000_60_chart_01-deployment.yaml", &deployment("chart", PAUSE))
}

#[tokio::test]
async fn a_slow_component_blocks_the_next_level_but_not_its_own() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&levels("registry.invalid/anchor:v1")).await;
    world.deploy(&name, PLAIN, &image).await;

    // The other component is rolled out completely, and becomes available.
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    wait::until(&deployments, "buoy", "available", |buoy| {
        let status = buoy.and_then(|buoy| buoy.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(1)
    })
    .await;
    let ingresses: Api<Ingress> = Api::namespaced(world.client.clone(), &world.namespace);
    ingresses
        .get("buoy")
        .await
        .expect("an object behind a workload in the order of kinds does not wait for other components");

    // Only the slow component blocks the next level.
    let waits = |deployment: Option<&BundleDeployment>| {
        let progressing = deployment.and_then(|deployment| condition(deployment, "Progressing"));
        progressing.is_some_and(|progressing| {
            let message = &progressing.message;
            message.contains("stage 1 of 2") && message.contains("/anchor") && !message.contains("/buoy")
        })
    };
    wait::until(&world.deployments(), &name, "waiting only for the anchor", waits).await;
    assert!(deployments.get_opt("chart").await.expect("a response").is_none(), "the next level started too early");

    let image = world.push(&levels(PAUSE)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    deployments.get("chart").await.expect("the next level");
    world.finish().await;
}

#[tokio::test]
async fn the_configuration_sets_images_and_versions() {
    let world = World::new().await;
    let name = world.name();
    let references = "kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n  - name: buoy\n    from: {kind: DockerImage, name: quay.io/harbour/buoy}\n";
    let versions = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: versions}\ndata: {operator: 0.0.1-snapshot, kubelet: 0.0.1-snapshot-kubernetes}\n";
    let bundle = Bundle::empty()
        .with("manifests/image-references", references)
        .with("manifests/01_buoy.yaml", &deployment("buoy", "quay.io/harbour/buoy:latest"))
        .with("manifests/02_versions.yaml", versions);
    let image = world.push(&bundle).await;
    let configured = |config: serde_json::Value| {
        let mut spec = world.spec(PLAIN, &image);
        spec["config"] = config;
        spec
    };

    // A version placeholder without a configured version is an error.
    let config = json!({"images": {"buoy": PAUSE}, "releaseVersion": "4.20.1"});
    world.apply(&name, configured(config)).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidConfiguration").await;
    let message = &condition(&refused, "Progressing").expect("Progressing").message;
    assert!(message.contains("set componentVersions.kubernetes"), "{message}");

    let config = json!({
        "images": {"buoy": PAUSE}, "releaseVersion": "4.20.1", "componentVersions": {"kubernetes": "1.33.4"},
    });
    world.apply(&name, configured(config)).await;
    world.ready(&name).await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let buoy = deployments.get("buoy").await.expect("the Deployment");
    let pod = buoy.spec.and_then(|spec| spec.template.spec).expect("a pod");
    assert_eq!(pod.containers[0].image.as_deref(), Some(PAUSE));
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let data = maps.get("versions").await.expect("the ConfigMap").data.expect("data");
    assert_eq!((data["operator"].as_str(), data["kubelet"].as_str()), ("4.20.1", "1.33.4"));
    world.finish().await;
}
