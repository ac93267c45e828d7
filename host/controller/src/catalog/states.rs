//! What is known about each Catalog between reconciles.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{BundleSource, Catalog, CatalogContents, ConditionType, Reason, SystemReference, find_condition};
use chandler_core::Digest;
use chandler_runtime::{Cache, Reflector, Triggers};
use chandler_source::Pinned;
use k8s_openapi::jiff::Timestamp;
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::status::Failed;
use crate::signals::{Signal, Subscriber};

/// A Catalog that may not decode.
pub(crate) type Guarded = chandler_runtime::Guarded<Catalog>;

/// The content whose index is in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct InUse {
    /// The digest of the files.
    pub(super) digest: String,
    /// The source that names exactly these files.
    pub(super) resolved_source: BundleSource,
    /// Their size.
    pub(super) contents: CatalogContents,
    /// When they were unpacked.
    pub(super) unpacked: Timestamp,
}

/// All Catalogs.
pub(crate) struct CatalogStates {
    objects: Cache<Guarded>,
    triggers: Triggers<Catalog>,
    /// Catalogs of OLM, which no watch of this controller's kinds delivers.
    foreign: Mutex<BTreeMap<String, Foreign>>,
    known: Mutex<BTreeMap<String, Known>>,
    /// Catalogs whose source is resolved at the next reconcile even if its interval has not passed.
    asked: Mutex<BTreeSet<String>>,
}

/// A catalog of OLM.
struct Foreign {
    catalog: Catalog,
    is_stale: bool,
}

/// A Catalog as the resolver sees it.
pub(crate) struct KnownCatalog {
    /// Its name, priority and labels.
    pub(crate) source: chandler_resolver::Source,
    /// The digest of the content whose index is in use; `None` if no index is in use yet.
    pub(crate) digest: Option<Digest>,
    /// Whether that is earlier content.
    pub(crate) is_stale: bool,
    /// Whether this process has tried to read it. What it offers becomes known a moment after a start without its index.
    pub(crate) is_tried: bool,
}

/// What is known about one Catalog.
#[derive(Default)]
struct Known {
    in_use: Option<InUse>,
    /// What was found about the content that the source last resolved to, unless another attempt may have another result.
    verdict: Option<(Pinned, Result<(), Failed>)>,
    /// Whether this process has tried to read it.
    is_tried: bool,
}

fn is_stale(catalog: &Catalog) -> bool {
    let conditions = catalog.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = find_condition(conditions, ConditionType::Ready);
    ready.is_some_and(|ready| ready.reason == Reason::CatalogStale.as_str())
}

impl CatalogStates {
    /// The Catalogs that this reflector watches. Nothing is known about them yet.
    pub(crate) fn new(reflector: &Reflector<Catalog>) -> Self {
        let (objects, triggers) = (reflector.cache(), reflector.triggers());
        Self { objects, triggers, foreign: Mutex::default(), known: Mutex::default(), asked: Mutex::default() }
    }

    /// Every Catalog of the watch.
    pub(crate) fn objects(&self) -> &Cache<Guarded> {
        &self.objects
    }

    /// Requests that the source of a Catalog is resolved at once.
    pub(crate) fn ask(&self, name: &str) {
        self.asked.lock().insert(name.to_owned());
        // A trigger without a receiver means that the controller is stopping.
        let _ = self.triggers.send(ObjectRef::new(name));
    }

    /// Whether the source was to be resolved at once. It was, for the caller.
    pub(super) fn take_asked(&self, name: &str) -> bool {
        self.asked.lock().remove(name)
    }

    /// Waits for the first list of the Catalogs. False means that the controller is stopping.
    pub(crate) async fn ready(&self) -> bool {
        self.objects.ready().await
    }

    /// All catalogs, by name, as the resolver sees them.
    pub(crate) fn known(&self) -> Vec<KnownCatalog> {
        let objects = self.objects.state();
        let live = objects.iter().filter_map(|guarded| guarded.0.as_ref().ok());
        let live = live.filter(|catalog| catalog.metadata.deletion_timestamp.is_none());
        let mut all: Vec<KnownCatalog> = live.map(|catalog| self.seen(catalog, is_stale(catalog))).collect();
        all.extend(self.foreign().values().map(|foreign| self.seen(&foreign.catalog, foreign.is_stale)));
        all.sort_by(|one, other| one.source.name.cmp(&other.source.name));
        all.dedup_by(|one, other| one.source.name == other.source.name);
        all
    }

    fn seen(&self, catalog: &Catalog, is_stale: bool) -> KnownCatalog {
        let name = catalog.name_any();
        KnownCatalog {
            digest: self.digest_in_use(&name),
            is_stale,
            is_tried: self.lock().get(&name).is_some_and(|known| known.is_tried),
            source: chandler_resolver::Source {
                name,
                priority: catalog.spec.priority,
                labels: catalog.labels().clone(),
                unavailable: false,
            },
        }
    }

