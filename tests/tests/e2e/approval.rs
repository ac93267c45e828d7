//! A change that needs consent is told before anything is written, and waits.

use chandler_api::{BundleDeployment, PendingChange};
use chandler_tests::{World, bundles, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::REGISTRY;

/// What waits for consent, once something does.
async fn pending(world: &World, name: &str) -> PendingChange {
    let deployment: BundleDeployment = world.condition(name, "Progressing", "False", "ApprovalRequired").await;
    deployment.status.and_then(|status| status.pending_change).expect("a pending change")
}

async fn approve(world: &World, name: &str, digest: &str) {
    let patch = Patch::Merge(json!({"spec": {"approvedChange": digest}}));
    world.deployments().patch(name, &PatchParams::default(), &patch).await.expect("the object is accepted");
}

#[tokio::test]
async fn a_change_waits_for_consent_while_the_old_release_is_kept() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["approval"] = json!("Manual");
    world.apply(&name, spec).await;
    let first = pending(&world, &name).await;
    assert!(first.created > 5 && first.changed == 0 && first.removed == 0, "{first:?}");
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.get_opt("harbour-operator").await.expect("an answer").is_none(), "nothing is written yet");

    approve(&world, &name, "sha256:0").await;
    assert_eq!(pending(&world, &name).await.digest, first.digest, "another digest approves nothing");
    approve(&world, &name, &first.digest).await;
    let deployment = world.ready(&name).await;
    assert_eq!(deployment.status.and_then(|status| status.pending_change), None);
    let before = operators.get("harbour-operator").await.expect("the operator");

    let image = world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await;
    let merge = Patch::Merge(json!({"spec": {"source": {"image": {"ref": image}}}}));
    world.deployments().patch(&name, &PatchParams::default(), &merge).await.expect("the object is accepted");
    let second = pending(&world, &name).await;
    assert_ne!(second.digest, first.digest);
    assert!(second.created > 0 && second.changed > 0 && second.removed > 0, "{second:?}");
    let line = format!("change Deployment.apps {}/harbour-operator: ", world.namespace);
    let line = second.objects.iter().find(|object| object.starts_with(&line)).expect("the operator");
    assert!(line.contains("spec.template.spec.containers[name=manager].env[name=OPERATOR_VERSION].value"), "{line}");
    let removed = format!("remove ConfigMap {}/harbour-operator-tides", world.namespace);
    assert!(second.objects.contains(&removed), "{second:?}");

    // What runs meanwhile is looked after.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("it can be edited");
    wait::until(&config_maps, "harbour-operator-tides", "repaired", |map| {
        map.and_then(|map| map.data.as_ref()).is_some_and(|data| data.get("high").is_none_or(|high| high != "never"))
    })
    .await;
    let operator = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(operator.metadata.generation, before.metadata.generation);

    approve(&world, &name, &pending(&world, &name).await.digest).await;
    world.ready(&name).await;
    wait::until(&config_maps, "harbour-operator-tides", "pruned", |map| map.is_none()).await;
    world.finish().await;
}
