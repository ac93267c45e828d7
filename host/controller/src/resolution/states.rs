//! The Resolutions as their watch last delivered them, and which changes of other objects concern one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chandler_api::{BundleDeployment, Outcome, Resolution, names::OWNER_NAME_LABEL};
use chandler_resolution::{
    Claim,
    installation::{is_ready, ready},
};
use chandler_runtime::{Cache, Reflector, Triggers};
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};
use parking_lot::Mutex;

use tokio::{sync::Notify, time::Instant};

use super::{decisions::NAME_LABEL, handovers::Handovers, set};
use crate::signals::{Signal, Subscriber};

/// The shortest time between two rounds in which all Resolutions are reconciled because a BundleDeployment has another bundle. While a
/// set is installed, each of its members is such a change.
const PACE: Duration = Duration::from_secs(2);

/// A Resolution that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<Resolution>;

/// All Resolutions. Triggers reconciles of the Resolutions that a change concerns.
pub(crate) struct ResolutionStates {
    objects: Cache<Guarded>,
    triggers: Triggers<Resolution>,
    /// The name of the Resolution for PlatformOperators, which a PlatformPolicy limits.
    platform: String,
    /// What each BundleDeployment had when it last changed.
    installed: Mutex<BTreeMap<String, Bundle>>,
    /// The reason of the condition Ready of each BundleDeployment, which statuses of Resolutions repeat.
    states: Mutex<BTreeMap<String, String>>,
    /// The Resolutions whose decisions changed.
    stale: Mutex<BTreeSet<String>>,
    /// A BundleDeployment has another bundle than before.
    bundles: Notify,
    /// Members that pass from one set to another.
    pub(super) handovers: Handovers,
}

/// What the status of a BundleDeployment says about its bundle. A different bundle is only a reason to look at the records.
#[derive(Clone, Debug, PartialEq)]
struct Bundle {
    claim: Option<Claim>,
    /// The source of the last revision that became healthy.
    image: Option<String>,
}

impl Bundle {
    /// `None` for one that never became healthy.
    fn of(deployment: &BundleDeployment) -> Option<Self> {
        let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
        let succeeded = history.iter().rfind(|revision| revision.outcome == Outcome::Succeeded);
        if succeeded.is_none() && !is_ready(deployment) {
            return None;
        }
        let image = succeeded.and_then(|revision| Some(revision.source.image.as_ref()?.reference.clone()));
        Some(Self { claim: Claim::of(deployment), image })
    }
}

impl ResolutionStates {
    /// The Resolutions that this reflector watches. `platform` is the name of the one for PlatformOperators.
    pub(crate) fn new(reflector: &Reflector<Resolution>, platform: &str) -> Self {
        Self {
            objects: reflector.cache(),
            triggers: reflector.triggers(),
            platform: platform.to_owned(),
            installed: Mutex::default(),
            states: Mutex::default(),
            stale: Mutex::default(),
            bundles: Notify::new(),
            handovers: Handovers::default(),
        }
    }

    /// A BundleDeployment is new or changed. One of a set concerns its Resolution at once; what is installed concerns all
    /// ([`Self::bundles_changed`]).
    fn deployment_changed(&self, deployment: &BundleDeployment) {
        let name = deployment.name_any();
        self.owner(&name, deployment.labels().get(OWNER_NAME_LABEL));
        self.state_changed(deployment);
        let now = Bundle::of(deployment).filter(|_| deployment.metadata.deletion_timestamp.is_none());
        let mut installed = self.installed.lock();
        let is_same = installed.get(&name) == now.as_ref();
        match now {
            Some(now) => drop(installed.insert(name, now)),
            None => drop(installed.remove(&name)),
        }
        drop(installed);
        if !is_same {
            self.bundles.notify_one();
        }
    }

    /// Wakes the Resolutions that need a BundleDeployment whose state has changed: its set is not the only one that reports it.
    fn state_changed(&self, deployment: &BundleDeployment) {
        let name = deployment.name_any();
        let Some(state) = ready(deployment).map(|ready| ready.reason.clone()) else { return };
        let before = self.states.lock().insert(name.clone(), state.clone());
        if before.as_ref() == Some(&state) {
            return;
        }
        for resolution in self.objects.state().iter().filter_map(|guarded| guarded.0.as_ref().ok()) {
            if self.handovers.needs(resolution, &name) {
                self.wake(&resolution.name_any());
            }
        }
    }

    /// A BundleDeployment is gone.
    fn deployment_gone(&self, name: &str) {
        self.owner(name, None);
        self.states.lock().remove(name);
        self.handovers.deployment_gone(name);
        if self.installed.lock().remove(name).is_some() {
            self.bundles.notify_one();
        }
    }