    /// Whether a Catalog has this name.
    pub(super) fn is_catalog(&self, name: &str) -> bool {
        self.objects.get(&ObjectRef::new(name)).is_some()
    }

    /// Replaces the catalogs of OLM. Returns the names of catalogs that are gone.
    pub(super) fn keep_foreign(&self, catalogs: &[Catalog]) -> Vec<String> {
        let mut foreign = self.foreign();
        let before = std::mem::take(&mut *foreign);
        for catalog in catalogs {
            let is_stale = before.get(&catalog.name_any()).is_some_and(|known| known.is_stale);
            foreign.insert(catalog.name_any(), Foreign { catalog: catalog.clone(), is_stale });
        }
        before.into_keys().filter(|name| !foreign.contains_key(name)).collect()
    }

    /// Notes whether the content that a catalog of OLM names now can be used. Returns whether that is new.
    pub(super) fn set_stale(&self, name: &str, is_stale: bool) -> bool {
        let mut foreign = self.foreign();
        foreign.get_mut(name).is_some_and(|known| std::mem::replace(&mut known.is_stale, is_stale) != is_stale)
    }

    fn foreign(&self) -> MutexGuard<'_, BTreeMap<String, Foreign>> {
        self.foreign.lock()
    }

    /// The content that Catalogs use.
    pub(crate) fn content_in_use(&self) -> BTreeSet<Digest> {
        self.lock().values().filter_map(|known| known.in_use.as_ref()?.digest.parse().ok()).collect()
    }

    /// Reconciles the Catalogs that depend on an object of the system namespace.
    fn changed(&self, object: &SystemReference) {
        for guarded in self.objects.state() {
            let Ok(catalog) = &guarded.0 else { continue };
            if catalog.spec.source.references().contains(object) {
                // A trigger without a receiver means that the controller is stopping.
                let _ = self.triggers.send(ObjectRef::new(&catalog.name_any()));
            }
        }
    }

    /// The names of the Catalogs about which something is known, and that are gone.
    pub(super) fn gone(&self) -> Vec<String> {
        let foreign: BTreeSet<String> = self.foreign().keys().cloned().collect();
        let exists = |name: &String| self.is_catalog(name) || foreign.contains(name);
        self.lock().keys().filter(|name| !exists(name)).cloned().collect()
    }

    /// Whether this very Catalog exists, according to the watch.
    pub(super) fn exists(&self, name: &str, uid: Option<&str>) -> bool {
        self.objects.get(&ObjectRef::new(name)).is_some_and(|object| object.uid().as_deref() == uid)
    }

    /// The content that a Catalog uses.
    pub(super) fn in_use(&self, name: &str) -> Option<InUse> {
        self.lock().get(name)?.in_use.clone()
    }

    /// The digest of the content that a Catalog uses.
    pub(crate) fn digest_in_use(&self, name: &str) -> Option<Digest> {
        self.lock().get(name)?.in_use.as_ref()?.digest.parse().ok()
    }

    /// Notes that this process has tried to read a Catalog. Returns whether that is new.
    pub(super) fn tried(&self, name: &str) -> bool {
        !std::mem::replace(&mut self.lock().entry(name.to_owned()).or_default().is_tried, true)
    }

    /// Puts content into use.
    pub(super) fn put_into_use(&self, name: &str, content: InUse) {
        self.lock().entry(name.to_owned()).or_default().in_use = Some(content);
    }

    /// What was found about this content earlier.
    pub(super) fn verdict(&self, name: &str, pinned: &Pinned) -> Option<Result<(), Failed>> {
        let known = self.lock();
        let (of, verdict) = known.get(name)?.verdict.as_ref()?;
        if of == pinned { Some(verdict.clone()) } else { None }
    }

    /// Stores what was found about content.
    pub(super) fn judge(&self, name: &str, pinned: Pinned, verdict: Result<(), Failed>) {
        self.lock().entry(name.to_owned()).or_default().verdict = Some((pinned, verdict));
    }

    /// Forgets a Catalog.
    pub(super) fn forget(&self, name: &str) {
        self.lock().remove(name);
        self.asked.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock()
    }
}

impl Subscriber for CatalogStates {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::ConfigMapChanged(map) => self.changed(&SystemReference::ConfigMap(map.name_any())),
            Signal::SecretChanged(name) => self.changed(&SystemReference::Secret(name.to_owned())),
            Signal::DeploymentChanged(_)
            | Signal::DeploymentGone(_)
            | Signal::DeploymentInputChanged(_)
            | Signal::ResolutionChanged(_)
            | Signal::PlatformOperatorChanged
            | Signal::PolicyChanged
            | Signal::CatalogsChanged
            | Signal::ClassGone(_) => {}
        }
    }
}
