//! The objects of a watched kind in memory.

use std::{cmp::Ordering, sync::Arc};

use chandler_core::resource_version;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    runtime::{
        reflector::{self, Lookup, ObjectRef, Store, store::Writer},
        watcher::Event,
    },
};
use tokio::sync::watch;

/// The objects of a kind as the watch last delivered them. Clones share them.
///
/// Any number of tasks can wait for the first complete list. `Store::wait_until_ready` of kube keeps only the waker of one waiting task, so
/// that all others may wait forever.
pub struct Cache<O: Lookup<DynamicType = ()> + Clone + 'static> {
    store: Store<O>,
    is_listed: watch::Receiver<bool>,
}

impl<O: Lookup<DynamicType = ()> + Clone + 'static> Cache<O> {
    /// The object with this name, as the watch last delivered it.
    pub fn get(&self, key: &ObjectRef<O>) -> Option<Arc<O>> {
        self.store.get(key)
    }

    /// An object that satisfies a condition.
    pub fn find(&self, condition: impl Fn(&O) -> bool) -> Option<Arc<O>> {
        self.store.find(condition)
    }

    /// All objects, in no order.
    pub fn state(&self) -> Vec<Arc<O>> {
        self.store.state()
    }

    /// Waits for the first list of the objects. False means that it will never be complete, because the controller is stopping.
    pub async fn ready(&self) -> bool {
        self.is_listed.clone().wait_for(|is_listed| *is_listed).await.is_ok()
    }

    /// A store of these objects, for kube's controller.
    pub(crate) fn store(&self) -> Store<O> {
        self.store.clone()
    }
}

impl<O: Lookup<DynamicType = ()> + Clone + 'static> Clone for Cache<O> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), is_listed: self.is_listed.clone() }
    }
}

/// Fills a [`Cache`].
pub(crate) struct Filler<O: Lookup<DynamicType = ()> + Clone + 'static> {
    writer: Writer<O>,
    /// What the writer fills. It keeps what it had until a list is complete.
    store: Store<O>,
    is_listed: watch::Sender<bool>,
}

impl<O: Resource<DynamicType = ()> + Clone + 'static> Filler<O> {
    /// Whether the cache holds a newer version of this very object.
    pub(crate) fn holds_newer(&self, object: &O) -> bool {
        let Some(known) = self.store.get(&ObjectRef::from_obj(object)) else { return false };
        let version = |meta: &ObjectMeta| meta.resource_version.clone().unwrap_or_default();
        let order = resource_version::compare(&version(object.meta()), &version(known.meta()));
        known.meta().uid == object.meta().uid && order == Some(Ordering::Less)
    }
}

impl<O: Lookup<DynamicType = ()> + Clone + 'static> Filler<O> {
    /// Takes an event of the watch.
    pub(crate) fn take(&mut self, event: &Event<O>) {
        self.writer.apply_watcher_event(event);
        if matches!(event, Event::InitDone) {
            self.is_listed.send_replace(true);
        }
    }
}

/// An empty cache, and what fills it.
pub(crate) fn cache<O: Lookup<DynamicType = ()> + Clone + 'static>() -> (Cache<O>, Filler<O>) {
    let (store, writer) = reflector::store();
    let (sender, is_listed) = watch::channel(false);
    (Cache { store: store.clone(), is_listed }, Filler { writer, store, is_listed: sender })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::join_all;
    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::task::JoinHandle;

    use super::*;

    /// Tasks that have begun to wait.
    async fn waiting(cache: &Cache<ConfigMap>) -> Vec<JoinHandle<bool>> {
        let tasks = (0..3).map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.ready().await })
        });
        let tasks = tasks.collect();
        tokio::task::yield_now().await;
        tasks
    }

    /// The results of tasks, which must all be woken.
    async fn woken(tasks: Vec<JoinHandle<bool>>) -> Vec<bool> {
        let all = tokio::time::timeout(Duration::from_secs(10), join_all(tasks)).await.expect("all are woken");
        all.into_iter().map(|is_ready| is_ready.expect("no task panicked")).collect()
    }

    #[tokio::test]
    async fn the_first_list_wakes_all_that_wait_for_it() {
        let (cache, mut filler) = cache::<ConfigMap>();
        let tasks = waiting(&cache).await;
        filler.take(&Event::Init);
        let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
        filler.take(&Event::InitApply(ConfigMap { metadata, ..ConfigMap::default() }));
        tokio::task::yield_now().await;
        assert!(tasks.iter().all(|task| !task.is_finished()), "the list is not complete");
        filler.take(&Event::InitDone);
        let woken =
            tokio::time::timeout(std::time::Duration::from_mins(1), join_all(tasks)).await.expect("all are woken");
        assert!(woken.into_iter().all(|is_ready| is_ready.unwrap()));
        assert_eq!(cache.state().len(), 1);
        drop(filler);
        assert!(cache.ready().await, "it stays ready when the watch has ended");
    }

    #[test]
    fn an_object_is_older_only_than_a_newer_version_of_itself() {
        let object = |uid: &str, version: &str| {
            let text = |text: &str| Some(text.to_owned());
            let metadata = ObjectMeta {
                name: text("a"),
                uid: text(uid),
                resource_version: text(version),
                ..ObjectMeta::default()
            };
            ConfigMap { metadata, ..ConfigMap::default() }
        };
        let (_cache, mut filler) = cache::<ConfigMap>();
        assert!(!filler.holds_newer(&object("u", "9")), "it is new");
        filler.take(&Event::Apply(object("u", "10")));
        filler.take(&Event::Init);
        assert!(filler.holds_newer(&object("u", "9")), "although a list began");
        for (uid, version, what) in [
            ("u", "10", "unchanged"),
            ("u", "11", "newer"),
            ("v", "9", "another object of its name"),
            ("u", "x", "not a number"),
            ("u", "", "no version"),
        ] {
            assert!(!filler.holds_newer(&object(uid, version)), "{what}");
        }
    }

    #[tokio::test]
    async fn a_watch_that_ends_before_the_first_list_wakes_all_as_well() {
        let (cache, filler) = cache::<ConfigMap>();
        let tasks = waiting(&cache).await;
        drop(filler);
        assert_eq!(woken(tasks).await, [false; 3]);
    }
}
