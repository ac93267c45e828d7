//! Each change is a revision: an old revision can run again, a failed one is rolled back, a new one supersedes at once.

use chandler_api::{BundleDeployment, Outcome, Revision};
use chandler_devregistry::{Fault, FaultOn};
use chandler_tests::{
    InProcess, World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::REGISTRY;

fn old() -> Bundle {
    bundles::sample("registry/harbour-operator.v0.1.0")
}

fn new() -> Bundle {
    bundles::sample("registry/harbour-operator.v0.2.0")
}

/// A bundle that never becomes healthy.
fn unhealthy() -> Bundle {
    new().replacing(
        "manifests/harbour-operator.clusterserviceversion.yaml",
        "image: registry.k8s.io/pause:3.10",
        "image: registry.invalid/harbour-operator:v0.2.0",
    )
}

fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// Number, outcome and origin of each revision.
fn outcomes(deployment: &BundleDeployment) -> Vec<(i64, Outcome, Option<i64>)> {
    history(deployment).iter().map(|revision| (revision.number, revision.outcome, revision.rollback_to)).collect()
}

fn operators(world: &World) -> Api<Deployment> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

/// The version of the operator in the cluster.
async fn running(world: &World) -> Option<String> {
    let operator = operators(world).get("harbour-operator").await.expect("the operator");
    let container = operator.spec?.template.spec?.containers.into_iter().next()?;
    container.env?.into_iter().find(|variable| variable.name == "OPERATOR_VERSION")?.value
}

/// Whether the CRD has the field that only the new release adds.
async fn knows_lines(world: &World) -> bool {
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let crd = crds.get("berths.harbour.example.com").await.expect("the CRD");
    let versions = serde_json::to_value(crd.spec.versions).expect("JSON");
    versions.pointer("/0/schema/openAPIV3Schema/properties/spec/properties/lines").is_some()
}

async fn merge(world: &World, name: &str, patch: Value) {
    let patched = world.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.expect("the object is accepted");
}

#[tokio::test]
async fn an_old_revision_runs_again_without_its_registry() {
    let world = World::new().await;
    let name = world.name();
    for bundle in [old(), new()] {
        let image = world.push(&bundle).await;
        world.deploy(&name, REGISTRY, &image).await;
        world.ready(&name).await;
    }
    let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert_eq!(outcomes(&deployment), [(1, Outcome::Succeeded, None), (2, Outcome::Succeeded, None)]);
    let first = history(&deployment).first().expect("a revision").clone();

    world.registry.set_fault(Some((FaultOn::Everything, Fault::Status(500))));
    merge(&world, &name, json!({"spec": {"rollout": {"toRevision": 1}}})).await;
    let deployment = world.ready(&name).await;
    assert_eq!(running(&world).await.as_deref(), Some("v0.1.0"));
    let status = deployment.status.as_ref().expect("a status");
    assert_eq!(status.revision, Some(3));
    let third = history(&deployment).last().expect("a revision");
    assert_eq!((third.outcome, third.rollback_to), (Outcome::Succeeded, Some(1)));
    assert_eq!(third.release_digest, first.release_digest);
    // The newer release added a field to a CRD, which objects may use by now.
    assert!(knows_lines(&world).await, "a rollback of the CRD would lose the field");
    let warnings = &status.release.as_ref().expect("a release").warnings;
    let kept =
        "CustomResourceDefinition.apiextensions.k8s.io berths.harbour.example.com keeps additions of a newer release";
    assert!(warnings.iter().any(|warning| warning.message.starts_with(kept)), "{warnings:?}");
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(message.contains("spec.rollout.toRevision has revision 1 run again as revision 3"), "{message}");
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    config_maps.get("harbour-operator-tides").await.expect("the object of the old release was created again");

    // A revision that is not in the history is rejected, and changes nothing.
    merge(&world, &name, json!({"spec": {"rollout": {"toRevision": 9}}})).await;
    let deployment = world.condition(&name, "Progressing", "False", "RevisionUnavailable").await;
    let message = &condition(&deployment, "Progressing").expect("Progressing").message;
    assert!(message.contains("does not hold revision 9, but 1, 2, 3"), "{message}");
    assert_eq!(running(&world).await.as_deref(), Some("v0.1.0"));

    world.registry.set_fault(None);
    merge(&world, &name, json!({"spec": {"rollout": {"toRevision": null}}})).await;
    let deployment = world.ready(&name).await;
    assert_eq!(outcomes(&deployment).last(), Some(&(4, Outcome::Succeeded, None)));
    assert_eq!(running(&world).await.as_deref(), Some("v0.2.0"));
    world.finish().await;
}

#[tokio::test]
async fn a_failed_revision_is_rolled_back_and_not_retried() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&old()).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;

    let image = world.push(&unhealthy()).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["rollout"] = json!({"progressDeadlineSeconds": 2, "onFailure": "Rollback"});
    world.apply(&name, spec.clone()).await;
    let deployment = world.condition(&name, "Progressing", "False", "RolledBack").await;
    let rolled_back: [(i64, Outcome, Option<i64>); 3] =
        [(1, Outcome::Succeeded, None), (2, Outcome::Failed, None), (3, Outcome::Succeeded, Some(1))];
    assert_eq!(outcomes(&deployment), rolled_back);
    let ready = condition(&deployment, "Ready").expect("Ready");
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "RolledBack"));
    let operator = format!("Deployment.apps {}/harbour-operator", world.namespace);
    for part in ["revision 2 failed: ", operator.as_str(), "revision 1 runs again as revision 3"] {
        assert!(ready.message.contains(part), "{part:?} is not in {}", ready.message);
    }
    assert_eq!(condition(&deployment, "Healthy").expect("Healthy").status, "True");
    assert_eq!(running(&world).await.as_deref(), Some("v0.1.0"));
    assert!(knows_lines(&world).await, "the CRD keeps what the failed revision added");

    // A restarted controller reaches the same result, and writes nothing.
    let version = deployment.metadata.resource_version.clone();
    world.stop_controller().await;
    world.start_controller();
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("the edit is accepted");
    wait::until(&config_maps, "harbour-operator-tides", "repaired", |map| {
        map.and_then(|map| map.data.as_ref()).is_some_and(|data| data.get("high").is_none_or(|high| high != "never"))
    })
    .await;
    let deployment = world.condition(&name, "Progressing", "False", "RolledBack").await;
    assert_eq!(outcomes(&deployment), rolled_back, "since {version:?}");

    // A user requests another try.
    let asked = json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": "today"}}});
    merge(&world, &name, asked).await;
    let again = wait::until(&world.deployments(), &name, "rolled back again", |deployment| {
        deployment.is_some_and(|deployment| outcomes(deployment).last() == Some(&(5, Outcome::Succeeded, Some(1))))
    })
    .await;
    let status = again.expect("the object exists").status.expect("a status");
    assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("today"));

    let image = world.push(&new()).await;
    spec["source"]["image"]["ref"] = json!(image);
    world.apply(&name, spec).await;
    let deployment = world.ready(&name).await;
    assert_eq!(outcomes(&deployment).last(), Some(&(6, Outcome::Succeeded, None)));
    assert_eq!(running(&world).await.as_deref(), Some("v0.2.0"));
    world.finish().await;
}

