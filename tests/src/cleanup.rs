//! Deletes the objects of runs, and nothing else: an object must have both the name and the label of a run.
//!
//! BundleDeployments are deleted first, while a controller deletes the objects of their releases and removes its finalizers. Only
//! if that takes too long does the clean-up remove the finalizers itself, and report what may be left. Everything else follows.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use chandler_api::{
    Alert, BundleDeployment, Catalog, ClusterOperator, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver,
    Resolution,
};
use chandler_controller::{ClusterOperatorMode, ClusterOperatorSettings, Options};
use futures::future::Either;
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace},
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
    in_process::{self, InProcess},
    run::{self, LABEL, Run},
    simulated_controllers,
};

/// How long the deletion of BundleDeployments may take before the clean-up removes their finalizers.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Deletes the objects of these runs, while a controller runs. Returns messages about what may be left.
pub async fn remove(client: &Client, runs: &BTreeSet<Run>, patience: Duration) -> Vec<String> {
    let left = remove_reconciled(client, runs, patience).await;
    remove_others(client, runs).await;
    left
}

/// Deletes the objects of these runs that a controller reconciles, while one runs. Returns messages about what may be left.
pub async fn remove_reconciled(client: &Client, runs: &BTreeSet<Run>, patience: Duration) -> Vec<String> {
    // While one is invalid, nothing is uninstalled.
    delete_all::<PlatformPolicy>(client, runs).await;
    delete_all::<Receiver>(client, runs).await;
    delete_all::<Alert>(client, runs).await;
    // Their controller would create their Resolution, and the BundleDeployments of sets, again.
    delete_and_free::<PlatformOperator>(client, runs, patience).await;
    delete_and_free::<Resolution>(client, runs, patience).await;
    delete_decisions(client, runs).await;
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    for deployment in created_by(&deployments, runs).await {
        // Neither leftover custom resources nor deleted service accounts must block the deletion.
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
    delete_all::<Catalog>(client, runs).await;
    delete_all::<ClusterOperator>(client, runs).await;
    let describe = |deployment: BundleDeployment| {
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
    left.into_iter().map(describe).collect()
}

/// Deletes the other objects of these runs, among them the accounts and permissions of controllers in containers.
pub async fn remove_others(client: &Client, runs: &BTreeSet<Run>) {
    delete_all::<ClusterRoleBinding>(client, runs).await;
    delete_all::<ClusterRole>(client, runs).await;
    delete_all::<CustomResourceDefinition>(client, runs).await;
    // A bare API server never completes this, so do not wait.
    delete_all::<Namespace>(client, runs).await;
}

/// Whether BundleDeployments of these runs exist.
pub async fn has_deployments(client: &Client, runs: &BTreeSet<Run>) -> bool {
    !created_by(&Api::<BundleDeployment>::all(client.clone()), runs).await.is_empty()
}

/// Like [`remove`], with its own controller, for runs without one.
pub async fn remove_alone(config: Config, runs: &BTreeSet<Run>, bare: bool) -> anyhow::Result<Vec<String>> {
    let client = chandler_client::client(config)?;
    let cache = tempfile::tempdir()?;
    let options = Options {
        watch_selector: run::selector(runs),
        system_namespace: "default".to_owned(),
        cache_directory: cache.path().to_path_buf(),
        platform_resolution: runs.first().map(Run::platform).unwrap_or_default(),
        cluster_operators: ClusterOperatorSettings {
            mode: ClusterOperatorMode::None,
            ..ClusterOperatorSettings::default()
        },
        ..Options::default()
    };
    let (stop, stopped) = oneshot::channel::<()>();
    in_process::note(Some(InProcess::CleansUp));
    let controller = chandler_controller::run(client.clone(), options, async {
        let _ = stopped.await;
    });
    let finalizer = simulated_controllers::finalize_namespaces(client.clone(), bare);
    let work = Box::pin(async {
        let left = remove(&client, runs, PATIENCE).await;
        if bare {
            // Only the simulated namespace controller, which ends with this function, completes this.
            remaining(&Api::<Namespace>::all(client.clone()), runs, PATIENCE / 6).await;
        }
        drop(stop);
        left
    });
    let help = Box::pin(futures::future::join(controller, finalizer));
    match futures::future::select(work, help).await {
        Either::Left((left, _)) => Ok(left),
        Either::Right(((ended, ()), _)) => {
            ended?;
            anyhow::bail!("the controller stopped early")
        }
    }
}

/// Prints what may be left.
pub fn report(removed: anyhow::Result<Vec<String>>) {
    match removed {
        Ok(left) => left.iter().for_each(|left| eprintln!("{left}")),
        Err(error) => eprintln!("failed to delete the objects of end-to-end tests: {error:#}"),
    }
}

/// Deletes what a failed test left, on any runtime. Blocks until it is done, for at most two minutes.
pub fn remove_blocking(config: Config, run: Run, bare: bool) {
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
        // Other tasks of this thread, such as an API server, move to other threads.
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(join),
        _ => join(),
    });
}

