//! Watches the objects of other owners that keep a release from being rolled out.

use std::{collections::HashMap, future::Future};

use chandler_core::ObjectKey;
use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

/// The watches, by BundleDeployment.
#[derive(Default)]
pub(crate) struct Collisions(Mutex<HashMap<String, Watching>>);

/// Dropping it ends the watch.
struct Watching {
    objects: Vec<ObjectKey>,
    task: AbortHandle,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collisions {
    /// Watches these objects on behalf of a BundleDeployment, unless it already watches them. `watch` ends when one of them changes.
    pub(crate) fn watch<F>(&self, name: &str, objects: Vec<ObjectKey>, watch: impl FnOnce(Vec<ObjectKey>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut all = self.all();
        if all.get(name).is_some_and(|known| known.objects == objects && !known.task.is_finished()) {
            return;
        }
        let task = tokio::spawn(watch(objects.clone())).abort_handle();
        all.insert(name.to_owned(), Watching { objects, task });
    }

    /// Stops watching on behalf of a BundleDeployment.
    pub(crate) fn end(&self, name: &str) {
        self.all().remove(name);
    }

    /// Stops all watches: the controller stops.
    pub(crate) fn end_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Watching>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    fn object(name: &str) -> Vec<ObjectKey> {
        let (group, version, kind) = (String::new(), "v1".to_owned(), "ConfigMap".to_owned());
        vec![ObjectKey { group, version, kind, namespace: Some("n".to_owned()), name: name.to_owned() }]
    }

    #[tokio::test]
    async fn the_same_objects_are_watched_once() {
        let (collisions, running) = (Collisions::default(), Arc::new(Semaphore::new(10)));
        let watch = |objects| {
            let running = Arc::clone(&running);
            collisions.watch("a", objects, |_| {
                let permit = running.try_acquire_owned().expect("few run");
                async move {
                    std::future::pending::<()>().await;
                    drop(permit);
                }
            });
        };
        let ended = |count| {
            let running = Arc::clone(&running);
            async move {
                while running.available_permits() != count {
                    tokio::task::yield_now().await;
                }
            }
        };
        watch(object("x"));
        watch(object("x"));
        assert_eq!(running.available_permits(), 9);
        watch(object("y"));
        ended(9).await;
        collisions.end("a");
        ended(10).await;
        assert!(collisions.all().is_empty());
    }

    #[tokio::test]
    async fn a_watch_that_ended_begins_again() {
        let (collisions, count) = (Collisions::default(), Arc::new(Semaphore::new(0)));
        for expected in 1..4 {
            let added = Arc::clone(&count);
            collisions.watch("a", object("x"), |_| async move { added.add_permits(1) });
            while !collisions.all()["a"].task.is_finished() {
                tokio::task::yield_now().await;
            }
            assert_eq!(count.available_permits(), expected);
        }
    }
}
