//! Removes what runs made, and nothing else: what has the name and the label of one of them.
//!
//! BundleDeployments go first, with a controller that deletes the objects of their releases and takes its finalizers off. Only
//! where that takes too long are the finalizers taken off here, and it is told what may be left. Everything else follows.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use chandler_api::{BundleDeployment, ProvisionerClass};
use chandler_controller::Options;
use futures::future::Either;
use k8s_openapi::{
    api::{
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
};

use crate::{
    run::{self, LABEL, Run},
    stand_in,
};

/// How long the removal of BundleDeployments may take before their finalizers are taken off.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Removes what these runs made, while a controller works on it. Says what may be left.
pub async fn remove(client: &Client, runs: &BTreeSet<Run>, patience: Duration) -> Vec<String> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    for deployment in made(&deployments, runs).await {
        // Custom resources that a test left, and accounts that are gone, are in nobody's way.
        let everything = json!({"spec": {
            "deletion": {"policy": "Delete", "crds": "Delete"}, "serviceAccount": null, "suspend": false,
        }});
        let name = deployment.name_any();
        let _ = deployments.patch(&name, &PatchParams::default(), &Patch::Merge(everything)).await;
        let _ = deployments.delete(&name, &this(&deployment)).await;
    }
    let left = remaining(&deployments, runs, patience).await;
    for deployment in &left {
        let free = json!({"metadata": {"finalizers": null, "uid": deployment.uid()}});
        let _ = deployments.patch(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(free)).await;
    }
    delete_all::<ProvisionerClass>(client, runs).await;
    delete_all::<ClusterRoleBinding>(client, runs).await;
    delete_all::<ClusterRole>(client, runs).await;
    delete_all::<CustomResourceDefinition>(client, runs).await;
    // A bare API server never finishes this, so nobody waits.
    delete_all::<Namespace>(client, runs).await;
    let told = |deployment: BundleDeployment| {
        let name = deployment.name_any();
        let progressing = deployment.status.iter().flat_map(|status| &status.conditions);
        let message =
            progressing.filter(|condition| condition.type_ == "Progressing").map(|condition| &condition.message);
        format!(
            "BundleDeployment {name} was not deleted within {patience:?}; objects with the label core.rukpak.io/owner-name={name} \
             may be left: {}",
            message.map(String::as_str).collect::<Vec<_>>().join("; ")
        )
    };
    left.into_iter().map(told).collect()
}

/// Whether BundleDeployments of these runs are there.
pub async fn has_deployments(client: &Client, runs: &BTreeSet<Run>) -> bool {
    !made(&Api::<BundleDeployment>::all(client.clone()), runs).await.is_empty()
}

/// The same with a controller of its own, for runs that have none.
pub async fn remove_alone(config: Config, runs: &BTreeSet<Run>, bare: bool) -> anyhow::Result<Vec<String>> {
    let client = Client::try_from(config)?;
    let cache = tempfile::tempdir()?;
    let options = Options {
        watch_selector: run::selector(runs),
        system_namespace: "default".to_owned(),
        cache_directory: cache.path().to_path_buf(),
        ..Options::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = chandler_controller::run(client.clone(), options, async {
        let _ = stopped.await;
    });
    let stand_in = stand_in::namespaces(client.clone(), bare);
    let work = Box::pin(async {
        let left = remove(&client, runs, PATIENCE).await;
        if bare {
            // Nobody else finishes this.
            remaining(&Api::<Namespace>::all(client.clone()), runs, PATIENCE / 6).await;
        }
        drop(stop);
        left
    });
    let help = Box::pin(futures::future::join(controller, stand_in));
    match futures::future::select(work, help).await {
        Either::Left((left, _)) => Ok(left),
        Either::Right(((ended, ()), _)) => {
            ended?;
            anyhow::bail!("the controller stopped")
        }
    }
}

/// Tells what may be left.
pub fn report(removed: anyhow::Result<Vec<String>>) {
    match removed {
        Ok(left) => left.iter().for_each(|left| eprintln!("{left}")),
        Err(error) => eprintln!("what end-to-end tests made could not be removed: {error:#}"),
    }
}

/// Removes what a test left when it ended too early, whatever runtime it was on. Blocks until it is done, for two minutes at the
/// most.
pub fn block(config: Config, run: Run, bare: bool) {
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let runs = BTreeSet::from([run]);
        let removed =
            runtime.block_on(async { tokio::time::timeout(2 * PATIENCE, remove_alone(config, &runs, bare)).await });
        runtime.shutdown_background();
        removed?
    };
    let Ok(thread) = std::thread::Builder::new().name("cleanup".to_owned()).spawn(work) else { return };
    let join = move || thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the clean-up panicked")));
    report(match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        // Other tasks of this thread go on elsewhere, such as an API server.
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(join),
        _ => join(),
    });
}

/// The runs that were killed and left something.
pub async fn dead(client: &Client, now: Timestamp) -> BTreeSet<Run> {
    let mut runs = BTreeSet::new();
    runs.extend(left_over::<BundleDeployment>(client, now).await);
    runs.extend(left_over::<ProvisionerClass>(client, now).await);
    runs.extend(left_over::<ClusterRoleBinding>(client, now).await);
    runs.extend(left_over::<ClusterRole>(client, now).await);
    runs.extend(left_over::<CustomResourceDefinition>(client, now).await);
    runs.extend(left_over::<Namespace>(client, now).await);
    runs
}

async fn left_over<K>(client: &Client, now: Timestamp) -> Vec<Run>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let all = labelled(&Api::<K>::all(client.clone())).await;
    let left = all.into_iter().filter(|object| run::is_left_over(object.meta(), now));
    // A BundleDeployment that is being deleted waits for a controller; everything else goes by itself.
    left.filter(|object| object.meta().deletion_timestamp.is_none() || K::kind(&()) == "BundleDeployment")
        .filter_map(|object| Run::of(object.meta()))
        .collect()
}

/// Everything that carries the label, whatever its name.
async fn labelled<K>(api: &Api<K>) -> Vec<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.list(&ListParams::default().labels(LABEL)).await {
        Ok(list) => list.items,
        // Its CRD is not there.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            eprintln!("what end-to-end tests made cannot be listed: {error}");
            Vec::new()
        }
    }
}

/// What these runs made.
async fn made<K>(api: &Api<K>, runs: &BTreeSet<Run>) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut all = labelled(api).await;
    all.retain(|object| Run::of(object.meta()).is_some_and(|run| runs.contains(&run)));
    all
}

/// Waits until nothing of it is there; gives what is there when the patience is over.
async fn remaining<K>(api: &Api<K>, runs: &BTreeSet<Run>, patience: Duration) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut left = Vec::new();
    let _ = tokio::time::timeout(patience, async {
        loop {
            tick.tick().await;
            left = made(api, runs).await;
            if left.is_empty() {
                return;
            }
        }
    })
    .await;
    left
}

async fn delete_all<K>(client: &Client, runs: &BTreeSet<Run>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    for object in made(&api, runs).await {
        let _ = api.delete(&object.name_any(), &this(&object)).await;
    }
}

/// Deletes the object that was looked at, not another one that got its name.
fn this<K: Resource>(object: &K) -> DeleteParams {
    let preconditions = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}
