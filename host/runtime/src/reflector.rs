//! Fills caches of watched objects, so that reads make no request.

use std::{fmt::Debug, pin::pin};

use chandler_client::Availability;
use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream::BoxStream};
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::{
        reflector::ObjectRef,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;

use crate::{
    Cache, Guarded, OwnWrites, Triggers,
    cache::{Filler, cache},
    reconnect::reconnecting,
};

/// How many objects a page of a list has. All of a page are in memory at once, before the cache takes the first, and each may have 1.5 MiB.
const PAGE: u32 = 32;

/// The cache and the triggers of a reconciled kind. It exists before the reconciler does, so that the reconciler's state can hold
/// [`Self::cache`] and [`Self::triggers`]; [`KindController`](crate::KindController) fills the cache.
pub struct Reflector<K: Resource<DynamicType = ()> + Clone + 'static> {
    pub(crate) cache: Cache<Guarded<K>>,
    pub(crate) filler: Filler<Guarded<K>>,
    pub(crate) requests: BoxStream<'static, ObjectRef<K>>,
    pub(crate) own_writes: OwnWrites<K>,
    pub(crate) availability: Availability,
    triggers: Triggers<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Reflector<K> {
    /// An empty cache of objects of an API server that is available as this reports.
    pub fn new(availability: Availability) -> Self {
        let (cache, filler) = cache();
        let (triggers, requests) = Triggers::new();
        Self { cache, filler, requests: requests.boxed(), own_writes: OwnWrites::default(), availability, triggers }
    }

    /// The cached objects.
    pub fn cache(&self) -> Cache<Guarded<K>> {
        self.cache.clone()
    }

    /// The own writes of the objects, which the reconciler notes.
    pub fn own_writes(&self) -> OwnWrites<K> {
        self.own_writes.clone()
    }

    /// Requests reconciles of the objects.
    pub fn triggers(&self) -> Triggers<K> {
        self.triggers.clone()
    }
}

/// Caches objects of another kind, and triggers a reconcile of the object that `dependent` names for each of them that is
/// created, changed or deleted, once the cache holds the new state. The future never completes while the controller runs.
pub fn reflect_related<O, K>(
    api: Api<O>,
    availability: Availability,
    triggers: Triggers<K>,
    dependent: impl Fn(&O) -> &str + Send + 'static,
) -> (Cache<O>, BoxFuture<'static, ()>)
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K: Resource<DynamicType = ()> + 'static,
{
    let (cache, filler) = cache();
    let events = reflect(filler, api, watcher::Config::default(), availability, |_| ());
    (cache.clone(), trigger_dependents(events, cache, triggers, dependent).boxed())
}

async fn trigger_dependents<O, K>(
    events: impl Stream<Item = Event<O>> + Send,
    cache: Cache<O>,
    triggers: Triggers<K>,
    dependent: impl Fn(&O) -> &str + Send,
) where
    O: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    K: Resource<DynamicType = ()> + 'static,
{
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let names: Vec<String> = match event {
            Event::Apply(object) | Event::Delete(object) => vec![dependent(&object).to_owned()],
            // The cache holds a list only once the list is complete.
            Event::InitDone => cache.state().iter().map(|object| dependent(object).to_owned()).collect(),
            Event::Init | Event::InitApply(_) => Vec::new(),
        };
        for name in names {
            if triggers.send(ObjectRef::new(&name)).is_err() {
                return;
            }
        }
    }
}

/// Watches a kind and fills its cache. Yields each event after the cache has taken it.
///
/// Reports an object that is older in a list than it was before: etcd was restored from a snapshot. Lists are consistent
/// (`resourceVersion` unset), so the answer of every API server, even one whose watch cache is behind, is at least as new as any earlier
/// answer; and the cache was filled before the list began. Versions are compared only for one object (KEP-5504), and only if they are
/// numbers.
///
/// `admit` sees each event first, and may change its object.
pub(crate) fn reflect<O>(
    mut filler: Filler<O>,
    api: Api<O>,
    config: watcher::Config,
    availability: Availability,
    mut admit: impl FnMut(&mut Event<O>) + Send,
) -> impl Stream<Item = Event<O>> + Send
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (rewinds, config) = (availability.clone(), config.page_size(PAGE));
    reconnecting(move || watcher(api.clone(), config.clone()), availability).map(move |event| {
        let mut event = without_managers(event);
        admit(&mut event);
        if let Event::InitApply(object) = &event
            && filler.holds_newer(object)
        {
            rewinds.note_rewind(&format!("{} {}", O::kind(&()), object.name_any()));
        }
        filler.take(&event);
        event
    })
}

/// An event without the managed fields: often the larger part of an object, and no reconciler reads them.
fn without_managers<O: Resource>(mut event: Event<O>) -> Event<O> {
    if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &mut event {
        object.managed_fields_mut().clear();
    }
    event
}
