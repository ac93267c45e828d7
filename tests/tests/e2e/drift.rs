//! A managed object that is edited or deleted is restored.

use chandler_api::{BundleWarning, DriftState, DriftedField};
use chandler_tests::{World, bundles, wait, world::condition};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::REGISTRY;

#[tokio::test]
async fn a_deleted_object_is_recreated_and_an_edit_is_reverted() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let before = config_maps.get("harbour-operator-tides").await.expect("the ConfigMap");
    config_maps.delete("harbour-operator-tides", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&config_maps, "harbour-operator-tides", "created again", |map| {
        map.is_some_and(|map| map.metadata.uid != before.metadata.uid && map.data == before.data)
    })
    .await;

    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("the edit is accepted");
    wait::until(&config_maps, "harbour-operator-tides", "restored", |map| {
        map.is_some_and(|map| map.data == before.data)
    })
    .await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn fields_added_by_other_managers_stay() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let restart = json!({"spec": {
        "replicas": 3,
        "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}},
    }});
    operators.patch("harbour-operator", &PatchParams::default(), &Patch::Merge(restart)).await.expect("an edit");
    // The field of the bundle is repaired; the annotation, which the release does not set, stays.
    let operator = wait::until(&operators, "harbour-operator", "repaired", |operator| {
        operator.and_then(|operator| operator.spec.as_ref()?.replicas) == Some(1)
    })
    .await;
    let template = operator.and_then(|operator| operator.spec?.template.metadata?.annotations).expect("annotations");
    assert!(template.contains_key("kubectl.kubernetes.io/restartedAt"));
    world.finish().await;
}

/// The ConfigMap that these tests edit.
const TIDES: &str = "harbour-operator-tides";

/// Changes a ConfigMap as this field manager.
async fn edit(world: &World, manager: &str, tide: &str) -> ConfigMap {
    let other_manager = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = Patch::Merge(json!({"data": {"high": tide}}));
    config_maps.patch(TIDES, &other_manager, &edit).await.expect("the edit is accepted")
}

/// Requests a reconcile, with these annotations, and waits until it is done.
async fn request(world: &World, name: &str, at: &str, more: &[&str]) {
    let mut annotations = json!({"reconcile.chandler.dev/requestedAt": at});
    for annotation in more {
        annotations[*annotation] = json!(at);
    }
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    world.deployments().patch(name, &PatchParams::default(), &patch).await.expect("an annotation");
    wait::until(&world.deployments(), name, "reconciled as requested", |deployment| {
        deployment.and_then(|deployment| deployment.status.as_ref()?.last_handled_reconcile_at.as_deref()) == Some(at)
    })
    .await;
}

#[tokio::test]
async fn the_repair_event_names_the_field_and_its_manager() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    edit(&world, "kubectl-edit", "never").await;
    let events: Api<Event> = Api::all(world.client.clone());
    let about = format!("ConfigMap {}/{TIDES}: data.high was set by kubectl-edit", world.namespace);
    wait::eventually("an Event about the repair", || async {
        let events = events.list(&ListParams::default()).await.expect("Events");
        let mut notes = events.items.iter().filter(|event| event.reason.as_deref() == Some("DriftRepaired"));
        notes.any(|event| event.note.as_deref() == Some(about.as_str()))
    })
    .await;
    world.finish().await;
}

#[tokio::test]
async fn an_ignored_field_is_left_to_its_manager() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["ignoreDifferences"] = json!([{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]);
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let replicas = |operator: &Deployment| operator.spec.as_ref().and_then(|spec| spec.replicas);
    let created = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(replicas(&created), Some(1), "the object is created as in the bundle");

    let autoscaler = PatchParams { field_manager: Some("autoscaler".to_owned()), ..PatchParams::default() };
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
    operators.patch_scale("harbour-operator", &autoscaler, &scale).await.expect("the change is accepted");
    // Other fields of the same object are repaired, without touching the replicas.
    let pause =
        Patch::Merge(json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}, "minReadySeconds": 1,
        "template": {"spec": {"serviceAccountName": "default"}}}}));
    operators.patch("harbour-operator", &PatchParams::default(), &pause).await.expect("the edit is accepted");
    let repaired = wait::until(&operators, "harbour-operator", "repaired", |operator| {
        operator.is_some_and(|operator| {
            let account =
                operator.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.service_account_name.as_ref());
            account != Some(&"default".to_owned())
        })
    })
    .await;
    assert_eq!(repaired.as_ref().and_then(replicas), Some(3));

    spec["source"]["image"]["ref"] = json!(world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await);
    world.apply(&name, spec).await;
    world.condition(&name, "Progressing", "False", "Succeeded").await;
    let updated = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(replicas(&updated), Some(3), "the new release leaves the replicas alone, too");
    assert_ne!(updated.metadata.annotations, created.metadata.annotations, "the object belongs to the new release");
    world.finish().await;
}

#[tokio::test]
async fn an_identity_field_cannot_be_ignored() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["ignoreDifferences"] = json!([{"jsonPointers": ["/metadata/name"]}]);
    world.apply(&name, spec).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidConfiguration").await;
    let message = condition(&refused, "Progressing").map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.contains("spec.ignoreDifferences[0].jsonPointers[0]: \"/metadata/name\" cannot"), "{message}");
    world.finish().await;
}

