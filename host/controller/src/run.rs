//! Wires the reconcilers and everything that they share, and runs them until shutdown.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use chandler_api::{
    BundleDeployment, Catalog, ChangeApproval, PlatformOperator, PlatformPolicy, Resolution, names::TEARDOWN_FINALIZER,
};
use chandler_builtin::Provisioners;
use chandler_client::{Availability, fenced, insistent, monitored};
use chandler_content::{ImageOptions, Images, RegistrySettings, Store, StoreError};
use chandler_engine::{Engine, EngineError, EngineOptions};
use chandler_permissions::{Account, Installation};
use chandler_records::{RecordError, Records};
use chandler_releases::Releases;
use chandler_rollout::{PARENT_MARKS, Rollout, informers, readable};
use chandler_runtime::{
    Backoff, Capacity, ClusterInfoWatch, ElectionError, Events, GenerationTracker, LogMetrics, Metrics, Reflector,
    Shutdown, Slots, is_momentary, leadership, patiently, probe, while_leader,
};
use chandler_serve::{Listener, ServeError, Served};
use chandler_source::{Sources, SystemNamespace};
use kube::{Client, api::ListParams, runtime::reflector::ObjectRef};
use serde::Deserialize as _;
use tokio::time::{Instant, sleep_until};

use crate::{
    Options,
    bundle_deployment::{Approvals, BundleDeployments},
    capacities::{self, Capacities},
    catalog::{CatalogCacheError, CatalogStates, Catalogs},
    cluster_operator::{self, ClusterOperatorWakes},
    contents::{Contents, Held},
    context::Context,
    decision_maps::{self, DecisionWakes},
    grants, housekeeping,
    memory::Memory,
    mirror_sets::ClusterMirrors,
    platform_operator::{PlatformOperators, PlatformWakes},
    platform_policy::{PlatformPolicies, Policies},
    polls,
    provisioner_class::{Classes, ProvisionerClasses},
    registries,
    resolution::{ResolutionWakes, Resolutions},
};

