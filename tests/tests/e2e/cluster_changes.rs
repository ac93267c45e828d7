//! A bundle is rendered again when the cluster properties that it uses change, and its warnings are in the status.

use std::{pin::pin, sync::Arc, time::Duration};

use chandler_api::BundleDeployment;
use chandler_tests::{InProcess, World, bundles, renders, wait, world::condition};
use futures::StreamExt as _;
use http::{Request, Response};
use k8s_openapi::{
    api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::DeleteParams,
    client::Body,
    runtime::{WatchStreamExt as _, watcher},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{PLAIN, REGISTRY};

const OPERATOR: &str = "registry/harbour-operator.v0.1.0";
const CSV: &str = "manifests/harbour-operator.clusterserviceversion.yaml";

/// A client that sees another version of the API server.
fn of_version(inner: Client, version: &Arc<Mutex<String>>) -> Client {
    let version = Arc::clone(version);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, version) = (inner.clone(), Arc::clone(&version));
        async move {
            if request.uri().path() != "/version" {
                return inner.send(request).await;
            }
            let version = version.lock().clone();
            let info = json!({
                "major": "1", "minor": "0", "gitVersion": version, "gitCommit": "", "gitTreeState": "", "buildDate": "",
                "goVersion": "", "compiler": "", "platform": ""
            });
            Ok(Response::new(Body::from(info.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

/// A world whose controller polls the cluster version and kinds all the time.
async fn world_with_frequent_polls(client: impl FnOnce(Client) -> Client) -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    let client = client(world.client.clone());
    world.start_controller_with(InProcess::ChangesRequests, client, |options| {
        options.cluster_poll_interval = Duration::from_millis(200);
    });
    world
}

#[tokio::test]
async fn a_bundle_refused_by_an_old_cluster_is_installed_after_the_cluster_upgrade() {
    let version = Arc::new(Mutex::new("v1.20.4".to_owned()));
    let world = Box::pin(world_with_frequent_polls(|client| of_version(client, &version))).await;
    let name = world.name();
    let image = world.push(&bundles::sample(OPERATOR)).await;
    world.deploy(&name, REGISTRY, &image).await;
    let refused = world.condition(&name, "Progressing", "False", "UnsupportedContent").await;
    let message = &condition(&refused, "Progressing").expect("Progressing").message;
    assert!(message.contains("needs Kubernetes 1.29.0") && message.contains("runs 1.20.4"), "{message}");

    "v1.36.0".clone_into(&mut version.lock());
    let installed = world.ready(&name).await;
    assert_eq!(installed.metadata.generation, refused.metadata.generation, "the spec was not changed");

    // A cluster downgrade does not affect the current release.
    "v1.20.4".clone_into(&mut version.lock());
    let refused = world.condition(&name, "Installed", "False", "UpgradeFailed").await;
    let (before, now) = (installed.status.expect("a status"), refused.status.expect("a status"));
    assert_eq!(before.release, now.release);
    "v1.36.0".clone_into(&mut version.lock());
    world.ready(&name).await;
    world.finish().await;
}

fn codes(deployment: &BundleDeployment) -> Vec<&str> {
    let warnings = deployment.status.as_ref().map(|status| status.warnings.as_slice()).unwrap_or_default();
    warnings.iter().map(|warning| warning.code.as_str()).collect()
}

/// The note of the Event about the warnings of a BundleDeployment.
async fn warned(world: &World, name: &str) -> String {
    let events = watcher(Api::<Event>::all(world.client.clone()), watcher::Config::default());
    let mut events = pin!(events.default_backoff().applied_objects());
    let seen = tokio::time::timeout(wait::PATIENCE, async {
        loop {
            let Some(Ok(event)) = events.next().await else { continue };
            let about = event.regarding.and_then(|about| about.name);
            if about.as_deref() == Some(name) && event.reason.as_deref() == Some("RenderedWithWarnings") {
                return event.note.unwrap_or_default();
            }
        }
    });
    seen.await.expect("an Event with the warnings")
}

/// An operator that needs a kind of this group.
fn needing(group: &str, kind: &str) -> bundles::Bundle {
    let plural = plural(kind);
    let needs = format!(
        "    required:\n    - {{name: {plural}.{group}, kind: {kind}, version: v1, displayName: {kind}}}\n  install:\n"
    );
    bundles::sample(OPERATOR).replacing(CSV, "  install:\n", &needs)
}

fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase()).replace("rrys", "rries")
}

/// Installs a CRD for a kind of this group.
async fn create_crd(world: &World, group: &str, kind: &str) -> CustomResourceDefinition {
    let plural = plural(kind);
    world.create(json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }
    }))
    .await
}

