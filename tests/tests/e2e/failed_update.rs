//! The current release is maintained while an update fails: it is repaired, its health is reported, and the status names what blocks
//! the update.

use std::fs;

use chandler_devregistry::{Fault, FaultOn};
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

const KEEPER: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: keeper}\nspec:\n  selector: {matchLabels: {app: \
                      keeper}}\n  template:\n    metadata: {labels: {app: keeper}}\n    spec: {containers: [{name: keeper, \
                      image: 'registry.k8s.io/pause:3.10'}]}\n";

const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {depth: '10'}\n";

/// A CRD of this world with this field; a next version may not remove it.
fn crd(world: &World, field: &str) -> String {
    let group = format!("{}.example.com", world.namespace);
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: oxen.{group}}}\nspec:\n  group: \
         {group}\n  scope: Namespaced\n  names: {{kind: Ox, listKind: OxList, plural: oxen, singular: ox}}\n  versions:\n  - \
         name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         properties: {{spec: {{type: object, properties: {{{field}: {{type: string}}}}}}}}\n"
    )
}

fn bundle(world: &World, field: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/crd.yaml", &crd(world, field))
        .with("manifests/chart.yaml", CHART)
        .with("manifests/keeper.yaml", KEEPER)
}

fn deployments(world: &World) -> Api<Deployment> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

fn crds(world: &World) -> Api<CustomResourceDefinition> {
    Api::all(world.client.clone())
}

/// What is deleted: everything, or what is not a CRD. Without the CRD, a new version of it that was unsafe is a new CRD, and would be installed.
#[derive(Clone, Copy, PartialEq)]
enum Deleted {
    Everything,
    NoCrd,
}

/// Deletes what was installed, and waits until it is created again.
async fn assert_every_object_is_recreated(world: &World, deleted: Deleted) {
    let plural = format!("oxen.{}.example.com", world.namespace);
    let before = (
        world.config_maps().get("chart").await.expect("the object exists").uid(),
        deployments(world).get("keeper").await.expect("the object exists").uid(),
        crds(world).get(&plural).await.expect("the object exists").uid(),
    );
    let delete = DeleteParams::background();
    world.config_maps().delete("chart", &delete).await.expect("the object exists");
    deployments(world).delete("keeper", &delete).await.expect("the object exists");
    if deleted == Deleted::Everything {
        crds(world).delete(&plural, &delete).await.expect("the object exists");
    }
    wait::until(&world.config_maps(), "chart", "created again", |it| it.is_some_and(|it| it.uid() != before.0)).await;
    wait::until(&deployments(world), "keeper", "created again", |it| it.is_some_and(|it| it.uid() != before.1)).await;
    if deleted == Deleted::Everything {
        wait::until(&crds(world), &plural, "created again", |it| it.is_some_and(|it| it.uid() != before.2)).await;
    }
}

/// Specs that cannot be rolled out: what is wrong, the spec, and the reason in the status.
fn obstacles(world: &World, working: &str, unsafe_version: &str) -> Vec<(&'static str, Value, &'static str)> {
    let (repository, _) = working.rsplit_once('@').expect("a digest");
    let spec = |image: &str| world.spec(PLAIN, image);
    let mut wrong_class = spec(working);
    wrong_class["provisionerClassName"] = json!("no-such-class");
    let mut wrong_key = spec(working);
    wrong_key["source"]["image"]["pullSecret"] = json!("no-such-secret");
    vec![
        ("mistyped tag", spec(&format!("{repository}:v9.9.9-typo")), "UnpackFailed"),
        ("wrong class", wrong_class, "ProvisionerMissing"),
        ("wrong key", wrong_key, "UnpackFailed"),
        ("unsafe CRD", spec(unsafe_version), "UnsafeCRDUpgrade"),
    ]
}

#[tokio::test]
async fn every_object_is_recreated_while_the_next_version_is_rejected() {
    let world = World::new().await;
    let name = world.name();
    let working = world.push(&bundle(&world, "colour")).await;
    let unsafe_version = world.push(&bundle(&world, "shade")).await;
    world.deploy(&name, PLAIN, &working).await;
    let first = world.ready(&name).await;
    let revision = first.status.as_ref().and_then(|status| status.revision);

    for (what, spec, reason) in obstacles(&world, &working, &unsafe_version) {
        eprintln!("{what}");
        world.apply(&name, spec).await;
        let refused = wait::until(&world.deployments(), &name, reason, |deployment| {
            let ready = deployment.and_then(|deployment| condition(deployment, "Ready"));
            ready.is_some_and(|ready| {
                ready.status == "False"
                    && ready.reason == reason
                    && ready.observed_generation == deployment.and_then(|deployment| deployment.metadata.generation)
            })
        })
        .await
        .expect("the object exists");
        let status = refused.status.as_ref().expect("a status");
        assert_eq!(status.revision, revision, "{what}: no revision was started");
        let deleted = if reason == "UnsafeCRDUpgrade" { Deleted::NoCrd } else { Deleted::Everything };
        assert_every_object_is_recreated(&world, deleted).await;
        let healthy = |deployment: &chandler_api::BundleDeployment| {
            condition(deployment, "Healthy").is_some_and(|healthy| healthy.status == "True")
        };
        let after = wait::until(&world.deployments(), &name, "healthy", |it| it.is_some_and(healthy)).await;
        let ready = after.as_ref().and_then(|it| condition(it, "Ready")).map(|ready| ready.reason.clone());
        assert_eq!(ready.as_deref(), Some(reason), "{what}: the status still names the blocker");
    }
    world.deploy(&name, PLAIN, &working).await;
    world.ready(&name).await;
    world.finish().await;
}