/// The controller could not start.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The cache directory cannot be used.
    #[error("failed to open the cache: {0}")]
    Store(#[from] StoreError),
    /// The cache directory of classes cannot be used.
    #[error("failed to open the cache: {0}")]
    Cache(#[source] std::io::Error),
    /// The indexes of catalogs cannot be used.
    #[error("failed to open the cache: {0}")]
    Catalogs(#[from] CatalogCacheError),
    /// The cache of releases cannot be used.
    #[error("failed to open the cache: {0}")]
    Releases(#[from] chandler_releases::OpenError),
    /// The records of installed objects cannot be read.
    #[error("failed to read the records: {0}")]
    Records(#[from] RecordError),
    /// The engine cannot be set up.
    #[error("failed to set up the engine: {0}")]
    Engine(#[from] EngineError),
    /// The API server does not respond, or does not serve the kinds of Chandler.
    #[error("failed to list {what}")]
    List {
        /// What was listed.
        what: &'static str,
        /// The error of the client.
        source: kube::Error,
    },
    /// The content service cannot run.
    #[error(transparent)]
    Content(#[from] ServeError),
    /// Another controller has become the leader, or the Lease cannot be held.
    #[error(transparent)]
    Election(#[from] ElectionError),
}

/// Runs until `shutdown` completes, and then finishes the reconciles in progress. With [`Options::leader_election`] it first waits until
/// it is the leader.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ControllerError> {
    let shutdown = leadership::shutdown(shutdown);
    let Some(election) = options.leader_election.clone() else {
        return Box::pin(reconcile(client, options, shutdown)).await;
    };
    let ran = while_leader(&election, shutdown, |shutdown, fence| reconcile(fenced(&client, fence), options, shutdown));
    Box::pin(ran).await?.unwrap_or(Ok(()))
}

/// Why reconciling ended.
enum Ended {
    /// The process shuts down.
    Shutdown,
    /// The storage of the API server went back in time, as this object shows.
    Rewound(String),
}

/// Reconciles until shutdown. When etcd was restored from a snapshot, everything in memory is about a cluster that no longer exists:
/// objects, records, own writes. Then it begins anew, as after a start of the process.
async fn reconcile(client: Client, options: Options, shutdown: Shutdown) -> Result<(), ControllerError> {
    let mut not_before = Instant::now();
    loop {
        match Box::pin(reconcile_until_rewind(client.clone(), options.clone(), shutdown.clone(), not_before)).await? {
            Ended::Shutdown => return Ok(()),
            Ended::Rewound(object) => tracing::warn!(
                object,
                "the API server went back in time, as after etcd was restored from a snapshot; the controller reads everything again"
            ),
        }
        not_before = Instant::now() + BETWEEN_REWINDS;
    }
}

/// The least time between two such beginnings. An aggregated API server may answer with versions that go back again and again, and must not
/// keep the controller from its work.
const BETWEEN_REWINDS: Duration = Duration::from_mins(5);

/// Completes when the storage of the API server went back in time, but not before this time.
async fn rewound(availability: &Availability, not_before: Instant) -> String {
    sleep_until(not_before).await;
    availability.rewound().await
}

async fn reconcile_until_rewind(
    client: Client,
    options: Options,
    shutdown: Shutdown,
    not_before: Instant,
) -> Result<Ended, ControllerError> {
    let (client, availability) = monitored(&insistent(&readable(&client)));
    let rewinds = availability.clone();
    let (deployments, classes) = (Reflector::new(availability.clone()), Reflector::new(availability.clone()));
    let catalogs = Reflector::<Catalog>::new(availability.clone());
    let resolutions = Reflector::<Resolution>::new(availability.clone());
    let platform = Reflector::<PlatformOperator>::new(availability.clone());
    let policies = Reflector::<PlatformPolicy>::new(availability.clone());
    let (approvals, watch_approvals) = Approvals::new(client.clone(), availability.clone(), deployments.triggers());
    let listener =
        options.content.clone().map(|content| Listener::bind(content, &options.system_namespace)).transpose()?;
    let wakes = ResolutionWakes::new(resolutions.cache(), resolutions.triggers());
    let mut context = context(client.clone(), availability, options, approvals, &deployments, &catalogs, wakes)?;
    context.platform = PlatformWakes::new(&platform, &context.options.platform_resolution);
    context.policies = Policies::new(&policies, &context.options.platform_resolution);
    context.memory.contents = Contents::new(listener.as_ref().map(|listener| listener.url().to_owned()));
    let context = Arc::new(context);
    let mut mirrors = ClusterMirrors::of(&context);
    // Before anything is pulled: a mirror set can forbid to contact a source.
    mirrors.read().await.map_err(|(what, source)| ControllerError::List { what, source })?;
    let selector = &context.options.watch_selector;
    let provisioner_classes = ProvisionerClasses::open(&context, &classes).map_err(ControllerError::Cache)?;
    let catalog_reconciler = Arc::new(Catalogs::open(&context, &catalogs)?);
    // The records of a BundleDeployment that is not selected belong to another controller.
    patiently(|| context.records.load(selector.selects_all()), RecordError::is_transient).await?;
    patiently(|| provisioner_classes.preload(), is_momentary).await.map_err(listing("ProvisionerClasses"))?;
    patiently(|| catalog_reconciler.recall(), is_momentary).await.map_err(listing("Catalogs"))?;
    probe::<BundleDeployment>(&client, selector.list()).await.map_err(listing("BundleDeployments"))?;
    probe::<Resolution>(&client, selector.list()).await.map_err(listing("Resolutions"))?;
    probe::<PlatformOperator>(&client, selector.list()).await.map_err(listing("PlatformOperators"))?;
    probe::<PlatformPolicy>(&client, ListParams::default()).await.map_err(listing("PlatformPolicies"))?;
    probe::<ChangeApproval>(&client, ListParams::default()).await.map_err(listing("ChangeApprovals"))?;
    if !selector.selects_all() {
        tracing::info!(%selector, "other BundleDeployments, ProvisionerClasses, Catalogs, Resolutions and PlatformOperators are left alone");
    }

    let serving = serve(listener, &context, &catalog_reconciler, shutdown.clone());

    let metrics: Arc<dyn Metrics> = Arc::new(LogMetrics);
    let classes = provisioner_classes.controller(classes, Arc::clone(&metrics), &shutdown);
    let resolution_reconciler = Resolutions::new(&context, catalog_reconciler.indexes(), &resolutions);
    let resolutions = resolution_reconciler.controller(resolutions, Arc::clone(&metrics), &shutdown);
    let olm_catalogs = Arc::clone(&catalog_reconciler).follow_olm();
    let cluster_operators = cluster_operator::Proxy::new(&context, platform.cache());
    let platform_reconciler = PlatformOperators::new(&context, catalog_reconciler.indexes(), &platform);
    let platform = platform_reconciler.controller(platform, Arc::clone(&metrics), &shutdown);
    let policies = PlatformPolicies::new(&context, &policies).controller(policies, Arc::clone(&metrics), &shutdown);
    let catalogs = catalog_reconciler.controller(catalogs, Arc::clone(&metrics), &shutdown);
    let deployments = BundleDeployments::controller(&context, deployments, metrics, &shutdown);
    tracing::info!("the controller runs");
    let ended = tokio::select! {
        _ = futures::future::join3(
            futures::future::join3(classes.run(), catalogs.run(), deployments.run()),
            futures::future::join(resolutions.run(), platform.run()),
            policies.run(),
        ) => Ended::Shutdown,
        () = watch_approvals => Ended::Shutdown,
        () = housekeeping::run(&context) => Ended::Shutdown,
        () = polls::run(&context) => Ended::Shutdown,
        () = registries::run(&context) => Ended::Shutdown,
        () = grants::run(&context) => Ended::Shutdown,
        () = Box::pin(decision_maps::run(&context)) => Ended::Shutdown,
        () = Box::pin(cluster_operators.run()) => Ended::Shutdown,
        () = Box::pin(mirrors.run()) => Ended::Shutdown,
        () = Box::pin(olm_catalogs) => Ended::Shutdown,
        () = context.cluster_info.run(context.options.cluster_poll_interval) => Ended::Shutdown,
        () = close_slots(&context, shutdown) => Ended::Shutdown,
        // Reconciles are dropped where they are, as in a crash: all that they do can be interrupted.
        object = rewound(&rewinds, not_before) => Ended::Rewound(object),
        Err(error) = serving => return Err(error.into()),
    };
    context.memory.preparing.end_all();
    context.memory.collisions.end_all();
    context.memory.values.end_all();
    tracing::info!("the controller stopped");
    Ok(ended)
}

fn listing(what: &'static str) -> impl FnOnce(kube::Error) -> ControllerError {
    move |source| ControllerError::List { what, source }
}

/// Serves content until shutdown, if a listener is given, and then waits for the reconciles in progress. Completes only with a failure.
fn serve(
    listener: Option<Listener>,
    context: &Arc<Context>,
    catalogs: &Catalogs,
    shutdown: Shutdown,
) -> impl Future<Output = Result<Infallible, ServeError>> + use<> {
    let served = Served {
        client: context.client.clone(),
        holdings: Arc::new(Held(Arc::clone(context))),
        store: context.images.store().clone(),
        indexes: catalogs.indexes().clone(),
    };
    let deployments = context.deployments.clone();
    async move {
        if let Some(listener) = listener {
            // Before the watch has brought them, BundleDeployments would seem not to exist. An error means that the controller is stopping.
            if deployments.ready().await {
                listener.serve(served, shutdown).await?;
            }
        }
        std::future::pending().await
    }
}

/// Ends the wait for slots on shutdown: kube's controller waits for all reconciles that it has called, of which many may wait for
/// a slot. Never completes.
async fn close_slots(context: &Context, shutdown: Shutdown) {
    shutdown.await;
    context.slots.close();
    std::future::pending::<()>().await;
}

/// What of the options affects which objects a bundle may contain.
fn installation(options: &Options) -> Installation {
    let namespace = &options.system_namespace;
    let account = |name: &String| Account { namespace: namespace.clone(), name: name.clone() };
    Installation {
        accounts: options.accounts.clone(),
        platform: options.platform_account.as_ref().map(account),
        catalogs_from: options.catalogs_from.clone(),
        system_namespace: Some(namespace.clone()),
    }
}

pub(crate) fn context(
    client: Client,
    availability: Availability,
    options: Options,
    approvals: Approvals,
    deployments: &Reflector<BundleDeployment>,
    catalogs: &Reflector<Catalog>,
    resolutions: ResolutionWakes,
) -> Result<Context, ControllerError> {
    let store = Store::open(&options.cache_directory.join("content"), chandler_content::Limits::default())?;
    let plain_http_registries = options.plain_http_registries.clone();
    let registries = RegistrySettings::new(options.registries.clone(), options.registry_certificates.clone());
    let images = ImageOptions { plain_http_registries, registries, ..ImageOptions::default() };
    let engine = Engine::new(EngineOptions {
        cache_directory: Some(options.cache_directory.join("code")),
        compiler: options.compiler.clone(),
        ..EngineOptions::default()
    })?;
    let installation = installation(&options);
    let rollout = chandler_rollout::Options { installation, ..chandler_rollout::Options::default() };
    let own_writes = deployments.own_writes();
    let written = own_writes.clone();
    let rollout = Rollout::new(client.clone(), rollout).notifying_of_parents(move |parent| {
        match BundleDeployment::deserialize(parent) {
            Ok(deployment) => written.marks(deployment, PARENT_MARKS, TEARDOWN_FINALIZER),
            Err(error) => tracing::debug!(%error, "the response to the write of a BundleDeployment cannot be decoded"),
        }
    });
    let releases = Releases::open(&options.cache_directory.join("releases"), options.releases)?;
    let catalog_images = Images::new(store.with_limits(chandler_content::Limits::for_catalogs()), images.clone());
    let images = Images::new(store, images);
    let system =
        SystemNamespace::new(client.clone(), options.system_namespace.clone(), options.require_pull_secret_grant)
            .with_pull_secrets_of(options.pull_secrets_of.clone());
    let watching =
        chandler_informers::Options { availability: availability.clone(), ..chandler_informers::Options::default() };
    let informers = informers(client.clone(), watching, {
        let triggers = deployments.triggers();
        // A trigger without a receiver means that the controller is stopping.
        move |owner| {
            let _ = triggers.send(ObjectRef::new(owner));
        }
    });
    Ok(Context {
        sources: Sources::new(images.clone(), system.clone()).with_image_rules(options.image_rules.clone()),
        catalog_sources: Sources::new(catalog_images, system).with_image_rules(options.image_rules.clone()),
        images,
        classes: Classes::new(
            Provisioners::new(engine.clone()),
            options.ceiling.clone(),
            options.watch_selector.clone(),
        ),
        catalogs: CatalogStates::new(catalogs.cache(), catalogs.triggers()),
        resolutions,
        decisions: DecisionWakes::default(),
        platform: PlatformWakes::default(),
        policies: Policies::default(),
        cluster_operators: ClusterOperatorWakes::default(),
        approvals,
        engine,
        releases,
        records: Records::new(&client, &options.system_namespace),
        rollout: rollout.with_informers(&informers),
        cluster_info: ClusterInfoWatch::new(client.clone(), availability.clone()),
        informers,
        triggers: deployments.triggers(),
        events: Events::new(client.clone(), "chandler"),
        backoff: Backoff::default(),
        memory: Memory::default(),
        generations: GenerationTracker::default(),
        slots: Slots::new(options.concurrency, Capacity::new("reconciles", capacities::RECONCILES)),
        capacities: Capacities::default(),
        deployments: deployments.cache(),
        own_writes,
        client,
        availability,
        options,
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_server_that_goes_back_again_and_again_leaves_time_to_work() {
        let availability = Availability::default();
        availability.note_rewind("Widget n/x");
        let again = rewound(&availability, Instant::now() + BETWEEN_REWINDS);
        assert_eq!(again.now_or_never(), None);
        assert_eq!(rewound(&availability, Instant::now()).await, "Widget n/x");
    }
}
