//! What one installation costs: the requests of the controller about one BundleDeployment, by kind, and that its own writes cause no
//! further ones.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use chandler_permissions::{PolicyRule, roles};
use chandler_tests::{
    InProcess, World,
    bundles::Bundle,
    wait::{self, eventually},
    world::condition,
};
use http_body_util::BodyExt as _;
use kube::{
    Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::json;

use crate::{
    PLAIN,
    permissions::{account, apply, remove_cluster_roles, spec},
};

/// The reports of a slow fetch.
const SLOW: &str = "reports of a slow fetch";

/// The requests of a controller that mention a BundleDeployment, by what they are about.
#[derive(Clone)]
struct Counted {
    name: String,
    counts: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Counted {
    fn about(name: &str) -> Self {
        Self { name: name.to_owned(), counts: Arc::default() }
    }

    fn recording(&self, client: &Client) -> Client {
        let (inner, counted) = (client.clone(), self.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (inner, counted) = (inner.clone(), counted.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.expect("a body in memory").to_bytes();
                if let Some(kind) = counted.kind(parts.method.as_str(), &parts.uri, &String::from_utf8_lossy(&body)) {
                    *counted.counts.lock().expect("no other thread panics").entry(kind).or_default() += 1;
                }
                inner.send(http::Request::from_parts(parts, Body::from(body))).await
            }
        });
        Client::new(service, "default")
    }

    /// What a request is about, or `None` if it is not counted here.
    fn kind(&self, method: &str, uri: &http::Uri, body: &str) -> Option<&'static str> {
        let path = uri.path();
        let deployment = path.contains(&format!("/bundledeployments/{}", self.name));
        let ours = deployment || body.contains(&self.name);
        if !ours {
            return None;
        }
        Some(match method {
            _ if body.contains("Unpacking") || body.contains("fetching and rendering") => SLOW,
            "GET" if deployment => "BundleDeployment reads",
            "PATCH" if path.ends_with("/status") => "status writes",
            "PATCH" if deployment => "BundleDeployment writes",
            "POST" | "PATCH" if path.contains("/events") => "Events",
            "POST" | "PUT" if path.contains("-system/secrets") => "record writes",
            _ => return None,
        })
    }

    /// The counts. A slow fetch is reported, but does not fail the test: it depends on the machine.
    fn so_far(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = self.counts.lock().expect("no other thread panics").clone();
        counts.remove(SLOW);
        counts
    }
}

fn objects() -> Bundle {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: keeper}\n";
    Bundle::empty()
        .with("manifests/a.yaml", &map("first"))
        .with("manifests/b.yaml", &map("second"))
        .with("manifests/c.yaml", account)
}

#[tokio::test]
async fn an_installation_writes_two_statuses_one_event_and_three_secrets() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let name = world.name();
    let counted = Counted::about(&name);
    world.start_controller_on(InProcess::RecordsRequests, counted.recording(&world.client));
    let deployer = account(&world, "deployer").await;
    let everything = vec![PolicyRule::everything(), PolicyRule::every_path()];
    apply(&world, &roles(&[(None, everything)].into(), &deployer, &name)).await;
    let image = world.push(&objects()).await;
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&name).await;
    let expected: BTreeMap<_, _> = [
        // The finalizer with the kinds and namespaces of the ApplySet.
        ("BundleDeployment writes", 1),
        // The announcement, and the result.
        ("status writes", 2),
        // The result.
        ("Events", 1),
        // The release, the intent, and what was settled with the history.
        ("record writes", 3),
    ]
    .into();
    eventually("the last Event", || async { counted.so_far().get("Events") >= Some(&1) }).await;
    assert_eq!(counted.so_far(), expected);

    // Reconciles that these writes caused would have ended before this one.
    let later = format!("later-{}", world.run());
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    let small = world.push(&Bundle::empty().with("manifests/note.yaml", note)).await;
    world.apply(&later, spec(&world, PLAIN, &small, "deployer")).await;
    world.ready(&later).await;
    assert_eq!(counted.so_far(), expected);
    remove_cluster_roles(&world, &[&name]).await;
    world.finish().await;
}

#[tokio::test]
async fn a_status_that_another_client_edits_is_repaired() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&objects()).await;
    world.deploy(&name, PLAIN, &image).await;
    let ready = world.ready(&name).await;
    let message = condition(&ready, "Ready").expect("Ready").message.clone();
    for edit in [json!({"conditions": []}), json!({"history": null, "revision": null})] {
        let edit = Patch::Merge(json!({"status": edit}));
        world.deployments().patch_status(&name, &PatchParams::default(), &edit).await.expect("the edit is accepted");
        wait::until(&world.deployments(), &name, "the status as it was", |deployment| {
            deployment.is_some_and(|deployment| {
                let status = deployment.status.clone().unwrap_or_default();
                condition(deployment, "Ready").is_some_and(|ready| ready.status == "True" && ready.message == message)
                    && status.revision == Some(1)
                    && status.history.len() == 1
            })
        })
        .await;
    }
    world.finish().await;
}