/// The killed runs that left something.
pub async fn killed_runs(client: &Client, now: Timestamp) -> BTreeSet<Run> {
    let mut runs = BTreeSet::new();
    runs.extend(left_over::<BundleDeployment>(client, now).await);
    runs.extend(left_over::<ProvisionerClass>(client, now).await);
    runs.extend(left_over::<Catalog>(client, now).await);
    runs.extend(left_over::<Resolution>(client, now).await);
    runs.extend(left_over::<PlatformOperator>(client, now).await);
    runs.extend(left_over::<PlatformPolicy>(client, now).await);
    runs.extend(left_over::<Receiver>(client, now).await);
    runs.extend(left_over::<Alert>(client, now).await);
    runs.extend(left_over::<ClusterOperator>(client, now).await);
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
    // A terminating BundleDeployment waits for a controller; everything else disappears without help.
    left.filter(|object| object.meta().deletion_timestamp.is_none() || K::kind(&()) == "BundleDeployment")
        .filter_map(|object| Run::of(object.meta()))
        .collect()
}

/// All objects with the label, regardless of their names.
async fn labelled<K>(api: &Api<K>) -> Vec<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.list(&ListParams::default().labels(LABEL)).await {
        Ok(list) => list.items,
        // Its CRD is not installed.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => {
            eprintln!("failed to list the objects of end-to-end tests: {error}");
            Vec::new()
        }
    }
}

/// The objects of these runs.
async fn created_by<K>(api: &Api<K>, runs: &BTreeSet<Run>) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut all = labelled(api).await;
    all.retain(|object| Run::of(object.meta()).is_some_and(|run| runs.contains(&run)));
    all
}

/// Waits until no object of these runs exists. Returns what still exists after `patience`.
async fn remaining<K>(api: &Api<K>, runs: &BTreeSet<Run>, patience: Duration) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut left = Vec::new();
    let _ = tokio::time::timeout(patience, async {
        loop {
            tick.tick().await;
            left = created_by(api, runs).await;
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
    for object in created_by(&api, runs).await {
        let _ = api.delete(&object.name_any(), &this(&object)).await;
    }
}

/// Deletes the ConfigMaps of which the controller would create sets again.
async fn delete_decisions(client: &Client, runs: &BTreeSet<Run>) {
    for run in runs {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &run.system_namespace());
        for map in maps.list_metadata(&ListParams::default()).await.map(|list| list.items).unwrap_or_default() {
            if map.annotations().contains_key("resolveset.chandler.dev/set") {
                let _ = maps.delete(&map.name_any(), &this(&map)).await;
            }
        }
    }
}

/// Deletes objects with a finalizer of the controller, and removes it where the controller does not.
async fn delete_and_free<K>(client: &Client, runs: &BTreeSet<Run>, patience: Duration)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    delete_all::<K>(client, runs).await;
    let api: Api<K> = Api::all(client.clone());
    for object in remaining(&api, runs, patience).await {
        let free = json!({"metadata": {"finalizers": null, "uid": object.meta().uid}});
        let _ = api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(free)).await;
    }
}

/// Deletes this very object, not another one with the same name.
fn this<K: Resource>(object: &K) -> DeleteParams {
    let preconditions = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}
