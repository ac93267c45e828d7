//! Wires the reconcilers and everything that they share, and runs them until shutdown.

mod assembly;

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use chandler_api::{
    Alert, BundleDeployment, Catalog, ChangeApproval, PlatformOperator, PlatformPolicy, Receiver, Resolution,
};
use chandler_builtin::Provisioners;
use chandler_catalog::Indexes;
use chandler_client::{Availability, Fence, fenced, insistent, monitored};
use chandler_content::{Issuers, StoreError};
use chandler_engine::EngineError;
use chandler_monitoring::{Health, Phase, State};
use chandler_records::{RecordError, Records, StorageLimit};
use chandler_releases::Releases;
use chandler_rollout::readable;
use chandler_runtime::{
    ClusterInfoWatch, ElectionError, Events, Metrics, Reflector, Shutdown, is_momentary, leadership, patiently, probe,
    while_leader,
};
use chandler_serve::{Listener, ReceiverListener, ServeError, Served};
use chandler_tls::TlsSettings;
use futures::future::BoxFuture;
use kube::{Client, api::ListParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

pub(crate) use self::assembly::pulls;
use self::assembly::{Pulls, delivery, installer, outgoing};
use crate::{
    Options,
    account_grant::AccountGrants,
    alert::{Alerts, Lanes, SecretChanges},
    bundle_deployment::{self, Approvals, BundleDeployments, Installer, Preparer},
    capacities::Capacities,
    catalog::{CatalogCacheError, CatalogStates, Catalogs},
    cluster::Cluster,
    cluster_operator::{ClusterOperatorChanges, Proxy},
    contents::Contents,
    decision_maps::{DecisionQueue, Worker},
    deployments::Deployments,
    endpoints::Endpoints,
    grants,
    held::Held,
    housekeeping,
    memory::Memory,
    mirror_sets::ClusterMirrors,
    monitoring::{Listeners, Monitoring, Objects, Reconciles, note_shutdown},
    platform_operator::{Platform, PlatformOperatorStates, PlatformOperators},
    platform_policy::{PlatformPolicies, Policies},
    provisioner_class::{Classes, ProvisionerClasses},
    receiver::{KnownIssuers, Polled, Receivers, TokenChanges, Webhooks, listen},
    registries,
    resolution::{ResolutionStates, Resolutions, Sets},
    signals::{Signal, Signals},
    tls_profile::TlsProfile,
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
    /// Content, metrics or probes cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another controller has become the leader, or the Lease cannot be held.
    #[error(transparent)]
    Election(#[from] ElectionError),
}

/// Runs until `shutdown` completes, and then finishes the reconciles in progress. With [`Options::leader_election`] it first waits until
/// it is the leader.
pub fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, Result<(), ControllerError>> {
    run_until(client, options, leadership::shutdown(shutdown))
}

/// Not generic and not `async`, so that the controller is compiled to machine code with this crate, and not with each crate that runs one.
fn run_until(client: Client, options: Options, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ControllerError>> {
    Box::pin(async move {
        let monitoring = Monitoring::default();
        let (profile, tls) = TlsProfile::new(&client, &options);
        let serving = Listeners::bind(&options)?.serve(client.clone(), monitoring.clone(), tls.clone());
        let endpoints = Endpoints::bind(&options)?;
        let relaying = endpoints.relay()?;
        let (client, health) = (monitoring.measured(&client), monitoring.health.clone());
        let stopping = shutdown.clone();
        let working = Box::pin(lead(client, options, endpoints, (monitoring, tls), shutdown));
        tokio::select! {
            ended = working => ended,
            Err(error) = serving => Err(error.into()),
            Err(error) = relaying => Err(error.into()),
            () = note_shutdown(health, stopping) => Ok(()),
            () = Box::pin(profile.follow()) => Ok(()),
        }
    })
}

/// Reconciles while this process is the leader, if there is an election.
async fn lead(
    client: Client,
    options: Options,
    endpoints: Endpoints,
    (monitoring, tls): (Monitoring, watch::Receiver<TlsSettings>),
    shutdown: Shutdown,
) -> Result<(), ControllerError> {
    let Some(election) = options.leader_election.clone() else {
        return Box::pin(reconcile((client, None), options, endpoints, (monitoring, tls), shutdown)).await;
    };
    let standby = monitoring.health.clone();
    let metrics = Arc::clone(&monitoring.metrics);
    let followers = endpoints.followers(options.advertised_address)?;
    let election = election
        .annotated(endpoints.annotations(options.advertised_address)?)
        .when_waiting(move |annotations| {
            standby.note(Phase::Standby);
            followers.read(annotations);
        })
        .when_renewed(move |renewal| metrics.renewed(renewal.as_str()));
    let ran = while_leader(&election, shutdown, |shutdown, fence| {
        endpoints.lead();
        let client = fenced(&client, fence.clone());
        reconcile((client, Some(fence)), options, endpoints, (monitoring, tls), shutdown)
    });
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
/// objects, records, own writes. Then it begins anew, as after a start of the process. The fence is for the clients of other clusters: the client of
/// this one has it already.
async fn reconcile(
    (client, fence): (Client, Option<Fence>),
    options: Options,
    endpoints: Endpoints,
    (monitoring, tls): (Monitoring, watch::Receiver<TlsSettings>),
    shutdown: Shutdown,
) -> Result<(), ControllerError> {
    let mut not_before = Instant::now();
    loop {
        monitoring.health.note(Phase::Listing);
        let watched = (monitoring.clone(), tls.clone());
        let listeners = (endpoints.content()?, endpoints.webhooks()?);
        let ended = reconcile_until_rewind(
            (client.clone(), fence.clone()),
            options.clone(),
            (listeners, watched),
            shutdown.clone(),
            not_before,
        );
        match Box::pin(ended).await? {
            Ended::Shutdown => return Ok(()),
            Ended::Rewound(object) => tracing::warn!(
                object,
                "the API server went back in time, as after etcd was restored from a snapshot; the controller reads everything again"
            ),
        }
        not_before = Instant::now() + BETWEEN_REWINDS;
    }
}

/// The minimum time between two such beginnings. An aggregated API server may answer with versions that go back again and again, and must
/// not keep the controller from working.
const BETWEEN_REWINDS: Duration = Duration::from_mins(5);

/// Completes when the storage of the API server went back in time, but not before this time.
async fn rewound(availability: &Availability, not_before: Instant) -> String {
    sleep_until(not_before).await;
    availability.rewound().await
}

/// The addresses of content and of webhooks.
type BoundListeners = (Option<Listener>, Option<ReceiverListener>);

async fn reconcile_until_rewind(
    (client, fence): (Client, Option<Fence>),
    options: Options,
    ((listener, webhook_listener), (monitoring, tls)): (BoundListeners, (Monitoring, watch::Receiver<TlsSettings>)),
    shutdown: Shutdown,
    not_before: Instant,
) -> Result<Ended, ControllerError> {
    let (client, availability) = monitored(&insistent(&readable(&client)));
    let rewinds = availability.clone();
    let (deployments, classes) = (Reflector::new(availability.clone()), Reflector::new(availability.clone()));
    let catalogs = Reflector::<Catalog>::new(availability.clone());
    let resolutions = Reflector::<Resolution>::new(availability.clone());
    let operators = Reflector::<PlatformOperator>::new(availability.clone());
    let policies = Reflector::<PlatformPolicy>::new(availability.clone());
    let receivers = Reflector::<Receiver>::new(availability.clone());
    let alerts = Reflector::<Alert>::new(availability.clone());
    let (lanes, added) = Lanes::new(&monitoring.metrics);
    let (approvals, watch_approvals) = Approvals::new(client.clone(), availability.clone(), deployments.triggers());
    let cluster = Arc::new(Cluster {
        events: Events::new(client.clone(), "chandler").announcing(lanes.announce()),
        info: ClusterInfoWatch::new(client.clone(), availability.clone()),
        client: client.clone(),
        availability,
        options,
        metrics: Arc::clone(&monitoring.metrics),
    });
    let options = &cluster.options;

    let signals = Arc::new(Signals::default());
    let platform = options.platform_resolution.as_str();
    let resolution_states = Arc::new(ResolutionStates::new(&resolutions, platform));
    let catalog_states = Arc::new(CatalogStates::new(&catalogs));
    let operator_states = Arc::new(PlatformOperatorStates::new(&operators, platform));
    let in_force = Arc::new(Policies::new(&policies, platform));
    let (decisions, changes) = (Arc::<DecisionQueue>::default(), Arc::<ClusterOperatorChanges>::default());
    // With `--accounts-in`, administrators create the accounts, and may keep the accounts of all tenants in one namespace.
    let by_account = !options.accounts.namespaces.is_empty();
    let limit = StorageLimit { bytes: options.stored_release_bytes, by_account };
    let records = Arc::new(Records::new(&client, &options.system_namespace).limited(limit));
    let known = Deployments::new(&deployments);
    let sets = Arc::new(Sets::new(&cluster, &known, &records, &resolution_states));
    let Pulls { components, catalog_sources } = pulls(&cluster)?;
    let built_in = Provisioners::new(components.engine.clone());
    let defined = Arc::new(Classes::new(built_in, options.ceiling.clone(), options.watch_selector.clone()));
    let contents = Contents::new(listener.as_ref().map(|listener| listener.url().to_owned()));
    let preparer = Arc::new(Preparer {
        grants: AccountGrants::new(Arc::clone(&sets), options.require_service_account_grant),
        releases: Releases::open(&options.cache_directory.join("releases"), options.releases)?,
        memory: Arc::new(Memory { contents, ..Memory::default() }),
        capacities: Capacities::default(),
        cluster: Arc::clone(&cluster),
        signals: Arc::clone(&signals),
        deployments: known.clone(),
        classes: Arc::clone(&defined),
        components: components.clone(),
        records: Arc::clone(&records),
    });
    let polled = Polled {
        preparer: Arc::clone(&preparer),
        catalogs: Arc::clone(&catalog_states),
        classes: classes.cache(),
        class_triggers: classes.triggers(),
    };
    let issuers = KnownIssuers::new(Issuers::new(outgoing(options)));
    let webhooks = Arc::new(Webhooks::new(polled, issuers, &monitoring.metrics));
    let token_changes = Arc::new(TokenChanges::new(&receivers));
    let installer = Arc::new(installer(preparer, approvals, &deployments, fence));
    signals.subscribe(&resolution_states);
    signals.subscribe(&decisions);
    signals.subscribe(&operator_states);
    signals.subscribe(&changes);
    signals.subscribe(&catalog_states);
    signals.subscribe(&installer);
    signals.subscribe(&token_changes);

    let settings = components.images.registry_settings().clone();
    let mut mirrors =
        ClusterMirrors::new(&client, &cluster.availability, (&options.registries, &options.mirrors_from), settings);
    // Before anything is pulled: a mirror set can forbid contacting a source.
    mirrors.read().await.map_err(|(what, source)| ControllerError::List { what, source })?;
    let selector = &options.watch_selector;
    let evidence = (&records, &installer.memory);
    let provisioner_classes =
        ProvisionerClasses::open(&cluster, &signals, &known, evidence, (&defined, &components), &classes)
            .map_err(ControllerError::Cache)?;
    let catalog_reconciler = Arc::new(Catalogs::open(&cluster, &signals, &catalog_states, catalog_sources)?);
    // The records of a BundleDeployment that is not selected belong to another controller.
    patiently(|| records.load(selector.selects_all()), RecordError::is_transient).await?;
    patiently(|| provisioner_classes.preload(), is_momentary).await.map_err(listing("ProvisionerClasses"))?;
    patiently(|| catalog_reconciler.recall(), is_momentary).await.map_err(listing("Catalogs"))?;
    probe::<BundleDeployment>(&client, selector.list()).await.map_err(listing("BundleDeployments"))?;
    probe::<Resolution>(&client, selector.list()).await.map_err(listing("Resolutions"))?;
    probe::<PlatformOperator>(&client, selector.list()).await.map_err(listing("PlatformOperators"))?;
    probe::<PlatformPolicy>(&client, ListParams::default()).await.map_err(listing("PlatformPolicies"))?;
    probe::<Receiver>(&client, selector.list()).await.map_err(listing("Receivers"))?;
    let delivery = delivery(&cluster, &alerts);
    let alert_reconciler = Alerts::new(&cluster, &lanes, &delivery, &alerts);
    let secret_changes = Arc::new(SecretChanges::new(&lanes, &delivery));
    signals.subscribe(&secret_changes);
    patiently(|| alert_reconciler.preload(), is_momentary).await.map_err(listing("Alerts"))?;
    probe::<ChangeApproval>(&client, ListParams::default()).await.map_err(listing("ChangeApprovals"))?;
    if !selector.selects_all() {
        tracing::info!(%selector, "other BundleDeployments, ProvisionerClasses, Catalogs, Resolutions, PlatformOperators and Receivers are left alone");
    }

    let indexes = catalog_reconciler.indexes();
    let held = Held { installer: Arc::clone(&installer), catalogs: Arc::clone(&catalog_states) };
    let receiving =
        listen(Arc::clone(&cluster), Arc::clone(&webhooks), webhook_listener, tls.clone(), shutdown.clone());
    let serving = serve(listener, held, (indexes, tls), shutdown.clone());

    let metrics: Arc<dyn Metrics> = Arc::new(Reconciles(Arc::clone(&monitoring.metrics)));
    let objects = Arc::new(Objects {
        deployments: deployments.cache(),
        classes: classes.cache(),
        catalogs: catalogs.cache(),
        resolutions: resolutions.cache(),
        operators: operators.cache(),
        policies: policies.cache(),
        receivers: receivers.cache(),
        alerts: alerts.cache(),
    });
    let classes = provisioner_classes.controller(classes, Arc::clone(&metrics), &shutdown);
    let resolution_reconciler =
        Resolutions::new(&installer, &sets, (&catalog_states, indexes), &in_force, &resolutions);
    let resolutions = resolution_reconciler.controller(resolutions, Arc::clone(&metrics), &shutdown);
    let olm_catalogs = Arc::clone(&catalog_reconciler).follow_olm();
    let cluster_operators = Proxy::new(&cluster, (&known, &resolution_states), operators.cache(), &changes);
    let platform = Platform::new(
        (&cluster, &known),
        &operator_states,
        (&catalog_states, indexes),
        (&resolution_states, &sets),
        &in_force,
    );
    let platform_reconciler = PlatformOperators::new(platform, &signals, &operators);
    let operators = platform_reconciler.controller(operators, Arc::clone(&metrics), &shutdown);
    let policies =
        PlatformPolicies::new(&cluster, &signals, &in_force).controller(policies, Arc::clone(&metrics), &shutdown);
    let receiver_reconciler = Receivers::new(&cluster, &webhooks, &receivers);
    let receivers = receiver_reconciler.controller(receivers, Arc::clone(&metrics), &shutdown);
    let alerts = alert_reconciler.controller(alerts, Arc::clone(&metrics), &shutdown);
    let catalogs = Arc::clone(&catalog_reconciler).controller(catalogs, Arc::clone(&metrics), &shutdown);
    let deployments = BundleDeployments::controller(&installer, deployments, metrics, &shutdown);
    let worker = Worker::new(&cluster, &known, &decisions);
    tracing::info!("the controller runs");
    let (held, engine) = (Arc::clone(&objects), components.engine.clone());
    let slots = Arc::downgrade(&installer);
    monitoring.metrics.read_state_with(move || {
        let state = held.state(&engine);
        let Some(installer) = slots.upgrade() else { return state };
        State {
            waiting: installer.slots.waiting(),
            oldest_wait: installer.slots.oldest_wait(),
            contested: installer.memory.conflicts.contested(),
            targets: installer.targets.states(),
            ..state
        }
    });
    let mut sending = Box::pin(lanes.run(added, delivery));
    let ended = tokio::select! {
        _ = futures::future::join3(
            futures::future::join3(classes.run(), catalogs.run(), deployments.run()),
            futures::future::join(resolutions.run(), operators.run()),
            futures::future::join3(policies.run(), receivers.run(), alerts.run()),
        ) => Ended::Shutdown,
        () = note_ready(objects, monitoring.health) => Ended::Shutdown,
        () = watch_approvals => Ended::Shutdown,
        () = Box::pin(defined.load_builtin()) => Ended::Shutdown,
        () = housekeeping::run(&installer, &catalog_states) => Ended::Shutdown,
        () = follow_inputs(&installer) => Ended::Shutdown,
        () = Box::pin(worker.run()) => Ended::Shutdown,
        () = Box::pin(cluster_operators.run()) => Ended::Shutdown,
        () = Box::pin(mirrors.run()) => Ended::Shutdown,
        () = Box::pin(olm_catalogs) => Ended::Shutdown,
        () = &mut sending => Ended::Shutdown,
        () = cluster.info.run(options.cluster_poll_interval) => Ended::Shutdown,
        () = close_slots(&installer, shutdown) => Ended::Shutdown,
        // Reconciles are dropped where they are, as in a crash: all that they do can be interrupted.
        object = rewound(&rewinds, not_before) => Ended::Rewound(object),
        Err(error) = serving => return Err(error.into()),
        Err(error) = Box::pin(receiving) => return Err(error.into()),
    };
    installer.end();
    if matches!(ended, Ended::Shutdown) {
        // The rest is lost: the transitions are in the status, and are not reported again.
        tokio::select! {
            () = &mut sending => {}
            () = lanes.drained() => {}
            () = sleep(DRAIN) => tracing::warn!("some notifications of Alerts were not delivered before the shutdown"),
        }
    }
    tracing::info!("the controller stopped");
    Ok(ended)
}

/// How long a shutdown waits for the notifications that are not delivered.
const DRAIN: Duration = Duration::from_secs(5);

/// Notes when all objects are known. Never completes.
async fn note_ready(objects: Arc<Objects>, health: Health) {
    if objects.listed().await {
        health.note(Phase::Reconciling);
    }
    std::future::pending::<()>().await;
}

/// Wakes BundleDeployments when something that they wait for outside of the cluster's watches changes: a source that moved, a registry that
/// responds again, a permission. Never completes.
async fn follow_inputs(installer: &Installer) {
    let Installer { preparer, cluster, informers, memory, signals, deployments, backoff, .. } = installer;
    let polls = futures::future::join(bundle_deployment::poll(preparer), bundle_deployment::poll_asked(preparer));
    let registries = registries::run(&memory.registries, preparer.components.images.returns(), |name| {
        signals.send(Signal::DeploymentInputChanged(name));
    });
    let grants = grants::run(&memory.grants, cluster, informers, |name| {
        // The API server may know of the change a moment later than its watches: the next try comes soon.
        backoff.succeeded(name);
        deployments.wake(name);
    });
    futures::future::join3(polls, registries, grants).await;
}

fn listing(what: &'static str) -> impl FnOnce(kube::Error) -> ControllerError {
    move |source| ControllerError::List { what, source }
}

/// Serves content until shutdown, if a listener is given, and then waits for the reconciles in progress. Completes only with a failure.
fn serve(
    listener: Option<Listener>,
    held: Held,
    (indexes, tls): (&Indexes, watch::Receiver<TlsSettings>),
    shutdown: Shutdown,
) -> impl Future<Output = Result<Infallible, ServeError>> + use<> {
    let installer = Arc::clone(&held.installer);
    let served = Served {
        client: installer.cluster.client.clone(),
        holdings: Arc::new(held),
        store: installer.preparer.components.images.store().clone(),
        indexes: indexes.clone(),
        tls,
    };
    let deployments = installer.deployments.clone();
    async move {
        if let Some(listener) = listener {
            // Before the watch has delivered them, BundleDeployments would seem not to exist. An error means that the controller is
            // stopping.
            if deployments.ready().await {
                listener.serve(served, shutdown).await?;
            }
        }
        std::future::pending().await
    }
}

/// Ends the wait for slots on shutdown: kube's controller waits for all reconciles that it has called, and many of them may wait for a
/// slot. Never completes.
async fn close_slots(installer: &Installer, shutdown: Shutdown) {
    shutdown.await;
    installer.slots.close();
    installer.targets.slots.close();
    std::future::pending::<()>().await;
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
