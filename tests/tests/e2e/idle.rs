//! What it costs that nothing changes: a pass reads each kind once, writes nothing and calls no provisioner, after a restart
//! too; a tag is asked for at the registry and nowhere else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_engine::Limits;
use chandler_tests::{World, bundles, wait, wait::eventually};
use kube::{
    Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::json;

use crate::{PLAIN, REGISTRY, quiet::versions};

/// What a controller asked of the API server, watches apart: `GET /path?query`.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    /// A client whose requests are noted.
    fn noting(&self, client: &Client) -> Client {
        let (inner, asked) = (client.clone(), self.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let text = format!("{} {}", request.method(), request.uri());
            if !text.contains("watch=true") {
                asked.0.lock().expect("no test panics here").push(text);
            }
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Client::new(service, "default")
    }

    /// What mentions one of these.
    fn about(&self, about: &[&str]) -> Vec<String> {
        let asked = self.0.lock().expect("no test panics here");
        asked.iter().filter(|text| about.iter().any(|about| text.contains(about))).cloned().collect()
    }

    /// What writes, Events and what mentions this apart.
    fn writes(&self, without: &str) -> Vec<String> {
        let asked = self.0.lock().expect("no test panics here");
        let writes = asked.iter().filter(|text| !text.starts_with("GET ") && !text.contains("/events"));
        // The record of another one is made when that is first seen.
        let made = |text: &str| text.starts_with("POST ") && text.contains("/secrets?");
        writes.filter(|text| !text.contains(without) && !made(text)).cloned().collect()
    }

    fn forget(&self) {
        self.0.lock().expect("no test panics here").clear();
    }
}

/// What a pass over a BundleDeployment asks, and how often.
struct Passes {
    asked: Asked,
    /// Its name in a path, and the identity of its set in a selector.
    marks: [String; 2],
}

impl Passes {
    async fn of(world: &World, name: &str, asked: Asked) -> Self {
        let deployment = world.deployments().get(name).await.expect("the BundleDeployment");
        let labels = deployment.metadata.labels.expect("labels");
        let set = labels.get("applyset.kubernetes.io/id").expect("the identity of the set").clone();
        Self { asked, marks: [format!("/bundledeployments/{name}"), set] }
    }

    fn requests(&self) -> BTreeMap<String, usize> {
        let mut requests = BTreeMap::new();
        for text in self.asked.about(&self.marks.each_ref().map(String::as_str)) {
            let path = text.split('?').next().unwrap_or_default().to_owned();
            *requests.entry(path).or_default() += 1;
        }
        requests
    }

    /// Waits until every kind of the release was read.
    async fn seen(&self, kinds: usize) {
        eventually("a pass over it", || async { self.requests().len() > kinds }).await;
    }
}

/// The kinds that the harbour operator has objects of.
const KINDS: [&str; 7] = [
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
];

#[tokio::test]
async fn a_pass_that_finds_nothing_changed_only_reads_and_calls_no_provisioner() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    world.deploy(&name, REGISTRY, &image).await;
    world.ready(&name).await;
    let small = world.push(&bundles::Bundle::empty().with("manifests/a.yaml", NOTE)).await;
    world.stop_controller().await;
    let mut before = versions(&world, &name).await;

    let asked = Asked::default();
    let passes = Passes::of(&world, &name, asked.clone()).await;
    // The kinds of the operator have come since it was rendered; now it is rendered for a cluster that has them.
    world.start_controller_on(asked.noting(&world.client));
    passes.seen(KINDS.len()).await;
    world.stop_controller().await;
    asked.forget();
    world.start_controller_with(asked.noting(&world.client), |options| {
        // One after the other, so that what began earlier is over; and every call of a provisioner fails.
        options.concurrency = 1;
        options.ceiling = Limits { objects: 0, ..Limits::default() };
    });
    for round in ["restart", "poke"] {
        if round == "poke" {
            asked.forget();
            let poke = Patch::Merge(json!({"metadata": {"annotations": {"example.com/poke": "1"}}}));
            let poked = world.deployments().patch(&name, &PatchParams::default(), &poke).await.expect("an annotation");
            before.insert("BundleDeployment".into(), poked.metadata.resource_version.expect("a version"));
        }
        passes.seen(KINDS.len()).await;
        let probe = format!("probe-{round}-{name}");
        world.deploy(&probe, PLAIN, &small).await;
        world.condition(&probe, "Ready", "False", "PluginLimitExceeded").await;

        let mut writes = asked.writes(&probe);
        if round == "restart" {
            // Where a workload controller annotated the Deployment, its generation says that it changed: it is compared once.
            writes.retain(|text| !(text.contains("/deployments/harbour-operator?") && text.contains("dryRun=All")));
        }
        assert_eq!(writes, [""; 0], "{round}");
        let mut requests = passes.requests();
        let looks = requests.remove(&format!("GET /apis/core.rukpak.io/v1alpha2/bundledeployments/{name}"));
        let expected = KINDS.map(|kind| (format!("GET {kind}"), looks.unwrap_or_default()));
        assert_eq!(requests, expected.into(), "{round}");
        assert_eq!(versions(&world, &name).await, before, "{round}");
    }
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

#[tokio::test]
async fn a_tag_is_asked_for_again_without_a_look_at_the_cluster() {
    let mut world = World::new().await;
    let name = world.name();
    let bundle = bundles::Bundle::empty().with("manifests/a.yaml", NOTE);
    let (repository, _) = split(&world.push(&bundle).await);
    world.stop_controller().await;
    let asked = Asked::default();
    world.start_controller_with(asked.noting(&world.client), |options| {
        options.image_poll_interval = Duration::from_millis(1);
    });
    world.deploy(&name, PLAIN, &format!("{repository}:latest")).await;
    world.ready(&name).await;
    let passes = Passes::of(&world, &name, asked.clone()).await;

    // The last passes of the rollout may still come; after them none does.
    let polls = || world.registry.requests().iter().filter(|text| text.starts_with("HEAD")).count();
    eventually("two polls without a look at the cluster", || async {
        asked.forget();
        let until = polls() + 2;
        eventually("the tag is asked for", || async { polls() >= until }).await;
        passes.requests().is_empty()
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
