//! The wanted ClusterOperators, and their statuses.

use std::collections::BTreeMap;

use chandler_api::ClusterOperatorStatus;
use chandler_resolution::cluster_operators::{Controller, Derived, Memory, Package, Packages, related};
use k8s_openapi::jiff::Timestamp;

use super::{
    observe::Observed,
    settings::{ClusterOperatorMode, ClusterOperatorSettings},
};

/// Derives the statuses, and remembers since when there is a problem.
#[derive(Debug, Default)]
pub(super) struct Memories(BTreeMap<String, Memory>);

/// What to report, and how.
pub(super) struct Input<'a> {
    pub(super) observed: &'a Observed,
    /// Why the controller cannot read what it reconciles.
    pub(super) problem: Option<&'a str>,
    pub(super) settings: &'a ClusterOperatorSettings,
    pub(super) system_namespace: &'a str,
}

impl Memories {
    /// The statuses by name. `before` is the status that a ClusterOperator has.
    pub(super) fn derive(
        &mut self,
        input: &Input<'_>,
        before: impl Fn(&str) -> Option<ClusterOperatorStatus>,
        now: Timestamp,
    ) -> BTreeMap<String, Derived> {
        let Input { observed, problem, settings, system_namespace } = *input;
        let (names, thresholds) = (&settings.names, settings.thresholds);
        let mut memories = std::mem::take(&mut self.0);
        let mut wanted = BTreeMap::new();
        let mut add = |name: String, status: &dyn Fn(Option<&ClusterOperatorStatus>, &mut Memory) -> Derived| {
            let mut memory = memories.remove(&name).unwrap_or_default();
            let derived = status(before(&name).as_ref(), &mut memory);
            self.0.insert(name.clone(), memory);
            wanted.insert(name, derived);
        };
        if settings.mode == ClusterOperatorMode::None {
            return wanted;
        }
        let is_absent = |name: &&String| observed.packages.iter().all(|package| package.operator != **name);
        let absent: Vec<Package> =
            settings.expected.iter().filter(is_absent).map(|name| Package::absent(name)).collect();
        let all: Vec<&Package> = observed.packages.iter().chain(&absent).collect();
        let platform = &observed.platform;
        add(names.aggregated(), &|before, memory| {
            let related = related::all(&observed.packages, system_namespace, observed.resolution.as_deref());
            let packages = Packages { packages: &all, platform, version: Some(&settings.version), thresholds };
            packages.status(related, before, memory, now)
        });
        add(names.core(), &|before, memory| {
            let controller = Controller { version: &settings.version, problem, thresholds };
            controller.status(related::controller(system_namespace), before, memory, now)
        });
        for package in observed.packages.iter().filter(|_| settings.mode == ClusterOperatorMode::Each) {
            add(names.package(&package.operator), &|before, memory| {
                let version = package.version.as_deref();
                let packages = Packages { packages: &[package], platform, version, thresholds };
                packages.status(related::one(package), before, memory, now)
            });
        }
        wanted
    }
}
