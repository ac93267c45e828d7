//! The steps that are measured.

use std::time::{Duration, Instant};

use chandler_api::{
    BundleDeployment,
    names::{PLAIN_CLASS, REQUESTED_AT_ANNOTATION},
};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::{Value, json};

use crate::{
    World,
    requests::{
        counted_controller::{CountedController, Snapshot},
        processor::{ProcessorTime, server_idle},
        reconciles::Reconciles,
        recorder::{Counts, since},
        sample::{self, Version},
    },
    wait,
    world::condition,
};

/// How long one step may take for each bundle, besides [`wait::PATIENCE`], before the measurement fails.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many requests of the benchmark run at once: a thousand would be refused connections.
pub(crate) const CONCURRENCY: usize = 64;

/// What is installed.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The number of bundles, each in its own namespace.
    pub bundles: usize,
    /// Whether each bundle is installed with its own `spec.serviceAccount`, or all with the rights of the controller.
    pub accounts: bool,
}

/// What one step cost.
#[derive(Clone, Debug)]
pub struct Step {
    /// `start`, `install`, `upgrade`, `reconcile` or `delete`.
    pub name: &'static str,
    /// The time from the first change to the state that the step waits for.
    pub time: Duration,
    /// The requests of the controller, until it and the API server are idle.
    pub requests: Counts,
    /// The reconciles of BundleDeployments.
    pub reconciles: Reconciles,
    /// The processor time.
    pub processor: ProcessorTime,
}

impl Step {
    /// The number of requests.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }
}

/// Starts a controller, installs all bundles, upgrades them, requests a reconcile of each while nothing has changed, and deletes
/// them.
pub async fn measure(world: &World, workload: Workload) -> Vec<Step> {
    let deployments = prepare(world, workload).await;
    let mut meter = Meter::start(world).await;

    let begin = Instant::now();
    each(&deployments, |deployment| deployment.apply(world, Version::First)).await;
    ready(world, &deployments).await;
    meter.record("install", begin).await;

    let begin = Instant::now();
    each(&deployments, |deployment| deployment.apply(world, Version::Second)).await;
    ready(world, &deployments).await;
    meter.record("upgrade", begin).await;

    let begin = Instant::now();
    each(&deployments, |deployment| deployment.request_reconcile(world)).await;
    each(&deployments, |deployment| deployment.reconciled(world)).await;
    meter.record("reconcile", begin).await;

    let begin = Instant::now();
    let (api, parameters) = (world.deployments(), DeleteParams::default());
    let deleted = each(&deployments, |deployment| api.delete(&deployment.name, &parameters)).await;
    assert!(deleted.iter().all(Result::is_ok), "{deleted:?}");
    for Deployment { name, patience, .. } in &deployments {
        wait::within(*patience, &api, name, "gone", |deployment| deployment.is_none()).await;
    }
    meter.record("delete", begin).await;
    meter.controller.stop().await;
    meter.steps
}

/// Does something with each of them, many at a time.
async fn each<'a, F: Future>(deployments: &'a [Deployment], act: impl Fn(&'a Deployment) -> F) -> Vec<F::Output> {
    stream::iter(deployments).map(act).buffered(CONCURRENCY).collect().await
}

async fn ready(world: &World, deployments: &[Deployment]) {
    for deployment in deployments {
        deployment.ready(world).await;
    }
}

struct Meter {
    controller: CountedController,
    before: Snapshot,
    steps: Vec<Step>,
}

impl Meter {
    /// Starts the controller and records what that costs.
    async fn start(world: &World) -> Self {
        let begin = Instant::now();
        let mut meter =
            Self { controller: CountedController::start(world), before: Snapshot::default(), steps: Vec::new() };
        meter.before.processor = meter.controller.snapshot().processor;
        meter.record("start", begin).await;
        meter
    }

