//! Caches watched objects in memory, so that reads make no request.

use std::{fmt::Debug, pin::pin};

use chandler_client::Availability;
use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream::BoxStream};
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::{
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;

use crate::{Guarded, OwnWrites, Triggers, reconnect::reconnecting};

/// The cache and the triggers of a reconciled kind. It exists before the reconciler does, so that the reconciler's state can hold
/// [`Self::store`] and [`Self::triggers`]; [`KindController`](crate::KindController) fills the cache.
pub struct Reflector<K: Resource<DynamicType = ()> + Clone + 'static> {
    pub(crate) store: Store<Guarded<K>>,
    pub(crate) writer: Writer<Guarded<K>>,
    pub(crate) requests: BoxStream<'static, ObjectRef<K>>,
    pub(crate) own_writes: OwnWrites<K>,
    pub(crate) availability: Availability,
    triggers: Triggers<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Reflector<K> {
    /// An empty cache of objects of an API server that is available as this reports.
    pub fn new(availability: Availability) -> Self {
        let (store, writer) = reflector::store();
        let (triggers, requests) = Triggers::new();
        Self { store, writer, requests: requests.boxed(), own_writes: OwnWrites::default(), availability, triggers }
    }

    /// The cached objects.
    pub fn store(&self) -> Store<Guarded<K>> {
        self.store.clone()
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
) -> (Store<O>, BoxFuture<'static, ()>)
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K: Resource<DynamicType = ()> + 'static,
{
    let (store, writer) = reflector::store();
    let events = reflect(writer, api, watcher::Config::default(), availability);
    (store.clone(), trigger_dependents(events, store, triggers, dependent).boxed())
}

async fn trigger_dependents<O, K>(
    events: impl Stream<Item = Event<O>> + Send,
    store: Store<O>,
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
            // The store holds a list only once the list is complete.
            Event::InitDone => store.state().iter().map(|object| dependent(object).to_owned()).collect(),
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
pub(crate) fn reflect<O>(
    mut writer: Writer<O>,
    api: Api<O>,
    config: watcher::Config,
    availability: Availability,
) -> impl Stream<Item = Event<O>> + Send
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    reconnecting(watcher(api, config), availability).map(move |event| {
        let event = without_managers(event);
        writer.apply_watcher_event(&event);
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
