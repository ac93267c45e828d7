//! The cost of a reconcile without changes: it reads each kind once and the BundleDeployment not at all, writes nothing and calls no
//! provisioner, even after a restart.
//! Polling a tag sends requests only to the registry.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_api::names::REQUESTED_AT_ANNOTATION;
use chandler_engine::Limits;
use chandler_tests::{InProcess, World, bundles, wait, wait::eventually};
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams},
    client::Body,
};
use serde_json::json;

use crate::{PLAIN, REGISTRY, idempotence::versions};

/// The requests of a controller to the API server, without watches: `GET /path?query`.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// A client whose requests are recorded.
    pub(crate) fn recording(&self, client: &Client) -> Client {
        let (inner, requests) = (client.clone(), self.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let text = format!("{} {}", request.method(), request.uri());
            if !text.contains("watch=true") {
                requests.0.lock().expect("no other thread panics").push(text);
            }
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Client::new(service, "default")
    }

    /// The requests that mention one of these.
    pub(crate) fn about(&self, about: &[&str]) -> Vec<String> {
        let requests = self.0.lock().expect("no other thread panics");
        requests.iter().filter(|text| about.iter().any(|about| text.contains(about))).cloned().collect()
    }

    /// The writes, without Events and those that mention `without`.
    pub(crate) fn writes(&self, without: &str) -> Vec<String> {
        let requests = self.0.lock().expect("no other thread panics");
        let writes = requests.iter().filter(|text| !text.starts_with("GET ") && !text.contains("/events"));
        // The controller creates the record of another BundleDeployment when it first sees that one.
        let made = |text: &str| text.starts_with("POST ") && text.contains("/secrets?");
        writes.filter(|text| !text.contains(without) && !made(text)).cloned().collect()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().expect("no other thread panics").clear();
    }
}

/// The requests that reconciles of a BundleDeployment make for its objects.
struct Reconciles {
    requests: Requests,
    /// Its name in a path, the ID of its ApplySet in a selector, and the names of its objects.
    marks: [String; 3],
}

impl Reconciles {
    async fn of(world: &World, name: &str, requests: Requests) -> Self {
        let deployment = world.deployments().get(name).await.expect("the BundleDeployment");
        let labels = deployment.metadata.labels.expect("labels");
        let set = labels.get("applyset.kubernetes.io/id").expect("the ID of the ApplySet").clone();
        Self { requests, marks: [format!("/bundledeployments/{name}"), set, "/harbour-operator".to_owned()] }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.about(&self.marks.each_ref().map(String::as_str))
    }
}

/// Requests a reconcile, and waits until the status reports that it is done.
async fn request_reconcile(world: &World, name: &str, when: &str) -> String {
    let request = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: when}}});
    world.deployments().patch(name, &PatchParams::default(), &Patch::Merge(request)).await.expect("an annotation");
    let done = wait::until(&world.deployments(), name, "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some(when))
    })
    .await;
    done.and_then(|deployment| deployment.metadata.resource_version).expect("a version")
}

