//! Catalogs that OLM reads in the cluster, used like Catalogs: `--catalogs-from`. Nothing is written to their objects.
//!
//! Each is resolved, unpacked, indexed and checked like a Catalog, and its last good index stays in use. Its errors are logged.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chandler_api::{Catalog, OlmCatalogs};
use futures::future::select_all;
use kube::{Api, ResourceExt as _, api::DynamicObject};

use super::{reconciler::Catalogs, status::Outcome};
use crate::{dynamic, signals::Signal};

/// The pause before a failed step is tried again.
const AGAIN: Duration = Duration::from_mins(1);

/// A kind, and where to continue to watch it; `None` if the cluster does not serve it.
type Watched = BTreeMap<OlmCatalogs, Option<String>>;

impl Catalogs {
    /// Keeps the catalogs of OLM in use. Never ends.
    pub(crate) async fn follow_olm(self: Arc<Self>) {
        let kinds = &self.cluster.options.catalogs_from;
        if kinds.is_empty() {
            return std::future::pending().await;
        }
        let mut watched: Watched = kinds.iter().map(|kind| (kind.clone(), None)).collect();
        loop {
            let again = match self.list_olm(&mut watched).await {
                Ok(catalogs) => self.look_at_all(catalogs).await,
                Err(error) => {
                    tracing::warn!(%error, "the catalogs of OLM cannot be listed; those that were read last are used");
                    AGAIN
                }
            };
            let changes = watched.iter().map(|(kind, version)| Box::pin(self.olm_changed(kind, version.as_deref())));
            // Changes that no watch reports: a tag that moved, a registry that answers again.
            let _ = tokio::time::timeout(again, select_all(changes)).await;
        }
    }

    /// The catalogs of OLM as Catalogs. A catalog with the name of another one is omitted: Catalogs come first, then the kinds in their
    /// order.
    pub(super) async fn list_olm(&self, watched: &mut Watched) -> Result<Vec<Catalog>, kube::Error> {
        let mut found: BTreeMap<String, Catalog> = BTreeMap::new();
        for (kind, version) in watched {
            let (objects, at) = dynamic::list(&self.olm(kind), &self.cluster.options.watch_selector.list()).await?;
            *version = at;
            for catalog in objects.iter().map(|object| kind.catalog(object)) {
                let name = catalog.name_any();
                if found.contains_key(&name) || self.states.is_catalog(&name) {
                    tracing::warn!(catalog = name, %kind, "another catalog has its name, so that it is not used");
                } else {
                    found.insert(name, catalog);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Puts into use what the catalogs name now. Returns when to look again.
    async fn look_at_all(&self, catalogs: Vec<Catalog>) -> Duration {
        let mut again = self.cluster.options.image_poll_interval;
        let catalogs = readable(catalogs);
        for gone in self.states.keep_foreign(&catalogs) {
            self.forget(&gone);
        }
        for catalog in catalogs {
            let name = catalog.name_any();
            let before = self.states.digest_in_use(&name);
            let failed = match self.poll(&catalog, false).await {
                Outcome::Polled(Err(failed)) => Some(failed.problem),
                _ => None,
            };
            if let Some(problem) = &failed {
                tracing::warn!(catalog = name, reason = %problem.reason, error = problem.message, "a catalog of OLM cannot be used");
                again = again.min(AGAIN.max(problem.retry_after));
            }
            let changed = self.states.set_stale(&name, failed.is_some()) | self.states.tried(&name);
            if changed || self.states.digest_in_use(&name) != before {
                self.signals.send(Signal::CatalogsChanged);
            }
        }
        again
    }

    /// Waits for a change of an object, or until it is time to look whether the cluster serves the kind.
    async fn olm_changed(&self, kind: &OlmCatalogs, version: Option<&str>) {
        if let Some(version) = version {
            match dynamic::change(&self.olm(kind), version).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%kind, %error, "the watch was interrupted"),
            }
        }
        self.cluster.availability.pause(AGAIN, AGAIN).await;
    }

    fn olm(&self, kind: &OlmCatalogs) -> Api<DynamicObject> {
        let (client, resource) = (self.cluster.client.clone(), kind.resource());
        match kind.namespace() {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }
}

/// The catalogs with the image that OLM reads as their source, except catalogs for which OLM does not read an image.
pub(super) fn readable(catalogs: Vec<Catalog>) -> Vec<Catalog> {
    let with_image = |mut catalog: Catalog| {
        catalog.spec.source = catalog.status.take()?.resolved_source?;
        Some(catalog)
    };
    catalogs.into_iter().filter_map(with_image).collect()
}
