//! The reconciler: its state, and one reconcile.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{Catalog, CatalogStatus};
use chandler_catalog::{Indexes, StoreError};
use chandler_runtime::{
    Backoff, GenerationTracker, KindController, Metrics, Next, Reconciler, Reflector, Report, Shutdown,
};
use chandler_source::{Resolutions, Sources};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{Api, ResourceExt as _};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{
    olm::readable,
    states::{CatalogStates, Guarded, InUse},
    status::{self, Failed, Outcome},
};
use crate::{
    cluster::Cluster,
    events,
    monitoring::ready_reason,
    registries::SCOUT,
    sealed_files::SealedFiles,
    signals::{Signal, Signals},
    status::StatusError,
};

/// Separates the records of Catalogs from others.
const PURPOSE: &[u8] = b"catalog";

/// The cache of indexes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogCacheError {
    /// The indexes.
    #[error(transparent)]
    Indexes(#[from] StoreError),
    /// The records beside them.
    #[error(transparent)]
    Records(#[from] std::io::Error),
}

/// The status could not be written.
pub(crate) type ReconcileError = StatusError<Catalog>;

/// The reconciler of Catalogs.
pub(crate) struct Catalogs {
    pub(super) cluster: Arc<Cluster>,
    pub(super) signals: Arc<Signals>,
    pub(super) states: Arc<CatalogStates>,
    pub(super) sources: Sources,
    pub(super) indexes: Indexes,
    pub(super) resolutions: Resolutions,
    /// Locked while an index is built or removed.
    pub(super) indexing: Arc<Mutex<()>>,
    /// Which content each Catalog used last, across restarts.
    records: SealedFiles,
    generations: GenerationTracker,
    backoff: Backoff,
}

/// The record of a Catalog.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Its UID: a later object of the same name is another Catalog.
    uid: String,
    content: InUse,
}

impl Catalogs {
    /// Opens the state on disk.
    ///
    /// # Errors
    /// The cache directory cannot be used.
    pub(crate) fn open(
        cluster: &Arc<Cluster>,
        signals: &Arc<Signals>,
        states: &Arc<CatalogStates>,
        sources: Sources,
    ) -> Result<Self, CatalogCacheError> {
        // The command line keeps its own indexes in `catalogs`, in a user's cache.
        let directory = cluster.options.cache_directory.join("cluster-catalogs");
        let indexes = Indexes::open(&directory)?;
        let records = SealedFiles::open(&directory.join("records"), PURPOSE)?;
        Ok(Self {
            cluster: Arc::clone(cluster),
            signals: Arc::clone(signals),
            states: Arc::clone(states),
            sources,
            indexes,
            resolutions: Resolutions::default(),
            indexing: Arc::default(),
            records,
            generations: GenerationTracker::default(),
            backoff: Backoff::default(),
        })
    }

    /// Puts the content back into use that each Catalog used before a restart, and removes all other indexes.
    ///
    /// # Errors
    /// The API server cannot list the Catalogs.
    pub(crate) async fn recall(&self) -> Result<(), kube::Error> {
        let catalogs = Api::<Guarded>::all(self.cluster.client.clone());
        let catalogs = catalogs.list(&self.cluster.options.watch_selector.list()).await?;
        let mut all: BTreeMap<String, Option<String>> =
            catalogs.items.iter().map(|guarded| (guarded.name_any(), guarded.uid())).collect();
        let mut watched = self.cluster.options.catalogs_from.iter().map(|kind| (kind.clone(), None)).collect();
        let olm = readable(self.list_olm(&mut watched).await?);
        for catalog in &olm {
            all.entry(catalog.name_any()).or_insert_with(|| catalog.uid());
        }
        self.states.keep_foreign(&olm);
        for (name, now) in &all {
            let Some(Record { uid, content }) = self.records.read(name) else { continue };
            let is_same = now.as_ref() == Some(&uid);
            let digest = content.digest.parse().ok().filter(|_| is_same);
            let is_indexed = digest.is_some_and(|digest| matches!(self.indexes.get(&digest), Ok(Some(_))));
            if is_indexed {
                self.states.put_into_use(name, content);
            }
        }
        self.records.retain(&all.into_keys().collect());
        self.remove_unused();
        Ok(())
    }

    /// The indexes of the content in use.
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// The controller.
    pub(crate) fn controller(
        self: Arc<Self>,
        reflector: Reflector<Catalog>,
        metrics: Arc<dyn Metrics>,
        shutdown: &Shutdown,
    ) -> KindController<Self> {
        let api = Api::all(self.cluster.client.clone());
        let selection = self.cluster.options.watch_selector.watch();
        KindController::new(reflector, api, selection, self, metrics, shutdown)
    }