/// Stops the controller, empties its caches, stops the registry, and deploys a version that does not exist.
async fn make_pulls_impossible(world: &mut World, name: &str, image: &str) {
    world.stop_controller().await;
    for cache in ["content", "releases"] {
        fs::remove_dir_all(world.cache().join(cache)).expect("a cache can be removed");
    }
    world.registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    let (repository, _) = image.rsplit_once('@').expect("a digest");
    world.deploy(name, PLAIN, &format!("{repository}:v9.9.9")).await;
}

#[tokio::test]
async fn the_current_release_is_repaired_with_an_empty_cache_and_no_registry() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle(&world, "colour")).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    make_pulls_impossible(&mut world, &name, &image).await;
    world.start_controller();
    world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    assert_every_object_is_recreated(&world, Deleted::Everything).await;
    wait::until(&world.deployments(), &name, "healthy", |deployment| {
        deployment.and_then(|it| condition(it, "Healthy")).is_some_and(|healthy| healthy.status == "True")
    })
    .await;
    world.finish().await;
}

#[tokio::test]
async fn the_status_is_unknown_if_the_release_is_lost() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/chart.yaml", CHART)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    make_pulls_impossible(&mut world, &name, &image).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let releases = ListParams::default().fields("type=chandler.dev/release");
    let lost =
        secrets.delete_collection(&DeleteParams::default(), &releases).await.expect("the releases can be deleted");
    assert!(lost.left().is_none_or(|lost| !lost.items.is_empty()), "the release was stored");
    world.start_controller();
    for about in ["Healthy", "Drifted"] {
        wait::until(&world.deployments(), &name, &format!("{about} is unknown"), |deployment| {
            deployment.and_then(|it| condition(it, about)).is_none_or(|found| found.status == "Unknown")
        })
        .await;
    }
    // With the registry the release can be rendered again.
    world.registry.set_fault(None);
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_deleted_object_is_not_reported_as_healthy() {
    let world = World::new().await;
    let name = world.name();
    let inner = format!("{}-inner", world.namespace);
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let _: Namespace =
        world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}})).await;
    let image = world.push(&Bundle::empty().with("manifests/chart.yaml", CHART)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["installNamespace"] = json!(inner);
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;

    let (repository, _) = image.rsplit_once('@').expect("a digest");
    spec["source"]["image"]["ref"] = json!(format!("{repository}:v9.9.9-typo"));
    spec["rollout"] = json!({"healthGracePeriodSeconds": 0});
    world.apply(&name, spec).await;
    world.condition(&name, "Ready", "False", "UnpackFailed").await;
    namespaces.delete(&inner, &DeleteParams::background()).await.expect("the object exists");
    if !world.collects_garbage() {
        // The namespace controller may not run here; deleting the object has the same effect.
        let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &inner);
        maps.delete("chart", &DeleteParams::default()).await.expect("the object exists");
    }
    wait::until(&world.deployments(), &name, "no longer healthy", |deployment| {
        deployment.and_then(|it| condition(it, "Healthy")).is_some_and(|healthy| healthy.status != "True")
    })
    .await;
    world.finish().await;
}

#[tokio::test]
async fn the_status_distinguishes_the_current_bundle_from_the_candidate() {
    let world = World::new().await;
    let name = world.name();
    let sample = |version: &str| chandler_tests::bundles::sample(&format!("registry/harbour-operator.v{version}"));
    let mut spec = world.spec(crate::REGISTRY, &world.push(&sample("0.1.0")).await);
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    spec["approval"] = json!("Manual");
    spec["source"]["image"]["ref"] = json!(world.push(&sample("0.2.0")).await);
    world.apply(&name, spec).await;
    let waiting = world.condition(&name, "Progressing", "False", "ApprovalRequired").await;
    let status = waiting.status.expect("a status");
    let version = |text: Option<String>| text.unwrap_or_default();
    assert_eq!(version(status.bundle.and_then(|bundle| bundle.version)), "0.1.0");
    assert_eq!(version(status.candidate.and_then(|candidate| candidate.version)), "0.2.0");
    assert_eq!(version(status.history.last().and_then(|revision| revision.version.clone())), "0.1.0");
    world.finish().await;
}
