//! How a condition ends: by a retry, or by an action of a user or an administrator.
//!
//! The status, `chandler status` and the documentation read this table, so that they agree. A new reason does not compile without
//! an entry.

use crate::Reason;

/// What ends a condition with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Nothing: the condition reports what is wanted.
    Nothing,
    /// A retry: the controller is working, or retries an operation that is likely to succeed.
    Time,
    /// Either: the message has the cause. The controller retries as long as that may help.
    TimeOrAction,
    /// Something that the release needs must appear in the cluster or change there: a namespace, an account, a permission, a kind.
    /// The controller looks again, and continues without a change of the BundleDeployment.
    Requirement,
    /// The BundleDeployment or its bundle must change.
    User,
    /// The installation of Chandler must change: its options, its permissions, its records, or a provisioner.
    Administrator,
}

impl Remedy {
    /// Whether a retry may help.
    pub const fn time_may_help(self) -> bool {
        matches!(self, Self::Nothing | Self::Time | Self::TimeOrAction)
    }
}

impl Reason {
    /// What ends a condition with this reason.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::UnpackSuccessful
            | Self::InstallationSucceeded
            | Self::Healthy
            | Self::AsReleased
            | Self::Succeeded
            | Self::ImageResolved
            | Self::NotRequired
            | Self::ContractSupported
            | Self::CompilationSucceeded
            | Self::ProvisionerReady
            | Self::SourceResolved
            | Self::CatalogValid
            | Self::CatalogReady
            | Self::PackagesResolved
            | Self::InstallSuccessful
            | Self::PolicyAccepted => Remedy::Nothing,

            Self::UnpackPending
            | Self::Unpacking
            | Self::Installing
            | Self::RollingOut
            | Self::Retrying
            | Self::ErrorGettingClient
            | Self::ErrorGettingReleaseState
            | Self::CreateDynamicWatchFailed
            | Self::OutsideMaintenanceWindow
            | Self::Preflighting
            | Self::InstallPending
            | Self::CompilerBusy
            | Self::MachineBusy
            | Self::InstallationStatusUnknown => Remedy::Time,

            Self::ProcessingFinalizerFailed
            | Self::UnpackFailed
            | Self::NoMatchingSignature
            | Self::InstallFailed
            | Self::UpgradeFailed
            | Self::ReconcileFailed
            | Self::InstallationStatusFalse
            | Self::Unhealthy
            | Self::ObjectLookupFailure
            | Self::RepairFailed
            | Self::ProgressDeadlineExceeded
            | Self::Deleting
            | Self::ProvisionerNotReady
            | Self::PluginTimeout
            | Self::PluginOutOfMemory
            | Self::PluginTrapped
            | Self::ProvisionFailed
            | Self::InternalError
            | Self::RecordUnavailable
            | Self::ImageNotResolved
            | Self::SourceNotResolved
            | Self::CatalogStale
            | Self::CatalogsNotReady
            | Self::MembersNotHealthy
            | Self::UpdateFailed => Remedy::TimeOrAction,

            Self::ProvisionerMissing
            | Self::ProvisionerNotDetected
            | Self::RequiredResourceNotFound
            | Self::InstallNamespaceNotFound
            | Self::ServiceAccountNotFound
            | Self::ServiceAccountNotGranted
            | Self::PermissionsMissing
            | Self::ObjectRefused
            | Self::PreflightFailed
            | Self::ValuesNotFound
            | Self::InvalidValues
            | Self::Forbidden => Remedy::Requirement,

            Self::BundleLoadFailed
            | Self::ProvisionerAmbiguous
            | Self::DriftReported
            | Self::Contested
            | Self::RolledBack
            | Self::RevisionUnavailable
            | Self::ApprovalRequired
            | Self::Suspended
            | Self::CustomResourcesExist
            | Self::InvalidContent
            | Self::InvalidConfiguration
            | Self::UnsupportedContent
            | Self::ObjectCollision
            | Self::UnsafeCRDUpgrade
            | Self::CRDCheckLimitExceeded
            | Self::ImmutableField
            | Self::ComparisonTooLarge
            | Self::ServiceAccountRequired
            | Self::ReservedObjects
            | Self::CatalogInvalid
            | Self::NotSatisfiable
            | Self::DecisionUnavailable
            | Self::SourceFailed
            | Self::PolicyNotUsed
            | Self::InvalidSpec => Remedy::User,

            Self::ContentLimitExceeded
            | Self::PluginLimitExceeded
            | Self::InvalidOutput
            | Self::UnsupportedContract
            | Self::MissingImports
            | Self::InvalidComponent
            | Self::MissingCapabilities
            | Self::RecordOutdated
            | Self::InvalidPolicy
            | Self::CompileFailed => Remedy::Administrator,
        }
    }
}
