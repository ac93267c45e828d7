//! An upgrade replaces and prunes objects; a failed one keeps the old release running and reports why.

use chandler_tests::{World, bundles, wait, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, rbac::v1::ClusterRole};
use kube::Api;

use crate::REGISTRY;

fn version(operator: &Deployment) -> Option<String> {
    let container = operator.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    container.env.as_ref()?.iter().find(|variable| variable.name == "OPERATOR_VERSION")?.value.clone()
}

#[tokio::test]
async fn an_upgrade_replaces_and_prunes_objects() {
    let world = World::new().await;
    let name = world.name();
    let old = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &old).await;
    world.ready(&name).await;
    let new = world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await;
    world.deploy(&name, REGISTRY, &new).await;
    world.ready(&name).await;

    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let operator = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(version(&operator).as_deref(), Some("v0.2.0"));
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    roles.get("harbour-viewer").await.expect("the object of the new release");
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let pruned = config_maps.get_opt("harbour-operator-tides").await.expect("a response");
    assert!(pruned.is_none(), "the object of the old release");
    config_maps.get("harbour-operator-config").await.expect("the object of both releases");
    world.finish().await;
}

#[tokio::test]
async fn an_upgrade_to_a_broken_bundle_keeps_the_old_release_running() {
    let world = World::new().await;
    let name = world.name();
    let good = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &good).await;
    world.ready(&name).await;
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let before = operators.get("harbour-operator").await.expect("the operator");

    let broken =
        bundles::sample("registry/harbour-operator.v0.2.0").with("manifests/broken.yaml", "apiVersion: v1\nkind: [\n");
    let broken = world.push(&broken).await;
    world.deploy(&name, REGISTRY, &broken).await;
    let deployment = world.condition(&name, "Installed", "False", "UpgradeFailed").await;
    let message = &condition(&deployment, "Installed").expect("Installed").message;
    assert!(message.contains("manifests/broken.yaml"), "{message}");
    let after = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    world.finish().await;
}

#[tokio::test]
async fn a_stalled_rollout_names_its_blocker_prunes_nothing_and_can_be_superseded() {
    let world = World::new().await;
    let name = world.name();
    let old = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &old).await;
    world.ready(&name).await;

    let csv = "manifests/harbour-operator.clusterserviceversion.yaml";
    let hangs = bundles::sample("registry/harbour-operator.v0.2.0").replacing(
        csv,
        "image: registry.k8s.io/pause:3.10",
        "image: registry.invalid/harbour-operator:v0.2.0",
    );
    let hangs = world.push(&hangs).await;
    let mut spec = world.spec(REGISTRY, &hangs);
    spec["rollout"] = serde_json::json!({"progressDeadlineSeconds": 1});
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Progressing", "False", "ProgressDeadlineExceeded").await;
    let message = &condition(&deployment, "Progressing").expect("Progressing").message;
    assert!(message.contains(&format!("Deployment.apps {}/harbour-operator", world.namespace)), "{message}");
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    config_maps.get("harbour-operator-tides").await.expect("nothing is pruned before the new release is healthy");

    let good = world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await;
    world.deploy(&name, REGISTRY, &good).await;
    world.ready(&name).await;
    wait::until(&config_maps, "harbour-operator-tides", "pruned", |map| map.is_none()).await;
    world.finish().await;
}
