//! Starts and stops everything.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use chandler_api::{BundleDeployment, ChangeApproval, ProvisionerClass};
use chandler_builtin::Provisioners;
use chandler_content::{ImageOptions, Images, Store, StoreError};
use chandler_engine::{Engine, EngineError, EngineOptions};
use chandler_permissions::Installation;
use chandler_records::{MANAGED_BY, RecordError, Records};
use chandler_releases::Releases;
use chandler_rollout::{Rollout, readable};
use chandler_source::{Dependency, Source, Sources, SystemNamespace};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, future::Either};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Config,
        events::Reporter,
        reflector::{self, ObjectRef, Store as Reflected, reflector},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::{
    Options, WatchSelector,
    approvals::Approvals,
    backoff::Backoff,
    bundle_deployment::{self, Guarded},
    classes::Classes,
    cluster_info::ClusterInfoWatch,
    context::Context,
    events::Events,
    housekeeping,
    memory::Memory,
    polls, provisioner_class,
    served::Served,
    slots::Slots,
    supersession::Generations,
    watches::ManagedWatches,
};

/// How long changes of one object are gathered before it is looked at.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(50);

/// The controller could not start.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The cache directory cannot be used.
    #[error("failed to open the cache: {0}")]
    Store(#[from] StoreError),
    /// The directory of notes about classes cannot be used.
    #[error("failed to open the cache: {0}")]
    Cache(#[source] std::io::Error),
    /// The cache of releases cannot be used.
    #[error("failed to open the cache: {0}")]
    Releases(#[from] chandler_releases::OpenError),
    /// The records of what was installed cannot be read.
    #[error("failed to read the records: {0}")]
    Records(#[from] RecordError),
    /// The engine cannot be set up.
    #[error("failed to set up the engine: {0}")]
    Engine(#[from] EngineError),
    /// The API server does not answer, or does not know our kinds.
    #[error(
        "failed to list {what}: {source} (are the CRDs installed? `chandler crds | kubectl apply --server-side -f -`)"
    )]
    List {
        /// What was listed.
        what: &'static str,
        /// What the client says.
        source: kube::Error,
    },
}

/// Runs until `shutdown` is ready; then finishes the reconciles that are under way.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ControllerError> {
    let client = readable(&client);
    let (watches, triggers) = ManagedWatches::new(client.clone());
    let (approvals, watch_approvals) = Approvals::new(client.clone(), watches.triggers());
    let (store, writer) = reflector::store();
    let context = Arc::new(context(client.clone(), options, watches, approvals, store.clone())?);
    // Where some BundleDeployments are left to others, so are their records.
    context.records.load(context.options.watch_selector.selects_all()).await?;
    provisioner_class::watch::preload(&context).await?;
    let selector = &context.options.watch_selector;
    probe::<BundleDeployment>(&client, selector, "BundleDeployments").await?;
    probe::<ChangeApproval>(&client, &WatchSelector::default(), "ChangeApprovals").await?;
    if !selector.selects_all() {
        tracing::info!(%selector, "other BundleDeployments and ProvisionerClasses are left alone");
    }

    let shutdown = shutdown.shared();
    // As many as there are: what is done at once is bounded by slots.
    let config = Config::default().debounce(DEBOUNCE);
    let (class_store, classes) = provisioner_class::watch::run(&context, shutdown.clone());

    let system = context.options.system_namespace.clone();
    let seen = {
        let context = Arc::clone(&context);
        move |guarded: &Guarded| {
            if let Ok(deployment) = &guarded.0 {
                context.generations.see(deployment);
            }
        }
    };
    let left = {
        let context = Arc::clone(&context);
        move |event: &watcher::Event<Guarded>| {
            if let watcher::Event::Delete(guarded) = event {
                leave(guarded, &context);
            }
        }
    };
    let events = watcher(Api::<Guarded>::all(client.clone()), selector.watch()).inspect_ok(left);
    // Often the larger part of an object, and nobody here asks who set which field.
    let events = events.modify(|guarded| guarded.managed_fields_mut().clear());
    let events = reflector(writer, events).applied_objects().inspect_ok(seen);
    let controller = Controller::for_stream(events, store.clone());
    let deployments = controller
        .with_config(config)
        .graceful_shutdown_on(shutdown.clone())
        .watches(Api::<PartialObjectMeta<ProvisionerClass>>::all(client.clone()), selector.watch(), {
            let context = Arc::clone(&context);
            move |class| context.helped(|deployment| deployment.spec.provisioner_class_name == class.name_any())
        })
        .watches(
            Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), &system),
            watcher::Config::default(),
            {
                let context = Arc::clone(&context);
                move |map| {
                    let map = Dependency::ConfigMap(map.name_any());
                    context.helped(|deployment| depends_on(deployment, &map))
                }
            },
        )
        .watches(Api::<PartialObjectMeta<Secret>>::namespaced(client.clone(), &system), foreign_secrets(), {
            let context = Arc::clone(&context);
            move |secret| {
                let secret = Dependency::Secret(secret.name_any());
                context.helped(|deployment| depends_on(deployment, &secret))
            }
        })
        .reconcile_on(UnboundedReceiverStream::new(triggers).map(|trigger| ObjectRef::new(&trigger.name)))
        .reconcile_all_on(context.cluster_info.changes().map({
            let context = Arc::clone(&context);
            move |cluster| context.memory.cluster_changed(&cluster)
        }))
        .run(bundle_deployment::reconcile, bundle_deployment::on_error, Arc::clone(&context))
        .for_each(|_| async {});

    tracing::info!("the controller runs");
    let started =
        { async move { store.wait_until_ready().await.is_ok() && class_store.wait_until_ready().await.is_ok() } };
    tokio::select! {
        _ = futures::future::join(classes, deployments) => {}
        () = watch_approvals => {}
        () = housekeeping::run(&context) => {}
        () = polls::run(&context) => {}
        () = context.cluster_info.run(context.options.cluster_poll_interval) => {}
        () = close(&context, shutdown.clone()) => {}
        () = stopped_early(shutdown, started) => tracing::info!("stopped before anything was listed"),
    }
    context.memory.preparing.end_all();
    tracing::info!("the controller stopped");
    Ok(())
}

