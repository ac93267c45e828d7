//! What a cluster is for.

/// What a cluster is for. It decides the defaults of the settings and the options of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// One team installs bundles.
    #[default]
    Standalone,
    /// OpenShift: ClusterOperators, mirror sets, the SCC `restricted-v2`, its monitoring.
    OpenShift,
    /// Several teams install bundles, each with its own account.
    MultiTenant,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Standalone, Self::OpenShift, Self::MultiTenant];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::OpenShift => "openshift",
            Self::MultiTenant => "multi-tenant",
        }
    }

    /// Whether a cluster has the kinds of the Prometheus Operator: OpenShift always serves them.
    pub(crate) const fn is_monitored(self) -> bool {
        matches!(self, Self::OpenShift)
    }

    /// The options of the controller that only this profile has.
    pub(crate) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Standalone => &[],
            Self::OpenShift => &[
                "--cluster-operators=aggregated",
                "--mirrors-from=imagedigestmirrorsets,imagetagmirrorsets",
                "--tls-profile-from=apiservers",
            ],
            Self::MultiTenant => &[
                "--require-service-account",
                "--accounts-in=chandler-accounts",
                "--require-service-account-grant",
                "--require-pull-secret-grant",
            ],
        }
    }
}
