//! `chandler migrate --apply` that ends, or whose requests fail, at every request in turn: either the old owner has everything, or the new one
//! does, and running the command again completes.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use chandler::{Arguments, command::Command, migrate::ForeignObject, view::terminal::Terminal};
use chandler_api::AdoptedObject;
use chandler_tests::{World, bundles::Bundle};
use clap::Parser as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::{
    Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    client::Body,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::{BoxError, Layer, Service};

use crate::{
    commands::Session,
    migrate::{OLM, api, check_adopted, create, extension_with, install_crd, run_bundle, state, workload},
};

/// Which requests fail. They are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// This one, as when a connection is lost.
    Once(usize),
    /// The command ends before this one.
    From(usize),
    /// The command ends when the API server has processed this one.
    After(usize),
}

/// Fails requests, and records them.
#[derive(Clone)]
struct Faults(Fault, Arc<Mutex<Vec<Sent>>>, Arc<Notify>);

#[derive(Clone, Debug)]
struct Sent {
    text: String,
    writes: bool,
}

impl Faults {
    fn new(fault: Fault) -> Self {
        Self(fault, Arc::default(), Arc::default())
    }

    fn sent(&self) -> Vec<Sent> {
        self.1.lock().unwrap().clone()
    }
}

impl<S> Layer<S> for Faults {
    type Service = Failing<S>;

    fn layer(&self, inner: S) -> Failing<S> {
        Failing(inner, self.clone())
    }
}

#[derive(Clone)]
struct Failing<S>(S, Faults);

impl<S, B> Service<Request<Body>> for Failing<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
        let reviews = path.contains("/apis/authorization.k8s.io/") || path.contains("/apis/authentication.k8s.io/");
        let number = {
            let mut sent = self.1.1.lock().unwrap();
            sent.push(Sent { text: format!("{method} {path}"), writes: method != Method::GET && !is_dry && !reviews });
            sent.len() - 1
        };
        let fault = self.1.0;
        if fault == Fault::Once(number) {
            return Box::pin(async { Err(BoxError::from("the connection was lost")) });
        }
        let ended = Arc::clone(&self.1.2);
        if fault == Fault::From(number) {
            ended.notify_one();
            return Box::pin(pending());
        }
        let response = self.0.call(request);
        if fault == Fault::After(number) {
            return Box::pin(async move {
                response.await?;
                ended.notify_one();
                pending().await
            });
        }
        Box::pin(response)
    }
}

/// An operator without CRDs, roles and configuration: a ServiceAccount and a Deployment.
fn bundle() -> Bundle {
    let container = json!({"name": "manager", "image": "registry.k8s.io/pause:3.10"});
    let labels = json!({"app": "tug"});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"serviceAccountName": "tug", "containers": [container]}}});
    let install = json!({"strategy": "deployment", "spec": {
        "permissions": [{"serviceAccountName": "tug", "rules": []}], "deployments": [{"name": "tug", "spec": spec}]}});
    let modes =
        ["OwnNamespace", "SingleNamespace", "AllNamespaces"].map(|mode| json!({"type": mode, "supported": true}));
    let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "tug.v0.1.0"},
        "spec": {"displayName": "Tug", "version": "0.1.0", "installModes": modes, "install": install}});
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
        operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
        operators.operatorframework.io.bundle.package.v1: tug\n";
    Bundle::empty().with("manifests/tug.json", &csv.to_string()).with("metadata/annotations.yaml", annotations)
}

/// An installation of OLM v1: a ClusterExtension, its ClusterObjectSet, and the objects that this one controls.
struct Installed {
    managers: Vec<ForeignObject>,
    objects: Vec<AdoptedObject>,
    workload: Value,
}

async fn installed(world: &World, image: &str) -> Installed {
    let mut managers = extension_with(world, image, json!({})).await;
    install_crd(world, OLM, "v1", "ClusterObjectSet", "Cluster").await;
    let extension = &managers[0];
    let owner = json!({"apiVersion": extension.api_version, "kind": extension.kind, "name": extension.name,
        "uid": extension.uid, "controller": true});
    let set = json!({"apiVersion": format!("{OLM}/v1"), "kind": "ClusterObjectSet", "spec": {},
        "metadata": {"name": format!("{}-1", world.name()), "ownerReferences": [owner]}});
    managers.push(create(world, set).await);
    let objects = run_bundle(world, image, &managers[1], true).await;
    Installed { managers, objects, workload: state(&workload(world).await) }
}