    /// Completes when a BundleDeployment has another bundle than before: at once for the first change, and then for all changes of the
    /// last [`PACE`] together. `last` is when this completed last.
    pub(super) async fn bundles_changed(&self, last: &mut Option<Instant>) {
        self.bundles.notified().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + PACE).await;
        }
        *last = Some(Instant::now());
    }

    /// A ConfigMap of the system namespace is new, changed or gone. A decision that someone deletes is read again.
    fn config_map_changed(&self, map: &impl kube::ResourceExt) {
        if let Some(resolution) = map.labels().get(NAME_LABEL) {
            self.stale.lock().insert(resolution.clone());
            self.wake(resolution);
        }
    }

    /// Whether a decision of a Resolution changed since this was asked last.
    pub(super) fn take_stale(&self, name: &str) -> bool {
        self.stale.lock().remove(name)
    }

    /// Reconciles all Resolutions again.
    fn wake_all(&self) {
        for resolution in self.objects.state() {
            self.wake(&resolution.name_any());
        }
    }

    /// Waits for the first list of the Resolutions. False means that the controller is stopping.
    pub(crate) async fn ready(&self) -> bool {
        self.objects.ready().await
    }

    /// A Resolution as the watch last delivered it.
    pub(crate) fn get(&self, name: &str) -> Option<Resolution> {
        self.objects.get(&ObjectRef::new(name))?.0.as_ref().ok().cloned()
    }

    /// All Resolutions, as the watch last delivered them.
    pub(super) fn state(&self) -> Vec<Arc<Guarded>> {
        self.objects.state()
    }

    /// Reconciles a Resolution again.
    pub(crate) fn wake(&self, name: &str) {
        // A trigger without a receiver means that the controller is stopping.
        let _ = self.triggers.send(ObjectRef::new(name));
    }

    /// Whether this very Resolution exists, according to the watch.
    pub(super) fn exists(&self, name: &str, uid: Option<&str>) -> bool {
        self.objects.get(&ObjectRef::new(name)).is_some_and(|object| object.uid().as_deref() == uid)
    }

    /// What catalogs say about deprecated bundles that were chosen, by BundleDeployment.
    pub(crate) fn deprecations(&self) -> BTreeMap<String, String> {
        let all = self.objects.state();
        let statuses = all.iter().filter_map(|guarded| guarded.0.as_ref().ok()?.status.as_ref());
        let deprecated = statuses.flat_map(|status| &status.members).filter_map(|member| {
            let name = member.bundle_deployment.clone()?;
            Some((name, format!("{} {}: {}", member.package, member.version, member.deprecated.as_ref()?)))
        });
        deprecated.collect()
    }

    fn owner(&self, name: &str, label: Option<&String>) {
        let sets = [Some(name), label.map(String::as_str)];
        for resolution in sets.into_iter().flatten().filter_map(set::resolution_of) {
            if self.objects.get(&ObjectRef::new(resolution)).is_some() {
                self.wake(resolution);
            }
        }
    }
}

impl Subscriber for ResolutionStates {
    fn receive(&self, signal: Signal<'_>) {
        match signal {
            Signal::DeploymentChanged(deployment) => self.deployment_changed(deployment),
            Signal::DeploymentGone(name) => self.deployment_gone(name),
            Signal::ConfigMapChanged(map) => self.config_map_changed(map),
            Signal::CatalogsChanged => self.wake_all(),
            Signal::PolicyChanged => {
                if self.get(&self.platform).is_some() {
                    self.wake(&self.platform);
                }
            }
            Signal::DeploymentInputChanged(_)
            | Signal::ResolutionChanged(_)
            | Signal::PlatformOperatorChanged
            | Signal::ClassGone(_)
            | Signal::SecretChanged(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_client::Availability;
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn many_changes_wake_all_once_and_not_again_before_the_pace_allows_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let guard = runtime.enter();
        let reflector = Reflector::<Resolution>::new(Availability::default());
        let wakes = ResolutionStates::new(&reflector, "platform-operators");
        let completes = |last: &mut Option<Instant>| wakes.bundles_changed(last).now_or_never().is_some();
        let mut last = None;
        assert!(!completes(&mut last), "nothing changed");
        for _ in 0..3 {
            wakes.deployment_changed(&installed("a", "1.0.0"));
            wakes.deployment_changed(&installed("b", "1.0.0"));
        }
        assert!(completes(&mut last), "the first change is not delayed");
        assert!(last.is_some());
        assert!(!completes(&mut last), "one round is for all changes before it");

        wakes.deployment_changed(&installed("a", "2.0.0"));
        let mut later = Some(Instant::now() + Duration::from_hours(1));
        assert!(!completes(&mut later), "the round before was a moment ago");
        wakes.deployment_gone("b");
        drop(guard);
        runtime.block_on(wakes.bundles_changed(&mut Some(Instant::now() - PACE)));
    }

    #[test]
    fn what_is_not_another_bundle_wakes_nobody() {
        let reflector = Reflector::<Resolution>::new(Availability::default());
        let wakes = ResolutionStates::new(&reflector, "platform-operators");
        wakes.deployment_changed(&installed("a", "1.0.0"));
        assert!(wakes.bundles.notified().now_or_never().is_some());
        let mut same = installed("a", "1.0.0");
        same.spec.suspend = true;
        wakes.deployment_changed(&same);
        wakes.deployment_gone("never-there");
        assert!(wakes.bundles.notified().now_or_never().is_none());
    }

    /// A BundleDeployment whose bundle is installed.
    fn installed(name: &str, version: &str) -> BundleDeployment {
        let object = serde_json::json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": name, "generation": 1},
            "spec": {"installNamespace": "shop", "source": {"type": "image", "image": {"ref": "registry.example.com/a:v1"}}},
            "status": {
                "bundle": {"package": name, "version": version},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Healthy", "message": "", "observedGeneration": 1,
                                "lastTransitionTime": "2026-11-25T00:00:00Z"}],
            },
        });
        serde_json::from_value(object).unwrap()
    }
}
