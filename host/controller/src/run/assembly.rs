//! What the reconcilers share that follows from the options: what pulls and sends, and what installs.

use std::sync::Arc;

use chandler_api::{Alert, BundleDeployment, names::TEARDOWN_FINALIZER};
use chandler_client::Fence;
use chandler_content::{ImageOptions, Images, Posts, RegistrySettings, Store};
use chandler_engine::{Engine, EngineOptions};
use chandler_permissions::{Account, Installation};
use chandler_proxies::Proxies;
use chandler_rollout::{PARENT_MARKS, Rollout, informers};
use chandler_runtime::{Backoff, Capacity, GenerationTracker, OwnWrites, Reflector, Slots};
use chandler_source::{Sources, SystemNamespace};
use serde::Deserialize as _;

use super::ControllerError;
use crate::{
    Options,
    alert::Delivery,
    bundle_deployment::{Approvals, Installer, Preparations, Preparer},
    capacities,
    cluster::Cluster,
    provisioner_class::Components,
    targets::Targets,
};

/// What sends notifications, with the proxies and the TLS settings of the controller.
pub(super) fn delivery(cluster: &Cluster, alerts: &Reflector<Alert>) -> Arc<Delivery> {
    let Cluster { client, options, metrics, .. } = cluster;
    let posts = Posts::new(outgoing(options));
    Arc::new(Delivery::new(client, &options.system_namespace, posts, alerts.triggers(), metrics))
}

/// The rules of connections to servers that administrators name, with the proxies and the TLS settings of the controller.
pub(super) fn outgoing(options: &Options) -> ImageOptions {
    ImageOptions { proxies: Proxies::from_environment(), tls: options.tls.clone(), ..ImageOptions::default() }
}

/// The options that affect which objects a bundle may contain.
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

/// What pulls images and files.
pub(crate) struct Pulls {
    pub(crate) components: Components,
    /// Catalogs are larger than bundles.
    pub(super) catalog_sources: Sources,
}

/// Opens the cache of content, and sets up the engine.
pub(crate) fn pulls(cluster: &Cluster) -> Result<Pulls, ControllerError> {
    let Cluster { client, options, .. } = cluster;
    let store = Store::open(&options.cache_directory.join("content"), chandler_content::Limits::default())?;
    store.limit(options.content_cache_bytes)?;
    let plain_http_registries = options.plain_http_registries.clone();
    let registries = RegistrySettings::new(options.registries.clone(), options.registry_certificates.clone());
    let images = ImageOptions { plain_http_registries, registries, ..outgoing(options) };
    let engine = Engine::new(EngineOptions {
        cache_directory: Some(options.cache_directory.join("code")),
        compiler: options.compiler.clone(),
        ..EngineOptions::default()
    })?;
    let catalog_images = Images::new(store.with_limits(chandler_content::Limits::for_catalogs()), images.clone());
    let images = Images::new(store, images);
    let system =
        SystemNamespace::new(client.clone(), options.system_namespace.clone(), options.require_pull_secret_grant)
            .with_pull_secrets_of(options.pull_secrets_of.clone());
    let sources = Sources::new(images.clone(), system.clone()).with_image_rules(options.image_rules.clone());
    let catalog_sources = Sources::new(catalog_images, system).with_image_rules(options.image_rules.clone());
    let components = Components { engine, images, sources, allow_unsigned: options.allow_unsigned };
    Ok(Pulls { components, catalog_sources })
}

/// How many objects of another cluster are remembered that match their release although they look different.
const REMEMBERED_ELSEWHERE: usize = 5_000;

/// A rollout whose writes to BundleDeployments count as the controller's own.
fn noting(rollout: Rollout, own_writes: OwnWrites<BundleDeployment>) -> Rollout {
    rollout.notifying_of_parents(move |parent| match BundleDeployment::deserialize(parent) {
        Ok(deployment) => own_writes.marks(deployment, PARENT_MARKS, TEARDOWN_FINALIZER),
        Err(error) => tracing::debug!(%error, "the response to the write of a BundleDeployment cannot be decoded"),
    })
}

/// What installs BundleDeployments. The fence is for the clients of other clusters.
pub(super) fn installer(
    preparer: Arc<Preparer>,
    approvals: Approvals,
    deployments: &Reflector<BundleDeployment>,
    fence: Option<Fence>,
) -> Installer {
    let Cluster { client, availability, options, .. } = preparer.cluster.as_ref();
    let own_writes = deployments.own_writes();
    let settings =
        chandler_rollout::Options { installation: installation(options), ..chandler_rollout::Options::default() };
    let rollout = noting(Rollout::new(client.clone(), settings.clone()), own_writes.clone());
    let targets = Targets::new(client.clone(), fence, options.targets, options.cluster_poll_interval, {
        let (home, own_writes) = (client.clone(), own_writes.clone());
        // An owner has fewer objects that are written in two notations than the cluster.
        let settings = chandler_rollout::Options { remembered: REMEMBERED_ELSEWHERE, ..settings };
        move |other| noting(Rollout::new(other, settings.clone()).for_owners_of(home.clone()), own_writes.clone())
    });
    let watching =
        chandler_informers::Options { availability: availability.clone(), ..chandler_informers::Options::default() };
    let informers = informers(client.clone(), watching, {
        let known = preparer.deployments.clone();
        move |owner| known.wake(owner)
    });
    Installer {
        approvals,
        rollout: rollout.with_informers(&informers),
        targets,
        informers,
        preparations: Preparations::default(),
        generations: GenerationTracker::default(),
        backoff: Backoff::default(),
        slots: Slots::new(options.concurrency, Capacity::new("reconciles", capacities::RECONCILES)),
        own_writes,
        cluster: Arc::clone(&preparer.cluster),
        signals: Arc::clone(&preparer.signals),
        deployments: preparer.deployments.clone(),
        records: Arc::clone(&preparer.records),
        memory: Arc::clone(&preparer.memory),
        preparer,
    }
}