/// The controller of each object.
async fn controllers(world: &World, objects: &[AdoptedObject]) -> Vec<String> {
    let mut found = Vec::new();
    for object in objects {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&object.group, "v1", &object.kind));
        let namespace = object.namespace.as_deref().unwrap();
        let objects: kube::Api<DynamicObject> = kube::Api::namespaced_with(world.client.clone(), namespace, &resource);
        let live = objects.get(&object.name).await.unwrap();
        assert_eq!(live.uid().as_ref(), Some(&object.uid), "{} was created again", object.name);
        let controllers = live.owner_references().iter().filter(|owner| owner.controller == Some(true));
        found.push(controllers.map(|owner| owner.kind.clone()).collect::<Vec<_>>().join(" and "));
    }
    found
}

impl Installed {
    /// Checks that nothing was taken from the old owner before the new one has everything, and then, at rest, that one of them has all.
    /// Whether the new one does.
    async fn check(&self, world: &World, when: &str) -> bool {
        let new = vec!["BundleDeployment".to_owned(); self.objects.len()];
        let mut remaining = true;
        for manager in &self.managers {
            let live = api(world, manager).get_opt(&manager.name).await.unwrap();
            remaining &= live.is_some_and(|live| live.metadata.deletion_timestamp.is_none());
        }
        if !remaining {
            assert_eq!(controllers(world, &self.objects).await, new, "{when}: an owner is gone too early");
        }
        if world.deployments().get_opt(&world.name()).await.unwrap().is_none() {
            assert!(remaining, "{when}: the objects have no owner");
            let old = vec!["ClusterObjectSet".to_owned(); self.objects.len()];
            assert_eq!(controllers(world, &self.objects).await, old, "{when}");
            return false;
        }
        world.ready(&world.name()).await;
        assert_eq!(controllers(world, &self.objects).await, new, "{when}");
        assert_eq!(state(&workload(world).await), self.workload, "{when}");
        true
    }
}

/// Runs the command in this process, with these faults.
async fn migrate(session: &Session, fault: Fault) -> (bool, Vec<Sent>) {
    let (name, label) = (session.world.name(), session.label());
    let cache = crate::support::cache();
    let line = [
        "chandler",
        "migrate",
        "olmv1",
        &name,
        "--apply",
        "--yes",
        "--allow-new",
        "--label",
        &label,
        "--cache-directory",
        cache.to_str().unwrap(),
    ];
    let Command::Migrate(command) = Arguments::parse_from(line).command else { unreachable!() };
    let faults = Faults::new(fault);
    let builder = chandler_client::builder(session.world.config()).unwrap();
    let client: Client = builder.with_layer(&faults).build();
    let terminal = Terminal::detect();
    let done = tokio::select! {
        done = command.run_on(client, &terminal) => done.is_ok(),
        () = faults.2.notified() => false,
    };
    (done, faults.sent())
}

#[tokio::test(flavor = "multi_thread")]
async fn either_the_old_owner_or_the_new_one_has_everything_whatever_request_fails() {
    let session = Session::start().await;
    let world = &session.world;
    let image = world.push(&bundle()).await;
    let mut now = installed(world, &image).await;
    let (mut number, mut reached) = (0, 0);
    loop {
        let (mut is_last, mut faults) = (false, vec![Fault::Once(number)]);
        while let Some(fault) = faults.pop() {
            let (_, sent) = migrate(&session, fault).await;
            let Some(request) = sent.get(number).cloned() else {
                is_last = true;
                break;
            };
            if matches!(fault, Fault::Once(_)) {
                // Before the first write, a command that ends is a command that fails.
                let has_written = sent[..number].iter().any(|sent| sent.writes);
                faults.extend(has_written.then_some(Fault::From(number)));
                faults.extend(request.writes.then_some(Fault::After(number)));
            }
            let when = format!("{fault:?}, {}", request.text);
            if now.check(world, &when).await {
                reached += 1;
                let (done, sent) = migrate(&session, Fault::None).await;
                // A command whose one lost request did not matter is complete.
                assert!(
                    done || api(world, &now.managers[0]).get_opt(&world.name()).await.unwrap().is_none(),
                    "{when}: {sent:?}"
                );
                check_adopted(world, &now.workload, &now.managers).await;
                now = installed(world, &image).await;
            }
        }
        if is_last {
            break;
        }
        number += 1;
    }
    assert!(number > 20 && reached > 10, "{number} requests, {reached} of them after the BundleDeployment was created");
    // The last run had no fault.
    check_adopted(world, &now.workload, &now.managers).await;
    session.world.finish().await;
}