#[tokio::test]
async fn a_failed_first_revision_is_not_rolled_back() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&unhealthy()).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["rollout"] = json!({"progressDeadlineSeconds": 1, "onFailure": "Rollback"});
    world.apply(&name, spec).await;
    let deployment = world.condition(&name, "Progressing", "False", "ProgressDeadlineExceeded").await;
    assert_eq!(outcomes(&deployment), [(1, Outcome::Failed, None)]);
    wait::until(&operators(&world), "harbour-operator", "created: the rollout is still retried", |found| {
        found.is_some()
    })
    .await;
    world.finish().await;
}

#[tokio::test]
async fn a_newer_spec_supersedes_a_rollout_with_a_hanging_request() {
    let mut world = World::new().await;
    let name = world.name();
    world.stop_controller().await;
    // The API server never responds to the request that creates the operator of the first release.
    let (client, stuck) = (world.client.clone(), std::sync::Arc::new(tokio::sync::Notify::new()));
    let notify = stuck.clone();
    let once = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, notify, once) = (client.clone(), notify.clone(), once.clone());
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let dry_run = request.uri().query().is_some_and(|query| query.contains("dryRun"));
            let creates = method == http::Method::POST && path.ends_with("/deployments") && !dry_run;
            if creates && once.swap(false, std::sync::atomic::Ordering::SeqCst) {
                notify.notify_one();
                std::future::pending::<()>().await;
            }
            client.send(request).await
        }
    });
    world.start_controller_on(InProcess::ChangesRequests, kube::Client::new(service, "default"));
    let image = world.push(&old()).await;
    world.deploy(&name, REGISTRY, &image).await;
    tokio::time::timeout(wait::PATIENCE, stuck.notified()).await.expect("the controller creates the operator");
    let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert_eq!(
        outcomes(&deployment),
        [(1, Outcome::RollingOut, None)],
        "the status reports the revision before the first write"
    );

    let image = world.push(&new()).await;
    world.deploy(&name, REGISTRY, &image).await;
    let deployment = world.ready(&name).await;
    assert_eq!(outcomes(&deployment), [(1, Outcome::Superseded, None), (2, Outcome::Succeeded, None)]);
    assert_eq!(running(&world).await.as_deref(), Some("v0.2.0"));
    world.finish().await;
}