/// Has no pass begin any more when the controller is stopped: kube's runner waits for all that it has called, of which many may
/// wait for a slot. Never ready.
async fn close(context: &Context, shutdown: impl Future<Output = ()>) {
    shutdown.await;
    context.slots.close();
    std::future::pending::<()>().await;
}

/// Ready when the controller is stopped before it has started: kube's runner waits for its first lists even after it was told
/// to stop, and they may never come.
async fn stopped_early(shutdown: impl Future<Output = ()>, started: impl Future<Output = bool>) {
    let (shutdown, started) = (pin!(shutdown), pin!(started));
    if let Either::Right(_) = futures::future::select(shutdown, started).await {
        std::future::pending::<()>().await;
    }
}

pub(crate) fn context(
    client: Client,
    options: Options,
    watches: ManagedWatches,
    approvals: Approvals,
    deployments: Reflected<Guarded>,
) -> Result<Context, ControllerError> {
    let store = Store::open(&options.cache_directory.join("content"), chandler_content::Limits::default())?;
    let images =
        ImageOptions { plain_http_registries: options.plain_http_registries.clone(), ..ImageOptions::default() };
    let engine = Engine::new(EngineOptions {
        cache_directory: Some(options.cache_directory.join("code")),
        compiler: options.compiler.clone(),
        ..EngineOptions::default()
    })?;
    let installation =
        Installation { accounts: options.accounts.clone(), system_namespace: Some(options.system_namespace.clone()) };
    let rollout = chandler_rollout::Options { installation, ..chandler_rollout::Options::default() };
    let releases = Releases::open(&options.cache_directory.join("releases"), options.releases)?;
    let reporter = Reporter { controller: "chandler".to_owned(), instance: None };
    let images = Images::new(store, images);
    let system =
        SystemNamespace::new(client.clone(), options.system_namespace.clone(), options.require_pull_secret_grant);
    Ok(Context {
        sources: Sources::new(images.clone(), system),
        images,
        classes: Classes::new(
            Provisioners::new(engine.clone()),
            options.ceiling.clone(),
            options.watch_selector.clone(),
        ),
        approvals,
        served: Served::open(&options.cache_directory.join("classes")).map_err(ControllerError::Cache)?,
        engine,
        releases,
        records: Records::new(&client, &options.system_namespace),
        rollout: Rollout::new(client.clone(), rollout),
        cluster_info: ClusterInfoWatch::new(client.clone()),
        watches,
        events: Events::new(client.clone(), reporter),
        backoff: Backoff::default(),
        memory: Memory::default(),
        generations: Generations::default(),
        slots: Slots::new(options.concurrency),
        deployments,
        client,
        options,
    })
}

/// Fails where the API server does not serve a kind, instead of watching in vain for ever.
async fn probe<K>(client: &Client, selector: &WatchSelector, what: &'static str) -> Result<(), ControllerError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let list = api.list_metadata(&selector.list().limit(1)).await;
    list.map(drop).map_err(|source| ControllerError::List { what, source })
}

/// Gives up a BundleDeployment that is not selected any more: the pass that is under way ends, and nothing is kept of it.
fn leave(guarded: &Guarded, context: &Context) {
    if guarded.meta().deletion_timestamp.is_none() {
        let name = guarded.name_any();
        tracing::info!(deployment = %name, "not selected any more");
        context.generations.leave(&name);
        context.memory.forget(&name);
        context.records.forget(&name);
        context.watches.forget(&name);
    }
}

/// All Secrets but those that the controller keeps for itself.
fn foreign_secrets() -> watcher::Config {
    let (label, value) = MANAGED_BY;
    watcher::Config::default().labels(&format!("{label}!={value}"))
}

/// Whether the source of a BundleDeployment depends on this object of the system namespace.
fn depends_on(deployment: &BundleDeployment, object: &Dependency) -> bool {
    Source::parse(&deployment.spec.source).is_ok_and(|source| source.dependencies().contains(object))
}
