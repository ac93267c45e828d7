//! Which changes of other objects concern a Resolution.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use chandler_api::{BundleDeployment, Resolution, names::OWNER_NAME_LABEL};
use chandler_resolution::Installation;
use chandler_runtime::Triggers;
use kube::{
    ResourceExt as _,
    runtime::reflector::{ObjectRef, Store},
};

use super::{decisions::NAME_LABEL, set};

/// A Resolution that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<Resolution>;

/// Triggers reconciles of Resolutions.
pub(crate) struct ResolutionWakes {
    objects: Store<Guarded>,
    triggers: Triggers<Resolution>,
    /// What each BundleDeployment had when it last changed.
    installed: Mutex<BTreeMap<String, Installation>>,
    /// The Resolutions of which a decision changed.
    stale: Mutex<BTreeSet<String>>,
}

impl ResolutionWakes {
    pub(crate) fn new(objects: Store<Guarded>, triggers: Triggers<Resolution>) -> Self {
        Self { objects, triggers, installed: Mutex::default(), stale: Mutex::default() }
    }

    /// A BundleDeployment is new or changed. One of a set concerns its Resolution; what is installed concerns all.
    pub(crate) fn deployment_changed(&self, deployment: &BundleDeployment) {
        let name = deployment.name_any();
        self.owner(&name, deployment.labels().get(OWNER_NAME_LABEL));
        let now = Installation::of(deployment).filter(|_| deployment.metadata.deletion_timestamp.is_none());
        let mut installed = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        let bundle = |it: &Installation| it.bundle.clone();
        let is_same = installed.get(&name).map(bundle) == now.as_ref().map(bundle);
        match now {
            Some(now) => drop(installed.insert(name, now)),
            None => drop(installed.remove(&name)),
        }
        drop(installed);
        if !is_same {
            self.all();
        }
    }

    /// A BundleDeployment is gone.
    pub(crate) fn deployment_gone(&self, name: &str) {
        self.owner(name, None);
        if self.installed.lock().unwrap_or_else(PoisonError::into_inner).remove(name).is_some() {
            self.all();
        }
    }

    /// A ConfigMap of the system namespace is new, changed or gone. A decision that someone deletes is read again.
    pub(crate) fn config_map_changed(&self, map: &impl kube::ResourceExt) {
        if let Some(resolution) = map.labels().get(NAME_LABEL) {
            self.stale.lock().unwrap_or_else(PoisonError::into_inner).insert(resolution.clone());
            self.wake(resolution);
        }
    }

    /// Whether a decision of a Resolution changed since this was asked last.
    pub(super) fn take_stale(&self, name: &str) -> bool {
        self.stale.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// The catalogs that can be read are others than before, or all Resolutions have to look again.
    pub(crate) fn all(&self) {
        for resolution in self.objects.state() {
            self.wake(&resolution.name_any());
        }
    }

    /// Waits for the first list of the Resolutions. False means that the controller is stopping.
    pub(crate) async fn ready(&self) -> bool {
        self.objects.wait_until_ready().await.is_ok()
    }

    /// A Resolution as the watch brought it last.
    pub(crate) fn get(&self, name: &str) -> Option<Resolution> {
        self.objects.get(&ObjectRef::new(name))?.0.as_ref().ok().cloned()
    }

    /// Reconciles a Resolution again.
    pub(super) fn wake(&self, name: &str) {
        // A trigger without a receiver means that the controller is stopping.
        let _ = self.triggers.send(ObjectRef::new(name));
    }

    /// Whether this very Resolution exists, as far as the watch has brought it.
    pub(super) fn exists(&self, name: &str, uid: Option<&str>) -> bool {
        self.objects.get(&ObjectRef::new(name)).is_some_and(|object| object.uid().as_deref() == uid)
    }

    /// What catalogs say of deprecated bundles that were chosen, by BundleDeployment.
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