    /// Records the cost since the previous step. Requests that the final status update triggers count, too.
    async fn record(&mut self, name: &'static str, begin: Instant) {
        let time = begin.elapsed();
        self.controller.idle().await;
        server_idle(self.controller.server()).await;
        let now = self.controller.snapshot();
        let before = std::mem::replace(&mut self.before, now.clone());
        self.steps.push(Step {
            name,
            time,
            requests: since(&now.requests, &before.requests),
            reconciles: now.reconciles.since(before.reconciles),
            processor: now.processor.since(before.processor),
        });
    }
}

/// A BundleDeployment of the workload.
struct Deployment {
    name: String,
    namespace: String,
    accounts: bool,
    /// How long a step may take.
    patience: Duration,
    first: String,
    second: String,
}

/// Creates the namespaces, the accounts and the images of all bundles.
async fn prepare(world: &World, workload: Workload) -> Vec<Deployment> {
    let patience = patience(workload.bundles);
    let mut deployments = Vec::new();
    for number in 0..workload.bundles {
        let name = format!("{}-{number}", world.run());
        create_namespace(world, &name).await;
        if workload.accounts {
            for mut object in sample::account(&name, &name) {
                world.mark(&mut object);
                create(&world.client, object).await;
            }
        }
        deployments.push(Deployment {
            first: world.push(&sample::bundle(&name, &name, Version::First)).await,
            second: world.push(&sample::bundle(&name, &name, Version::Second)).await,
            accounts: workload.accounts,
            patience,
            namespace: name.clone(),
            name,
        });
    }
    deployments
}

/// How long a step may take.
pub(crate) fn patience(bundles: usize) -> Duration {
    wait::PATIENCE + PATIENCE * u32::try_from(bundles).expect("a number of bundles")
}

/// Creates the namespace of a bundle.
pub(crate) async fn create_namespace(world: &World, name: &str) {
    let _: Namespace = world.create(json!({"metadata": {"name": name}})).await;
}

/// Creates an object of any kind.
pub(crate) async fn create(client: &Client, object: Value) {
    let (api, object) = api(client, object);
    api.create(&PostParams::default(), &object).await.expect("the object is accepted");
}

/// The object, and the API for its kind and namespace.
pub(crate) fn api(client: &Client, object: Value) -> (Api<DynamicObject>, DynamicObject) {
    let types: TypeMeta = serde_json::from_value(object.clone()).expect("an object has apiVersion and kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).expect("an API version"));
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    (api, object)
}

impl Deployment {
    async fn apply(&self, world: &World, version: Version) {
        let image = match version {
            Version::First => &self.first,
            Version::Second => &self.second,
        };
        let mut spec = json!({
            "installNamespace": self.namespace,
            "provisionerClassName": PLAIN_CLASS,
            "source": {"type": "image", "image": {"ref": image}},
        });
        if let (true, Some(spec)) = (self.accounts, spec.as_object_mut()) {
            spec.insert("serviceAccount".to_owned(), json!({"name": "installer"}));
        }
        world.apply(&self.name, spec).await;
    }

    async fn request_reconcile(&self, world: &World) {
        let request = json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: "now"}}});
        let patched = world.deployments().patch(&self.name, &PatchParams::default(), &Patch::Merge(request)).await;
        patched.expect("a reconcile can be requested");
    }

    async fn reconciled(&self, world: &World) {
        wait::within(self.patience, &world.deployments(), &self.name, "reconciled", |deployment| {
            let status = deployment.and_then(|deployment| deployment.status.as_ref());
            status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("now"))
        })
        .await;
    }

    async fn ready(&self, world: &World) {
        let is_ready = |deployment: &BundleDeployment| {
            condition(deployment, "Ready").is_some_and(|ready| {
                ready.status == "True" && ready.observed_generation == deployment.metadata.generation
            })
        };
        let api = world.deployments();
        wait::within(self.patience, &api, &self.name, "ready", |deployment| deployment.is_some_and(is_ready)).await;
    }
}
