//! The options that an administrator sets.

use std::collections::BTreeSet;

use chandler_resolution::cluster_operators::{Names, Thresholds};

/// Which ClusterOperators exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterOperatorMode {
    /// None.
    None,
    /// One for all packages, and one for the controller.
    #[default]
    Aggregated,
    /// These two, and one for each package.
    Each,
}

/// How PlatformOperators and the controller are reported.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterOperatorSettings {
    /// Which ClusterOperators exist. Default: one for all packages, and one for the controller.
    pub mode: ClusterOperatorMode,
    /// Their names. Default: OpenShift's names.
    pub names: Names,
    /// The version that they report once everything is rolled out. Default: the version of this build.
    pub version: String,
    /// The PlatformOperators without which the platform is not complete, such as the operators of the same release payload. Until they
    /// exist and are installed, no version is reported, and nothing is available for the first time. Default: none.
    pub expected: BTreeSet<String>,
    /// How long a problem lasts until it is reported.
    pub thresholds: Thresholds,
    /// Whether an installed bundle that its catalog deprecates forbids the next minor version of OpenShift. Default: no.
    pub deprecated_blocks_upgrades: bool,
}

impl Default for ClusterOperatorSettings {
    fn default() -> Self {
        Self {
            mode: ClusterOperatorMode::default(),
            names: Names::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            expected: BTreeSet::new(),
            thresholds: Thresholds::default(),
            deprecated_blocks_upgrades: false,
        }
    }
}
