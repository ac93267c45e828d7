//! Cancels a reconcile when a newer spec of its object is observed.
//!
//! One object is never reconciled twice at once, so a newer spec waits for the reconcile in progress to end. A reconcile that
//! writes many objects, or that meets a slow API server, ends early instead.

use std::collections::HashMap;

use kube::{Resource, ResourceExt as _};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The finalizer that requests deletion without dependents (`metav1.FinalizerOrphanDependents`).
const ORPHAN_FINALIZER: &str = "orphan";

/// The newest observed generation of each object of one kind.
pub struct GenerationTracker {
    observed: Mutex<HashMap<String, Observed>>,
    /// The UIDs of objects whose deletion with `--cascade=orphan` was observed.
    orphaning: Mutex<HashMap<String, Option<String>>>,
    changed: watch::Sender<()>,
}

#[derive(Clone, PartialEq, Eq)]
struct Observed {
    uid: Option<String>,
    generation: i64,
}

impl Observed {
    fn of(object: &impl Resource) -> Self {
        Self { uid: object.uid(), generation: object.meta().generation.unwrap_or_default() }
    }
}

impl Default for GenerationTracker {
    fn default() -> Self {
        Self { observed: Mutex::default(), orphaning: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl GenerationTracker {
    /// Records an object that the watch delivered.
    pub fn observe(&self, object: &impl Resource) {
        let is_deleted = object.meta().deletion_timestamp.is_some();
        if is_deleted && object.finalizers().iter().any(|finalizer| finalizer == ORPHAN_FINALIZER) {
            self.orphaning().insert(object.name_any(), object.uid());
        }
        let now = Observed::of(object);
        if self.observed().insert(object.name_any(), now.clone()).as_ref() != Some(&now) {
            self.changed.send_replace(());
        }
    }

    /// Whether the deletion of this object with `--cascade=orphan` was observed. The garbage collector removes the finalizer that
    /// requests it, possibly before a reconcile reads the object.
    pub fn is_orphaning(&self, object: &impl Resource) -> bool {
        self.orphaning().get(&object.name_any()).is_some_and(|uid| *uid == object.uid())
    }

    /// Cancels the reconcile in progress of an object that this controller no longer selects, until the object is observed again.
    pub fn cancel(&self, name: &str) {
        self.observed().insert(name.to_owned(), Observed { uid: None, generation: i64::MAX });
        self.changed.send_replace(());
    }

    /// Forgets a deleted object.
    pub fn forget(&self, name: &str) {
        self.orphaning().remove(name);
        self.observed().remove(name);
    }

    /// Completes when a newer spec of this object, or a new object of the same name, is observed. A deletion counts as a newer
    /// spec, since it increments the generation.
    pub async fn newer_than(&self, object: &impl Resource) {
        let (name, reconciled) = (object.name_any(), Observed::of(object));
        let mut changed = self.changed.subscribe();
        while !self.is_newer(&name, &reconciled) {
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn is_newer(&self, name: &str, reconciled: &Observed) -> bool {
        let observed = self.observed();
        observed
            .get(name)
            .is_some_and(|newest| newest.uid != reconciled.uid || newest.generation > reconciled.generation)
    }

    fn observed(&self) -> MutexGuard<'_, HashMap<String, Observed>> {
        self.observed.lock()
    }

    fn orphaning(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.orphaning.lock()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use k8s_openapi::{
        api::core::v1::ConfigMap,
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
        jiff::Timestamp,
    };

    use super::*;

    fn object(uid: &str, generation: i64) -> ConfigMap {
        let (name, uid) = (Some("a".to_owned()), Some(uid.to_owned()));
        let metadata = ObjectMeta { name, uid, generation: Some(generation), ..ObjectMeta::default() };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    #[tokio::test]
    async fn only_a_newer_spec_or_another_object_cancels() {
        let tracker = GenerationTracker::default();
        let old = object("x", 2);
        for (observed, newer) in
            [(None, false), (Some(("x", 1)), false), (Some(("x", 2)), false), (Some(("x", 3)), true)]
        {
            if let Some((uid, number)) = observed {
                tracker.observe(&object(uid, number));
            }
            assert_eq!(tracker.newer_than(&old).now_or_never().is_some(), newer, "{observed:?}");
        }
        tracker.observe(&object("y", 1));
        assert!(tracker.newer_than(&old).now_or_never().is_some());
        tracker.forget("a");
        assert!(tracker.newer_than(&old).now_or_never().is_none());
        tracker.cancel("a");
        assert!(tracker.newer_than(&old).now_or_never().is_some(), "it is no longer selected");
        tracker.observe(&old);
        assert!(tracker.newer_than(&old).now_or_never().is_none(), "it is selected again");
    }

    #[test]
    fn a_request_to_orphan_outlives_its_finalizer() {
        let tracker = GenerationTracker::default();
        let mut deleted = object("x", 1);
        deleted.metadata.finalizers = Some(vec!["orphan".to_owned()]);
        tracker.observe(&deleted);
        assert!(!tracker.is_orphaning(&deleted), "it is not being deleted");
        deleted.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        tracker.observe(&deleted);
        tracker.observe(&object("x", 2));
        assert!(tracker.is_orphaning(&object("x", 2)));
        assert!(!tracker.is_orphaning(&object("y", 2)), "another object of the same name");
        tracker.forget("a");
        assert!(!tracker.is_orphaning(&deleted));
    }

    #[tokio::test]
    async fn a_waiting_reconcile_is_notified() {
        let tracker = GenerationTracker::default();
        let old = object("x", 1);
        tracker.observe(&old);
        futures::future::join(tracker.newer_than(&old), async {
            tokio::task::yield_now().await;
            tracker.observe(&object("x", 2));
        })
        .await;
    }
}
