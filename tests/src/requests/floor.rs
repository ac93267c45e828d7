//! The floor: what the API server needs for the same objects without a controller. A client sends each object once, and each changed
//! object once more.

use std::time::Instant;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tower::util::MapRequestLayer;

use crate::{
    World,
    requests::{
        Step, Workload,
        processor::{ProcessorTime, server_idle},
        reconciles::Reconciles,
        recorder::{Counts, Recorder, since},
        sample::{self, Version},
        workload::{CONCURRENCY, api, create, create_namespace, patience},
    },
    wait,
};

/// The name of the Deployment of each bundle.
const DEPLOYMENT: &str = "operator";

/// No controller runs, hence no thread of one.
const NO_THREAD: &str = "";

/// Creates the objects of all bundles, updates them to the second version, and waits each time until the Deployments are
/// available. The steps are `install` and `upgrade`; the requests are the ones of this client.
pub async fn floor(world: &World, workload: Workload) -> Vec<Step> {
    let names: Vec<String> = (0..workload.bundles).map(|number| format!("{}-{number}", world.run())).collect();
    for name in &names {
        create_namespace(world, name).await;
    }
    let mut meter = Meter::new(world);

    let begin = Instant::now();
    stream::iter(&names)
        .map(|name| install(world, &meter.client, name))
        .buffer_unordered(CONCURRENCY)
        .collect::<()>()
        .await;
    available(world, &names).await;
    meter.record("install", begin).await;

    let begin = Instant::now();
    stream::iter(&names).map(|name| upgrade(&meter.client, name)).buffer_unordered(CONCURRENCY).collect::<()>().await;
    available(world, &names).await;
    meter.record("upgrade", begin).await;

    meter.steps
}

async fn install(world: &World, client: &kube::Client, name: &str) {
    for mut object in sample::objects(name, name, Version::First) {
        world.mark(&mut object);
        create(client, object).await;
    }
}

/// Patches what [`Version`] says: a ConfigMap, and the image of the Deployment.
async fn upgrade(client: &kube::Client, name: &str) {
    let (first, second) = (sample::objects(name, name, Version::First), sample::objects(name, name, Version::Second));
    for object in second.into_iter().filter(|object| !first.contains(object)) {
        let (api, object) = api(client, object);
        let changes = json!({"data": object.data.get("data"), "spec": object.data.get("spec")});
        let name = object.metadata.name.as_deref().unwrap_or_default();
        api.patch(name, &PatchParams::default(), &Patch::Strategic(changes)).await.expect("the object is patched");
    }
}

async fn available(world: &World, names: &[String]) {
    for name in names {
        let api: Api<Deployment> = Api::namespaced(world.client.clone(), name);
        wait::within(patience(names.len()), &api, DEPLOYMENT, "available", |found| found.is_some_and(is_available))
            .await;
    }
}

/// As `kubectl rollout status` sees it.
fn is_available(deployment: &Deployment) -> bool {
    let Some(status) = &deployment.status else { return false };
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas == Some(replicas)
        && status.available_replicas == Some(replicas)
        && status.replicas == Some(replicas)
}

struct Meter {
    client: kube::Client,
    recorder: Recorder,
    server: Option<u32>,
    before: (Counts, ProcessorTime),
    steps: Vec<Step>,
}

impl Meter {
    fn new(world: &World) -> Self {
        let recorder = Recorder::new(&world.options().system_namespace);
        let recording = recorder.clone();
        let recording = MapRequestLayer::new(move |request| recording.record(request));
        let client = chandler_client::builder(world.config()).expect("a usable configuration");
        let server = world.server_process();
        Self {
            client: client.with_layer(&recording).build(),
            recorder,
            server,
            before: (Counts::new(), ProcessorTime::of(NO_THREAD, server)),
            steps: Vec::new(),
        }
    }

    async fn record(&mut self, name: &'static str, begin: Instant) {
        let time = begin.elapsed();
        server_idle(self.server).await;
        let now = (self.recorder.counts(), ProcessorTime::of(NO_THREAD, self.server));
        let (requests, processor) = std::mem::replace(&mut self.before, now.clone());
        self.steps.push(Step {
            name,
            time,
            requests: since(&now.0, &requests),
            reconciles: Reconciles::default(),
            processor: now.1.since(processor),
        });
    }
}