#[tokio::test]
async fn a_reconcile_without_changes_makes_no_request_and_calls_no_provisioner() {
    let mut world = World::in_process(InProcess::RecordsRequests).await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;
    let small = world.push(&bundles::Bundle::empty().with("manifests/a.yaml", NOTE)).await;
    world.stop_controller().await;

    let requests = Requests::default();
    let reconciles = Reconciles::of(&world, &name, requests.clone()).await;
    // The operator's kinds were added after it was rendered; now it is rendered for a cluster that serves them.
    world.start_controller_on(InProcess::RecordsRequests, requests.recording(&world.client));
    request_reconcile(&world, &name, "rendered").await;
    world.stop_controller().await;
    let mut before = versions(&world, &name).await;
    requests.forget();
    world.start_controller_with(InProcess::RecordsRequests, requests.recording(&world.client), |options| {
        // One after another, so that earlier work is complete; and every provisioner call fails.
        options.concurrency = 1;
        options.ceiling = Limits { objects: 0, ..Limits::default() };
    });
    for round in ["restart", "again"] {
        let version = request_reconcile(&world, &name, round).await;
        before.insert("BundleDeployment".into(), version);
        let probe = format!("probe-{round}-{name}");
        world.deploy(&probe, PLAIN, &small).await;
        world.condition(&probe, "Ready", "False", "PluginLimitExceeded").await;

        let status = format!("PATCH /apis/core.rukpak.io/v1alpha2/bundledeployments/{name}/status?");
        let mut made = reconciles.requests();
        let reports = made.extract_if(.., |text| text.starts_with(&status)).count();
        assert_eq!(reports, 1, "the reconcile that was requested is reported");
        if round == "restart" {
            // If a workload controller annotated the Deployment, its generation changed: it is compared once.
            made.retain(|text| !(text.contains("/deployments/harbour-operator?") && text.contains("dryRun=All")));
        }
        assert_eq!(made, [""; 0], "{round}");
        let mut writes = requests.writes(&probe);
        writes.retain(|text| !text.starts_with(&status) && !text.contains("dryRun=All"));
        assert_eq!(writes, [""; 0], "{round}");
        assert_eq!(versions(&world, &name).await, before, "{round}");
        requests.forget();
    }
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

#[tokio::test]
async fn the_repair_of_a_deleted_object_reads_it_once_and_writes_the_record_once() {
    let mut world = World::in_process(InProcess::RecordsRequests).await;
    let name = world.name();
    let image = world.push(&bundles::Bundle::empty().with("manifests/a.yaml", NOTE)).await;
    world.stop_controller().await;
    let requests = Requests::default();
    world.start_controller_on(InProcess::RecordsRequests, requests.recording(&world.client));
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    eventually("the Event of the installation", || async { !requests.about(&["/events"]).is_empty() }).await;
    requests.forget();
    let before = world.config_maps().get("note").await.expect("the object is installed").metadata.uid;
    world.config_maps().delete("note", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "note", "created again", |map| map.is_some_and(|map| map.metadata.uid != before))
        .await;
    eventually("the Event of the repair", || async { !requests.about(&["/events"]).is_empty() }).await;
    let made = requests.about(&["/configmaps", "/secrets", &format!("/bundledeployments/{name}"), "/events"]);
    let dry = |text: &String| if text.contains("dryRun") { " (dry run)" } else { "" };
    let kind = |text: &String| {
        let (method, uri) = text.split_once(' ').expect("a method and a URI");
        let mut resources = ["configmaps", "secrets", "bundledeployments", "events"].into_iter();
        let resource = resources.find(|resource| uri.contains(&format!("/{resource}"))).expect("one of these");
        format!("{method} {resource}{}", dry(text))
    };
    let made: Vec<String> = made.iter().map(kind).collect();
    let expected = ["GET configmaps", "GET bundledeployments", "POST configmaps", "PUT secrets", "POST events"];
    assert_eq!(made, expected);
    world.finish().await;
}

#[tokio::test]
async fn polling_a_tag_sends_no_requests_to_the_cluster() {
    let mut world = World::in_process(InProcess::RecordsRequests).await;
    let name = world.name();
    let bundle = bundles::Bundle::empty().with("manifests/a.yaml", NOTE);
    let (repository, _) = split(&world.push(&bundle).await);
    world.stop_controller().await;
    let requests = Requests::default();
    world.start_controller_with(InProcess::RecordsRequests, requests.recording(&world.client), |options| {
        options.image_poll_interval = Duration::from_millis(1);
    });
    world.deploy(&name, PLAIN, &format!("{repository}:latest")).await;
    world.ready(&name).await;
    let reconciles = Reconciles::of(&world, &name, requests.clone()).await;

    // The last reconciles of the rollout may still follow; after them there are none.
    let polls = || world.registry.requests().iter().filter(|text| text.starts_with("HEAD")).count();
    eventually("two polls without a request to the cluster", || async {
        requests.forget();
        let until = polls() + 2;
        eventually("the tag is polled", || async { polls() >= until }).await;
        reconciles.requests().is_empty()
    })
    .await;

    let (_, digest) = split(&world.push(&bundle.with("manifests/b.yaml", &NOTE.replace("note", "other"))).await);
    wait::until(&world.deployments(), &name, "the new image", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        let source = status.and_then(|status| status.resolved_source.as_ref()?.image.as_ref());
        source.is_some_and(|image| image.reference.ends_with(&digest))
    })
    .await;
    let deployed = world.ready(&name).await;
    let history = deployed.status.expect("a status").history;
    let revisions: BTreeSet<_> = history.iter().map(|revision| revision.release_digest.as_str()).collect();
    assert_eq!(revisions.len(), 2);
    world.finish().await;
}

fn split(image: &str) -> (String, String) {
    let (repository, digest) = image.split_once('@').expect("an image by digest");
    (repository.to_owned(), digest.to_owned())
}
