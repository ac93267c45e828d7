//! One release for one owner: the input of every call of [`Rollout`](crate::Rollout) that is about a release. Pure.

use chandler_core::Release;
use chandler_health::Rule;

use crate::pure::{crd::DefinedKinds, drift_options::DriftOptions, owner::Owner};

/// A release that an owner wants in the cluster.
#[derive(Clone, Debug)]
pub struct RolloutRequest<'a> {
    /// The owner of the objects.
    pub owner: &'a Owner,
    /// The objects.
    pub release: &'a Release,
    /// Health rules of the installer, in addition to the probes of the release.
    pub rules: &'a [Rule],
    /// How objects that differ from the release are treated.
    pub drift: DriftOptions,
    /// Kinds that are defined before this release is rolled out: a preview takes them for served.
    pub before: Option<&'a DefinedKinds>,
}

impl<'a> RolloutRequest<'a> {
    /// A request without additional rules that repairs all drift.
    pub fn new(owner: &'a Owner, release: &'a Release) -> Self {
        Self { owner, release, rules: &[], drift: DriftOptions::default(), before: None }
    }

    /// Adds health rules of the installer.
    #[must_use]
    pub fn rules(self, rules: &'a [Rule]) -> Self {
        Self { rules, ..self }
    }

    /// Previews the release as if these kinds were served. A rollout does not look at them.
    #[must_use]
    pub fn after(self, before: &'a DefinedKinds) -> Self {
        Self { before: Some(before), ..self }
    }

    /// Sets how drift is treated.
    #[must_use]
    pub fn drift(self, drift: impl Into<DriftOptions>) -> Self {
        Self { drift: drift.into(), ..self }
    }
}