    /// Records which content a Catalog uses. A failure is only logged: the record is needed only if the server is away later.
    pub(super) fn record(&self, catalog: &Catalog, content: &InUse) {
        let name = catalog.name_any();
        let record = Record { uid: catalog.uid().unwrap_or_default(), content: content.clone() };
        if let Err(error) = self.records.write(&name, &record) {
            tracing::warn!(catalog = name, %error, "failed to record which content the Catalog uses");
        }
    }

    /// Removes the indexes that no Catalog uses, once none is being built.
    pub(super) fn remove_unused(&self) {
        let (indexes, states, indexing) = (self.indexes.clone(), Arc::clone(&self.states), Arc::clone(&self.indexing));
        tokio::spawn(async move {
            let _none = indexing.lock().await;
            let used = states.content_in_use();
            match tokio::task::spawn_blocking(move || indexes.retain(&used)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "failed to remove unused indexes of catalogs"),
                Err(error) => tracing::warn!(%error, "the removal of unused indexes was interrupted"),
            }
        });
    }

    pub(super) fn forget(&self, name: &str) {
        self.states.forget(name);
        self.resolutions.forget(name);
        self.backoff.succeeded(name);
        self.records.remove(name);
        self.remove_unused();
        self.signals.send(Signal::CatalogsChanged);
    }

    /// Ends a reconcile because the spec has changed, or the Catalog is gone.
    fn superseded(&self, catalog: &Catalog) -> Report<CatalogStatus> {
        let name = catalog.name_any();
        if !self.states.exists(&name, catalog.uid().as_deref()) {
            self.forget(&name);
        }
        Report::nothing()
    }

    /// When to reconcile again.
    fn next(&self, catalog: &Catalog, outcome: &Outcome) -> Next {
        if let Outcome::Polled(Err(Failed { problem, .. })) = outcome
            && !problem.terminal
        {
            // There are few Catalogs, and many wait for each.
            let at_most = problem.silent_registry.as_ref().map(|_| SCOUT);
            return Next::Retry { at_least: problem.retry_after, at_most };
        }
        match self.parse(catalog) {
            Ok((source, interval)) if source.can_move() && *outcome != Outcome::Suspended => Next::After(interval),
            _ => Next::Change,
        }
    }
}

impl Reconciler for Catalogs {
    type Object = Catalog;
    type Status = CatalogStatus;
    type Error = ReconcileError;

    async fn reconcile(&self, catalog: &Catalog) -> Result<Report<CatalogStatus>, ReconcileError> {
        let name = catalog.name_any();
        if catalog.metadata.deletion_timestamp.is_some() {
            self.forget(&name);
            return Ok(Report::nothing());
        }
        let before = self.states.digest_in_use(&name);
        let again = self.states.take_asked(&name) || status::request(catalog).is_some();
        let outcome = tokio::select! {
            outcome = self.poll(catalog, again) => outcome,
            // Fetching files may take minutes. The watch has requested the reconcile of the newer spec, if there is one.
            () = self.generations.newer_than(catalog) => return Ok(self.superseded(catalog)),
        };
        let is_first = self.states.tried(&name);
        if is_first || self.states.digest_in_use(&name) != before {
            self.signals.send(Signal::CatalogsChanged);
        }
        let status = status::derive(catalog, &outcome, self.states.in_use(&name).as_ref(), Timestamp::now());
        if !self.states.exists(&name, catalog.uid().as_deref()) {
            // It was deleted in the meantime.
            self.forget(&name);
            return Ok(Report::nothing());
        }
        Ok(Report { status: Some(status), next: self.next(catalog, &outcome) })
    }

    /// An error means that the status could not be written.
    fn failed(&self, _: &Catalog, _: &ReconcileError, _: u32) -> Option<CatalogStatus> {
        None
    }

    fn status(catalog: &Catalog) -> Option<&CatalogStatus> {
        catalog.status.as_ref()
    }

    fn reason(status: &CatalogStatus) -> Option<chandler_core::Reason> {
        ready_reason(&status.conditions)
    }

    async fn written(&self, catalog: &Catalog, stored: Option<&CatalogStatus>, status: &CatalogStatus) {
        // Whether it is stale is part of its status.
        self.signals.send(Signal::CatalogsChanged);
        let stored = stored.map(|status| status.conditions.as_slice());
        events::publish(&self.cluster.events, catalog, stored, &status.conditions).await;
    }

    fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    fn observed(&self, catalog: &Catalog) {
        self.generations.observe(catalog);
    }

    fn removed(&self, catalog: &ObjectMeta) {
        let name = catalog.name.as_deref().unwrap_or_default();
        self.generations.cancel(name);
        self.forget(name);
    }

    fn listed(&self) {
        self.states.gone().iter().for_each(|name| self.forget(name));
    }
}
