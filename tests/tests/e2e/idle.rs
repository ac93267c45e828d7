//! What it costs that nothing changes: a tag is asked for at the registry and nowhere else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_tests::{World, bundles, wait, wait::eventually};
use kube::{Client, client::Body};

use crate::PLAIN;

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