#[tokio::test]
async fn a_suspended_deployment_is_left_alone() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&old()).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;
    merge(&world, &name, json!({"spec": {"suspend": true}})).await;
    world.condition(&name, "Progressing", "False", "Suspended").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    let edited = config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("an edit");
    // The controller sees a later spec change, so it has seen the edit, too.
    let other = world.push(&new()).await;
    merge(&world, &name, json!({"spec": {"source": {"image": {"ref": other}}}})).await;
    world.condition(&name, "Progressing", "False", "Suspended").await;
    let map = config_maps.get("harbour-operator-tides").await.expect("the ConfigMap");
    assert_eq!(map.metadata.resource_version, edited.metadata.resource_version);

    merge(&world, &name, json!({"spec": {"suspend": null}})).await;
    let deployment = world.ready(&name).await;
    assert_eq!(outcomes(&deployment).last(), Some(&(2, Outcome::Succeeded, None)));
    world.finish().await;
}

#[tokio::test]
async fn a_reconcile_request_resolves_the_tag_at_once() {
    let world = World::new().await;
    let name = world.name();
    let tag = |image: String| format!("{}:latest", image.split('@').next().unwrap_or_default());
    let image = world.push(&old()).await;
    world.deploy(&name, REGISTRY, &tag(image)).await;
    world.ready(&name).await;
    let moved = world.push(&new()).await;
    let asked = json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": "2026-01-01T00:00:00Z"}}});
    merge(&world, &name, asked).await;
    let deployment = wait::until(&world.deployments(), &name, "at the second revision", |deployment| {
        deployment.is_some_and(|deployment| outcomes(deployment).last() == Some(&(2, Outcome::Succeeded, None)))
    })
    .await
    .expect("the object exists");
    let status = deployment.status.expect("a status");
    let resolved = status.resolved_source.and_then(|source| source.image).expect("an image").reference;
    assert_eq!(resolved.split('@').nth(1), moved.split('@').nth(1));
    assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("2026-01-01T00:00:00Z"));
    world.finish().await;
}
