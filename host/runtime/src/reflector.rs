//! Caches watched objects in memory, so that reads make no request.

use std::{fmt::Debug, pin::pin};

use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream::BoxStream};
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        reflector::{self, ObjectRef, Store, reflector, store::Writer},
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;

use crate::{Guarded, OwnWrites, Triggers};

/// The cache and the triggers of a reconciled kind. It exists before the reconciler does, so that the reconciler's state can hold
/// [`Self::store`] and [`Self::triggers`]; [`KindController`](crate::KindController) fills the cache.
pub struct Reflector<K: Resource<DynamicType = ()> + Clone + 'static> {
    pub(crate) store: Store<Guarded<K>>,
    pub(crate) writer: Writer<Guarded<K>>,
    pub(crate) requests: BoxStream<'static, ObjectRef<K>>,
    pub(crate) own_writes: OwnWrites<K>,
    triggers: Triggers<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Default for Reflector<K> {
    fn default() -> Self {
        let (store, writer) = reflector::store();
        let (triggers, requests) = Triggers::new();
        Self { store, writer, requests: requests.boxed(), own_writes: OwnWrites::default(), triggers }
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Reflector<K> {
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
    triggers: Triggers<K>,
    dependent: impl Fn(&O) -> &str + Send + 'static,
) -> (Store<O>, BoxFuture<'static, ()>)
where
    O: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K: Resource<DynamicType = ()> + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let events = events.modify(|object| object.managed_fields_mut().clear());
    let events = reflector(writer, events);
    (store.clone(), trigger_dependents(events, store, triggers, dependent).boxed())
}

async fn trigger_dependents<O, K>(
    events: impl Stream<Item = Result<Event<O>, watcher::Error>> + Send,
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
            Ok(Event::Apply(object) | Event::Delete(object)) => vec![dependent(&object).to_owned()],
            // The store holds a list only once the list is complete.
            Ok(Event::InitDone) => store.state().iter().map(|object| dependent(object).to_owned()).collect(),
            Ok(Event::Init | Event::InitApply(_)) => Vec::new(),
            Err(error) => {
                tracing::debug!(kind = %O::kind(&()), %error, "the watch was interrupted");
                Vec::new()
            }
        };
        for name in names {
            if triggers.send(ObjectRef::new(&name)).is_err() {
                return;
            }
        }
    }
}