#[tokio::test]
async fn report_mode_reports_drift_and_repairs_on_request() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["drift"] = json!("Report");
    spec["rollout"] = json!({"healthGracePeriodSeconds": 0});
    world.apply(&name, spec).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let before = config_maps.get(TIDES).await.expect("the ConfigMap");

    let edited = edit(&world, "kubectl-edit", "never").await;
    let reported = world.condition(&name, "Drifted", "True", "DriftReported").await;
    let drift = reported.status.and_then(|status| status.drift).expect("a drift report");
    assert_eq!((drift.total, drift.objects.len()), (1, 1));
    let object = &drift.objects[0];
    assert_eq!((object.kind.as_str(), object.name.as_str(), object.state), ("ConfigMap", TIDES, DriftState::Changed));
    let field = DriftedField { path: "data.high".into(), manager: Some("kubectl-edit".into()) };
    assert_eq!(object.fields, [field]);
    // A reconcile request alone reports the drift again, and repairs nothing.
    request(&world, &name, "1", &[]).await;
    let now = config_maps.get(TIDES).await.expect("the ConfigMap");
    assert_eq!(now.metadata.resource_version, edited.metadata.resource_version, "nothing touched the object");

    let undo = Patch::Merge(json!({"data": before.data}));
    config_maps.patch(TIDES, &PatchParams::default(), &undo).await.expect("the change is accepted");
    let gone = world.condition(&name, "Drifted", "False", "AsReleased").await;
    assert_eq!(gone.status.and_then(|status| status.drift), None);

    // A missing object stays missing, and is reported as unhealthy.
    config_maps.delete(TIDES, &DeleteParams::default()).await.expect("the deletion is accepted");
    let missing = world.condition(&name, "Ready", "False", "Unhealthy").await;
    let drift = missing.status.and_then(|status| status.drift).expect("a drift report");
    assert_eq!(drift.objects[0].state, DriftState::Missing);
    request(&world, &name, "2", &["reconcile.chandler.dev/repairAt"]).await;
    let repaired = config_maps.get(TIDES).await.expect("the object was created again");
    assert_eq!(repaired.data, before.data);
    world.ready(&name).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    world.finish().await;
}

#[tokio::test]
async fn the_next_revision_reverts_drift_that_was_not_observed() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["drift"] = json!("Ignore");
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let edited = edit(&world, "kubectl-edit", "never").await;
    let scaled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "harbour-operator"},
        "spec": {"replicas": 2}});
    let gitops = PatchParams::apply("gitops").force();
    operators.patch("harbour-operator", &gitops, &Patch::Apply(scaled)).await.expect("the change is accepted");
    request(&world, &name, "1", &[]).await;
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let now = config_maps.get(TIDES).await.expect("the ConfigMap");
    assert_eq!(now.metadata.resource_version, edited.metadata.resource_version, "nothing touched the object");
    let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert!(condition(&deployment, "Drifted").is_none(), "drift was not observed");

    spec["source"]["image"]["ref"] = json!(world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await);
    world.apply(&name, spec).await;
    let updated = world.condition(&name, "Progressing", "False", "Succeeded").await;
    let operator = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(operator.spec.and_then(|spec| spec.replicas), Some(1));
    let warnings = updated.status.and_then(|status| status.release).map(|release| release.warnings).unwrap_or_default();
    let message = format!(
        "Deployment.apps {}/harbour-operator had fields that other field managers apply: spec.replicas was applied by gitops",
        world.namespace
    );
    assert_eq!(warnings, [BundleWarning { code: "FieldsTakenOver".into(), message }]);
    world.finish().await;
}

/// Acts as a conflicting controller: edits the ConfigMap after every repair. Returns the number of repairs.
async fn conflict(world: &World, rounds: usize, until: impl AsyncFn() -> bool) -> usize {
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let mut repairs = 0;
    edit(world, "other-controller", "never").await;
    while repairs < rounds && !until().await {
        let now = config_maps.get(TIDES).await.expect("the ConfigMap");
        if now.data.as_ref().and_then(|data| data.get("high")).is_some_and(|tide| tide != "never") {
            repairs += 1;
            edit(world, "other-controller", "never").await;
        }
        // As fast as a controller with a watch, but slow enough that other clients get their turn.
        tokio::task::yield_now().await;
    }
    repairs
}

#[tokio::test]
async fn an_ownership_conflict_is_damped_and_reported() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let is_contested = async || {
        let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
        condition(&deployment, "Drifted").is_some_and(|drifted| drifted.reason == "Contested")
    };
    let repairs = tokio::time::timeout(wait::PATIENCE, conflict(&world, 20, is_contested))
        .await
        .expect("the conflict is detected");
    assert!((3..=4).contains(&repairs), "the object was repaired {repairs} times");
    let contested = world.condition(&name, "Drifted", "True", "Contested").await;
    let message = condition(&contested, "Drifted").map(|condition| condition.message.clone()).unwrap_or_default();
    let line = format!("ConfigMap {}/{TIDES}: data.high was set by other-controller", world.namespace);
    assert!(message.contains(&line), "{message}");
    let drift = contested.status.and_then(|status| status.drift).expect("a drift report");
    assert!(drift.objects[0].contested);

    // Other objects are repaired in the meantime, while this one is left alone.
    edit(&world, "other-controller", "never").await;
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
    operators.patch("harbour-operator", &PatchParams::default(), &scale).await.expect("an edit");
    wait::until(&operators, "harbour-operator", "repaired", |operator| {
        operator.and_then(|operator| operator.spec.as_ref()?.replicas) == Some(1)
    })
    .await;
    // After the cooldown it is repaired again; the conflict is still reported, with the same message.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    wait::until(&config_maps, TIDES, "repaired after the cooldown", |map| {
        map.and_then(|map| map.data.as_ref()?.get("high").cloned()).is_some_and(|tide| tide != "never")
    })
    .await;
    let still = world.condition(&name, "Drifted", "True", "Contested").await;
    assert_eq!(condition(&still, "Drifted").map(|condition| condition.message.clone()), Some(message));
    world.finish().await;
}
