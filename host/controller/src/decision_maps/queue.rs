//! Which changes of other objects concern a set.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use chandler_api::BundleDeployment;
use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::annotations::{set_named_by, set_of};
use crate::signals::{Signal, Subscriber};

/// The sets that have to be looked at.
#[derive(Default)]
pub(crate) struct DecisionQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The sets that have to be looked at.
    sets: BTreeSet<String>,
    /// The set that each ConfigMap named when it last changed.
    maps: BTreeMap<String, String>,
    /// The BundleDeployments of sets as they last were: the UID, the generation, and whether it is being deleted. Other changes are status.
    deployments: BTreeMap<String, (Option<String>, Option<i64>, bool)>,
}

impl DecisionQueue {
    /// A ConfigMap of the system namespace is new, changed or gone.
    fn config_map_changed(&self, map: &impl ResourceExt) {
        let (name, now) = (map.name_any(), set_of(map).map(str::to_owned));
        let mut state = self.state();
        let before = match &now {
            Some(set) => state.maps.insert(name.clone(), set.clone()),
            None => state.maps.remove(&name),
        };
        let noted = set_named_by(&name).map(str::to_owned);
        self.wake(state, [before, now, noted].into_iter().flatten());
    }

    /// A BundleDeployment is new or changed.
    fn deployment_changed(&self, deployment: &BundleDeployment) {
        let name = deployment.name_any();
        let Some(set) = set_named_by(&name).map(str::to_owned) else { return };
        let metadata = &deployment.metadata;
        let now = (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp.is_some());
        let mut state = self.state();
        if state.deployments.insert(name, now.clone()) != Some(now) {
            self.wake(state, [set]);
        }
    }

    /// A BundleDeployment is gone.
    fn deployment_gone(&self, name: &str) {
        let Some(set) = set_named_by(name).map(str::to_owned) else { return };
        let mut state = self.state();
        state.deployments.remove(name);
        self.wake(state, [set]);
    }

    /// Looks at these sets again with the next ones, or after [`Self::changed`].
    pub(super) fn again(&self, sets: impl IntoIterator<Item = String>) {
        self.state().sets.extend(sets);
    }

    /// Completes when something changed since the last time.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The sets that have to be looked at.
    pub(super) fn take(&self) -> BTreeSet<String> {
        mem::take(&mut self.state().sets)
    }

    /// Forgets ConfigMaps that do not exist any more.
    pub(super) fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.state().maps.retain(|name, _| exists(name));
    }

    fn wake(&self, mut state: MutexGuard<'_, State>, sets: impl IntoIterator<Item = String>) {
        // Also for a set that will be tried again later: the change may help.
        for set in sets {
            state.sets.insert(set);
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Subscriber for DecisionQueue {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::ConfigMapChanged(map) => self.config_map_changed(map),
            Signal::DeploymentChanged(deployment) => self.deployment_changed(deployment),
            Signal::DeploymentGone(name) => self.deployment_gone(name),
            Signal::DeploymentInputChanged(_)
            | Signal::ResolutionChanged(_)
            | Signal::PlatformOperatorChanged
            | Signal::PolicyChanged
            | Signal::CatalogsChanged
            | Signal::ClassGone(_)
            | Signal::SecretChanged(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{BundleDeploymentSpec, BundleDeploymentStatus};
    use futures::FutureExt as _;

    use super::{super::claims::tests::map, *};

    fn woken(wakes: &DecisionQueue) -> Vec<String> {
        let changed = wakes.changed().now_or_never().is_some();
        let sets: Vec<String> = wakes.take().into_iter().collect();
        assert_eq!(changed, !sets.is_empty());
        sets
    }

    #[test]
    fn only_decisions_and_notes_concern_a_set() {
        let wakes = DecisionQueue::default();
        let mut decision = map("one", "1", 1);
        wakes.config_map_changed(&decision);
        assert_eq!(woken(&wakes), ["shop"]);
        decision.metadata.annotations = None;
        wakes.config_map_changed(&decision);
        assert_eq!(woken(&wakes), ["shop"], "it was one");
        wakes.config_map_changed(&decision);
        assert!(woken(&wakes).is_empty());
        decision.metadata.name = Some("decidedset-other".into());
        wakes.config_map_changed(&decision);
        assert_eq!(woken(&wakes), ["other"]);
    }

    #[test]
    fn a_status_of_a_bundle_deployment_concerns_no_set() {
        let wakes = DecisionQueue::default();
        let mut deployment = BundleDeployment::new("decidedset-shop", BundleDeploymentSpec::default());
        deployment.metadata.generation = Some(1);
        wakes.deployment_changed(&deployment);
        assert_eq!(woken(&wakes), ["shop"]);
        deployment.status = Some(BundleDeploymentStatus::default());
        wakes.deployment_changed(&deployment);
        assert!(woken(&wakes).is_empty());
        deployment.metadata.generation = Some(2);
        wakes.deployment_changed(&deployment);
        assert_eq!(woken(&wakes), ["shop"]);
        wakes.deployment_gone("decidedset-shop");
        assert_eq!(woken(&wakes), ["shop"]);
        wakes.deployment_changed(&BundleDeployment::new("resolveset-shop", BundleDeploymentSpec::default()));
        wakes.deployment_gone("shop");
        assert!(woken(&wakes).is_empty());
    }
}
