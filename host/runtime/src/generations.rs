//! Tells a reconcile that is under way that a newer spec was seen.
//!
//! One object is never reconciled twice at a time, so a newer spec has to wait for the end of a pass. A pass that writes
//! many objects, or meets a slow API server, ends itself instead.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chandler_api::BundleDeployment;
use kube::ResourceExt as _;
use tokio::sync::watch;

/// The finalizer of a deletion that leaves dependents alone (`metav1.FinalizerOrphanDependents`).
const ORPHAN: &str = "orphan";

/// The newest generations that were seen, by name and UID.
pub(crate) struct Generations {
    seen: Mutex<HashMap<String, (Option<String>, i64)>>,
    /// The UIDs of those that were seen being deleted with the wish that their objects stay.
    orphaning: Mutex<HashMap<String, Option<String>>>,
    changed: watch::Sender<()>,
}

impl Default for Generations {
    fn default() -> Self {
        Self { seen: Mutex::default(), orphaning: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Generations {
    /// Notes what was seen.
    pub(crate) fn see(&self, deployment: &BundleDeployment) {
        if deployment.metadata.deletion_timestamp.is_some() && deployment.finalizers().iter().any(|it| it == ORPHAN) {
            let mut orphaning = self.orphaning.lock().unwrap_or_else(PoisonError::into_inner);
            orphaning.insert(deployment.name_any(), deployment.uid());
        }
        let now = (deployment.uid(), generation(deployment));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.insert(deployment.name_any(), now.clone()).as_ref() != Some(&now) {
            self.changed.send_replace(());
        }
    }

    /// Whether this object was seen being deleted with `--cascade=orphan`. The garbage collector takes the finalizer that
    /// says so off again, maybe before a reconcile sees it.
    pub(crate) fn is_orphaning(&self, deployment: &BundleDeployment) -> bool {
        let orphaning = self.orphaning.lock().unwrap_or_else(PoisonError::into_inner);
        orphaning.get(&deployment.name_any()).is_some_and(|uid| *uid == deployment.uid())
    }

    /// Notes that an object is somebody else's from now on: whatever is under way for it is superseded, until it is seen again.
    pub(crate) fn leave(&self, name: &str) {
        let nobody = (None, i64::MAX);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), nobody);
        self.changed.send_replace(());
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.orphaning.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Ready as soon as a newer spec of this object, or a new object of its name, is seen. Deletion is one, too: it raises the
    /// generation.
    pub(crate) async fn newer_than(&self, deployment: &BundleDeployment) {
        let mut changed = self.changed.subscribe();
        while !self.is_newer(deployment) {
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn is_newer(&self, deployment: &BundleDeployment) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&deployment.name_any())
            .is_some_and(|(uid, number)| *uid != deployment.uid() || *number > generation(deployment))
    }
}

fn generation(deployment: &BundleDeployment) -> i64 {
    deployment.metadata.generation.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn deployment(uid: &str, generation: i64) -> BundleDeployment {
        let mut deployment = BundleDeployment::new("a", chandler_api::BundleDeploymentSpec::default());
        deployment.metadata.uid = Some(uid.to_owned());
        deployment.metadata.generation = Some(generation);
        deployment
    }

    #[tokio::test]
    async fn only_a_newer_spec_or_another_object_supersedes() {
        let generations = Generations::default();
        let old = deployment("x", 2);
        for (seen, newer) in [(None, false), (Some(("x", 1)), false), (Some(("x", 2)), false), (Some(("x", 3)), true)] {
            if let Some((uid, number)) = seen {
                generations.see(&deployment(uid, number));
            }
            assert_eq!(generations.newer_than(&old).now_or_never().is_some(), newer, "{seen:?}");
        }
        generations.see(&deployment("y", 1));
        assert!(generations.newer_than(&old).now_or_never().is_some());
        generations.forget("a");
        assert!(generations.newer_than(&old).now_or_never().is_none());
        generations.leave("a");
        assert!(generations.newer_than(&old).now_or_never().is_some(), "it is somebody else's");
        generations.see(&old);
        assert!(generations.newer_than(&old).now_or_never().is_none(), "it is ours again");
    }

    #[test]
    fn the_wish_that_objects_stay_outlives_its_finalizer() {
        let generations = Generations::default();
        let mut wish = deployment("x", 1);
        wish.metadata.finalizers = Some(vec!["orphan".to_owned()]);
        generations.see(&wish);
        assert!(!generations.is_orphaning(&wish), "it is not being deleted");
        wish.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
        generations.see(&wish);
        generations.see(&deployment("x", 2));
        assert!(generations.is_orphaning(&deployment("x", 2)));
        assert!(!generations.is_orphaning(&deployment("y", 2)), "another one of its name");
        generations.forget("a");
        assert!(!generations.is_orphaning(&wish));
    }

    #[tokio::test]
    async fn whoever_waits_is_told() {
        let generations = Generations::default();
        let old = deployment("x", 1);
        generations.see(&old);
        let told = generations.newer_than(&old);
        futures::future::join(told, async {
            tokio::task::yield_now().await;
            generations.see(&deployment("x", 2));
        })
        .await;
    }
}