async fn without_warnings(world: &World, name: &str) -> BundleDeployment {
    let deployments = world.deployments();
    let found = wait::until(&deployments, name, "without warnings", |deployment| {
        deployment.is_some_and(|deployment| codes(deployment).is_empty())
    });
    found.await.expect("the object exists")
}

/// A small operator that needs a kind of this group.
fn small(group: &str, kind: &str) -> bundles::Bundle {
    let (name, plural) = (kind.to_lowercase(), plural(kind));
    let deployment = json!({
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"serviceAccountName": name, "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]},
        },
    });
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{name}.v1.0.0")},
        "spec": {
            "version": "1.0.0",
            "installModes": [{"type": "AllNamespaces", "supported": true}],
            "customresourcedefinitions": {
                "required": [{"name": format!("{plural}.{group}"), "kind": kind, "version": "v1"}],
            },
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": name, "spec": deployment}]}},
        },
    });
    let annotations = json!({"annotations": {"operators.operatorframework.io.bundle.package.v1": name}});
    bundles::Bundle::empty()
        .with("manifests/csv.yaml", &csv.to_string())
        .with("metadata/annotations.yaml", &annotations.to_string())
}

/// Regression: one new CRD caused every bundle to be rendered again.
#[tokio::test]
async fn a_new_kind_rerenders_only_the_bundles_that_use_it() {
    let world = Box::pin(world_with_frequent_polls(|client| client)).await;
    let group = format!("{}.example.com", world.name());
    let (ferries, barges, plain) =
        (format!("{}-ferries", world.name()), format!("{}-barges", world.name()), format!("{}-plain", world.name()));
    for (name, kind) in [(&ferries, "Ferry"), (&barges, "Barge")] {
        let image = world.push(&small(&group, kind)).await;
        world.deploy(name, REGISTRY, &image).await;
    }
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&plain, PLAIN, &image).await;
    let rendered = || [&ferries, &barges, &plain].map(|name| renders::of(name));
    for name in [&ferries, &barges] {
        assert_eq!(codes(&world.ready(name).await), ["RequiredApiMissing"]);
    }
    world.ready(&plain).await;
    assert_eq!(rendered(), [1, 1, 1]);

    create_crd(&world, &group, "Barge").await;
    without_warnings(&world, &barges).await;
    assert_eq!(rendered(), [1, 2, 1]);
    let ferry = create_crd(&world, &group, "Ferry").await;
    without_warnings(&world, &ferries).await;
    assert_eq!(rendered(), [2, 2, 1]);

    // The release for the previous kinds is still cached.
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    crds.delete(&ferry.name_any(), &DeleteParams::default()).await.expect("the object exists");
    wait::until(&world.deployments(), &ferries, "warned again", |deployment| {
        deployment.is_some_and(|deployment| codes(deployment) == ["RequiredApiMissing"])
    })
    .await;
    assert_eq!(rendered(), [2, 2, 1]);
    world.finish().await;
}

#[tokio::test]
async fn the_status_shows_bundle_properties_and_current_warnings() {
    let world = Box::pin(world_with_frequent_polls(|client| client)).await;
    let name = world.name();
    // No other test uses this group.
    let group = format!("{name}.example.com");
    let image = world.push(&needing(&group, "Ferry")).await;
    world.deploy(&name, REGISTRY, &image).await;
    let installed = world.ready(&name).await;
    assert_eq!(codes(&installed), ["RequiredApiMissing"]);
    let status = installed.status.clone().expect("a status");
    let warning = &status.warnings[0].message;
    assert!(warning.contains(&format!("ferries.{group}")) && warning.contains("(help: install"), "{warning}");

    let bundle = status.bundle.expect("the status describes the bundle");
    assert_eq!(bundle.name.as_deref(), Some("harbour-operator.v0.1.0"));
    assert_eq!(bundle.package.as_deref(), Some("harbour-operator"));
    assert_eq!(bundle.version.as_deref(), Some("0.1.0"));
    let required = bundle.properties.iter().find(|property| property.kind == "olm.gvk.required");
    let required = required.map(|property| property.value.clone());
    assert_eq!(required, Some(json!({"group": group, "version": "v1", "kind": "Ferry"})));

    assert!(warned(&world, &name).await.contains("ferries."));

    let crd = create_crd(&world, &group, "Ferry").await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let content = without_warnings(&world, &name).await;
    assert_eq!(content.status.expect("a status").release, status.release, "only the warning is gone");

    crds.delete(&crd.name_any(), &DeleteParams::default()).await.expect("the object exists");
    wait::until(&world.deployments(), &name, "warned again", |deployment| {
        deployment.is_some_and(|deployment| codes(deployment) == ["RequiredApiMissing"])
    })
    .await;
    world.finish().await;
}
