//! Reasons of conditions.
//!
//! Reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning. Every crate
//! that can fail returns its reasons as this type. Reasons are grouped by the kinds that report them; a reason without kinds or without
//! a remedy does not compile.

use crate::Remedy;

/// Declares an enum whose text form is the name of the variant.
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every name, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// The name with this text.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// A kind of object whose conditions have reasons.
    ReportingKind {
        /// `core.rukpak.io` BundleDeployment.
        BundleDeployment,
        /// `chandler.dev` ProvisionerClass.
        ProvisionerClass,
        /// `chandler.dev` Catalog.
        Catalog,
        /// `core.deppy.io` Resolution.
        Resolution,
        /// `platform.openshift.io` PlatformOperator.
        PlatformOperator,
        /// `chandler.dev` PlatformPolicy.
        PlatformPolicy,
        /// `chandler.dev` Receiver.
        Receiver,
        /// `chandler.dev` Alert.
        Alert,
    }
}

/// Declares the reasons in groups: the kinds that report the reasons of a group, and for each reason what ends a condition with it.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident; $([$($kind:ident),+] { $($(#[$reason_doc:meta])* $reason:ident => $remedy:ident,)+ })+) => {
        names! {
            $(#[$doc])*
            $name { $($($(#[$reason_doc])* $reason,)+)+ }
        }

        impl $name {
            /// The kinds whose reconcilers find this reason. A Resolution and a PlatformOperator also copy reasons of their
            /// BundleDeployments ([`is_reported_by`](Self::is_reported_by)).
            pub const fn kinds(self) -> &'static [ReportingKind] {
                match self {
                    $($(Self::$reason)|+ => &[$(ReportingKind::$kind),+],)+
                }
            }

            /// What ends a condition with this reason.
            pub const fn remedy(self) -> Remedy {
                match self {
                    $($(Self::$reason => Remedy::$remedy,)+)+
                }
            }
        }
    };
}

reasons! {
    /// The reason of a condition.
    Reason;

    [BundleDeployment] {
        /// A finalizer failed. Only RukPak sets it.
        ProcessingFinalizerFailed => TimeOrAction,
        /// The content is being fetched.
        Unpacking => Time,
        /// The files of the bundle have not been uploaded yet.
        UploadPending => Requirement,
        /// The content is not a bundle of the provisioner's format. Only RukPak sets it.
        BundleLoadFailed => User,
        /// The release could not replace the previous one.
        UpgradeFailed => TimeOrAction,
        /// An installed release could not be repaired.
        ReconcileFailed => TimeOrAction,
        /// There is no client for the cluster. Only RukPak sets it.
        ErrorGettingClient => Time,
        /// The installed release could not be determined. Only RukPak sets it.
        ErrorGettingReleaseState => Time,
        /// The objects could not be watched. Only RukPak sets it.
        CreateDynamicWatchFailed => Time,
        /// Every object is applied.
        InstallationSucceeded => Nothing,
        /// Every object is healthy.
        Healthy => Nothing,
        /// Some objects are not healthy.
        Unhealthy => TimeOrAction,
        /// The release is not installed.
        InstallationStatusFalse => TimeOrAction,
        /// Whether the release is installed is unknown. Only RukPak sets it.
        InstallationStatusUnknown => Time,
        /// The objects could not be read.
        ObjectLookupFailure => TimeOrAction,
        /// Every object matches the release.
        AsReleased => Nothing,
        /// Objects differ from the release, and the spec disables repairs.
        DriftReported => User,
        /// Objects differ from the release, and repairing them failed.
        RepairFailed => TimeOrAction,
        /// Other clients change objects again and again, so Chandler repairs them less and less often.
        Contested => User,
        /// The release did not become complete and healthy in time.
        ProgressDeadlineExceeded => TimeOrAction,
        /// The revision to roll back to is not in the history, or its release renders differently now.
        RevisionUnavailable => User,
        /// The deletion is blocked: custom resources exist that would be deleted with the CRDs of the release.
        CustomResourcesExist => User,
        /// No class of that name exists, and none is built in.
        ProvisionerMissing => Requirement,
        /// The spec names no class, and none recognises the content.
        ProvisionerNotDetected => Requirement,
        /// The spec names no class, and several with the highest priority recognise the content.
        ProvisionerAmbiguous => User,
        /// A call took longer than allowed.
        PluginTimeout => TimeOrAction,
        /// The provisioner did not return in time, because the machine is busy.
        MachineBusy => Time,
        /// A call used more memory than allowed.
        PluginOutOfMemory => TimeOrAction,
        /// A call crashed.
        PluginTrapped => TimeOrAction,
        /// The provisioner reported a failure of its own.
        ProvisionFailed => TimeOrAction,
        /// The provisioner returned an invalid object, or an object twice.
        InvalidOutput => Administrator,
        /// The provisioner refused the content.
        InvalidContent => User,
        /// The provisioner refused the configuration.
        InvalidConfiguration => User,
        /// A ConfigMap or Secret that spec.valuesFrom names, or its key, does not exist.
        ValuesNotFound => Requirement,
        /// The values of a ConfigMap or Secret that spec.valuesFrom names are invalid.
        InvalidValues => Requirement,
        /// The content requires a feature that the provisioner does not support.
        UnsupportedContent => User,
        /// The record of created objects and revisions is older than the objects in the cluster.
        RecordOutdated => Administrator,
        /// It was restored from a backup, and the rest of the backup is awaited before anything is created.
        RestoreIncomplete => Time,
        /// An object is of a kind that the cluster does not serve.
        RequiredResourceNotFound => Requirement,
        /// The namespace to install into does not exist.
        InstallNamespaceNotFound => Requirement,
        /// The API server refused an object.
        ObjectRefused => Requirement,
        /// The release changes an immutable field, so the object would have to be deleted and created again.
        ImmutableField => User,
        /// A new version of a CustomResourceDefinition would break clients or stored objects.
        UnsafeCRDUpgrade => User,
        /// Validating custom resources against a new version of their CRD exceeds its budget.
        CRDCheckLimitExceeded => User,
        /// Comparing an object of the release with the live object exceeds its budget.
        ComparisonTooLarge => User,
        /// The ServiceAccount that the spec names does not exist.
        ServiceAccountNotFound => Requirement,
        /// The annotations of the ServiceAccount that the spec names do not list this object.
        ServiceAccountNotGranted => Requirement,
        /// The spec names no ServiceAccount, and the controller installs nothing with its own permissions.
        ServiceAccountRequired => User,
        /// The ServiceAccount that the spec names lacks permissions that the release needs.
        PermissionsMissing => Requirement,
        /// The release contains objects of the Chandler installation.
        ReservedObjects => User,
        /// The controller does not install into other clusters, or not into so many of them.
        TargetNotAllowed => Administrator,
        /// The kubeconfig that spec.kubeConfig names does not exist, or is not one that the controller uses.
        InvalidKubeConfig => Requirement,
        /// The cluster of spec.kubeConfig does not answer, or refuses the credentials.
        TargetUnavailable => TimeOrAction,
        /// The kubeconfig leads to another cluster than the one into which the release was installed.
        TargetChanged => User,
    }
    [ProvisionerClass] {
        /// The image is known by digest.
        ImageResolved => Nothing,
        /// The image could not be resolved or pulled.
        ImageNotResolved => TimeOrAction,
        /// The signatures that the component must have are verified.
        SignaturesVerified => Nothing,
        /// Nothing was verified: the controller does not require signatures.
        NotRequired => Nothing,
        /// Neither the class nor a rule of the administrator names signers, and the controller requires signatures.
        SignersRequired => Administrator,
        /// The component uses a supported version of the contract.
        ContractSupported => Nothing,
        /// The component uses no supported version of the contract.
        UnsupportedContract => Administrator,
        /// The component has imports that are not in the contract.
        MissingImports => Administrator,
        /// The artifact has no component, or the facts of the component cannot be read.
        InvalidComponent => Administrator,
        /// The component declares capabilities that nothing grants.
        MissingCapabilities => Administrator,
        /// The component is compiled.
        CompilationSucceeded => Nothing,
        /// The component could not be compiled.
        CompileFailed => Administrator,
        /// The component was not compiled in time, because the machine is busy.
        CompilerBusy => Time,
        /// The class is usable.
        ProvisionerReady => Nothing,
        /// A newer component is not available. The previous one stays in use.
        UpdateFailed => TimeOrAction,
        /// All BundleDeployments that use the class have its component.
        UpdateComplete => Nothing,
        /// BundleDeployments are being updated to the component of the class.
        UpdateInProgress => Time,
        /// BundleDeployments keep an earlier component until their update is approved.
        UpdatePending => User,
        /// The update of a BundleDeployment failed, so that no other is updated.
        UpdateStopped => Administrator,
    }
    [Catalog] {
        /// The source is known by digest.
        SourceResolved => Nothing,
        /// The source could not be resolved.
        SourceNotResolved => TimeOrAction,
        /// The content is a catalog without errors.
        CatalogValid => Nothing,
        /// The index of what the source names is in use.
        CatalogReady => Nothing,
        /// The current content of the source is not usable or not known. The index of earlier content stays in use.
        CatalogStale => TimeOrAction,
    }
    [Resolution] {
        /// The packages have an answer.
        PackagesResolved => Nothing,
        /// The packages cannot be installed together, or not in the wanted versions.
        NotSatisfiable => User,
        /// The catalogs that are needed for an answer have no index yet.
        CatalogsNotReady => TimeOrAction,
        /// A change waits until the next maintenance window begins.
        OutsideMaintenanceWindow => Time,
        /// The members of a decision are being fetched and checked, before the first of them is written.
        Preflighting => Time,
        /// A member of a decision would be refused, so that none is written.
        PreflightFailed => Requirement,
        /// An upgrade waits until the BundleDeployment of the package is healthy.
        MembersNotHealthy => TimeOrAction,
        /// The decision to roll back to is not kept.
        DecisionUnavailable => User,
    }
    [PlatformOperator] {
        /// No bundle of the package fits.
        SourceFailed => User,
        /// The BundleDeployment installs the bundle.
        InstallPending => Time,
        /// The bundle is installed.
        InstallSuccessful => Nothing,
    }
    [PlatformPolicy] {
        /// The policy is in force.
        PolicyAccepted => Nothing,
        /// The controller reads the policy with another name.
        PolicyNotUsed => User,
    }
    [Receiver] {
        /// Requests are accepted at the path in the status.
        ReceiverReady => Nothing,
        /// The Secret with the token does not exist, has no key token, or cannot be read.
        TokenNotFound => Requirement,
        /// The token is shorter or longer than allowed.
        InvalidToken => Requirement,
        /// The spec of identity tokens accepts none, or everyone's; or the certificates of the issuer cannot be used.
        InvalidOidc => User,
        /// The controller has no address for webhooks.
        ReceiversNotServed => Administrator,
    }
    [Alert] {
        /// Notifications are sent.
        NotificationsSent => Nothing,
        /// The URL is not one that notifications may be sent to.
        EndpointInvalid => User,
        /// The Secret does not exist, or a key is missing or invalid.
        EndpointSecretInvalid => Requirement,
        /// The server did not accept the last notification.
        DeliveryFailed => TimeOrAction,
        /// There are more Alerts than the controller sends notifications for.
        TooManyAlerts => Administrator,
    }
    [BundleDeployment, ProvisionerClass] {
        /// The class exists, but its component is not usable.
        ProvisionerNotReady => TimeOrAction,
        /// The component is not called for a while: its calls crash or exceed limits for several requesters, and it renders no bundle.
        ProvisionerQuarantined => TimeOrAction,
        /// A call read, returned or logged more than allowed.
        PluginLimitExceeded => Administrator,
    }
    [BundleDeployment, Catalog, ProvisionerClass] {
        /// The image lacks the signatures that it must have.
        NoMatchingSignature => TimeOrAction,
    }
    [BundleDeployment, Catalog] {
        /// The content was not fetched, since what is in use takes all of the content cache.
        ContentCacheFull => TimeOrAction,
        /// The content is unpacked.
        UnpackSuccessful => Nothing,
    }
    [BundleDeployment, Resolution] {
        /// Some objects are not applied yet.
        Installing => Time,
        /// The release is being rolled out.
        RollingOut => Time,
        /// The release is complete and healthy.
        Succeeded => Nothing,
        /// A revision failed, and the controller rolled back to the last one that succeeded.
        RolledBack => User,
        /// A change is pending approval.
        ApprovalRequired => User,
        /// The object and the objects of its release are being deleted.
        Deleting => TimeOrAction,
        /// The record of created objects and revisions cannot be read or written.
        RecordUnavailable => TimeOrAction,
        /// An object of the release already exists and belongs to another owner.
        ObjectCollision => User,
    }
    [BundleDeployment, PlatformOperator] {
        /// Unpacking has not begun. Only RukPak sets it.
        UnpackPending => Time,
        /// The release could not be rendered or installed.
        InstallFailed => TimeOrAction,
    }
    [Catalog, Resolution] {
        /// The content is larger than the administrator allows.
        ContentLimitExceeded => Administrator,
        /// The content is not a catalog, or has errors.
        CatalogInvalid => User,
    }
    [BundleDeployment, ProvisionerClass, Catalog] {
        /// The host failed.
        InternalError => TimeOrAction,
    }
    [BundleDeployment, ProvisionerClass, Resolution] {
        /// A step failed and is retried.
        Retrying => Time,
        /// The controller lacks permissions that the release needs.
        Forbidden => Requirement,
    }
    [BundleDeployment, Catalog, Resolution, Receiver, Alert] {
        /// The spec suspends the object.
        Suspended => User,
    }
    [BundleDeployment, Catalog, PlatformOperator] {
        /// The content could not be fetched, verified or unpacked.
        UnpackFailed => TimeOrAction,
    }
    [Resolution, PlatformOperator, PlatformPolicy] {
        /// The policy has a value that cannot be read, so nothing new is decided for PlatformOperators.
        InvalidPolicy => Administrator,
    }
    [BundleDeployment, ProvisionerClass, Catalog, Resolution] {
        /// The spec cannot be decoded, or has a value that cannot be used.
        InvalidSpec => User,
    }
}

impl Reason {
    /// Whether the conditions of this kind may have the reason: its reconciler finds it, or copies it from a BundleDeployment.
    pub fn is_reported_by(self, kind: ReportingKind) -> bool {
        let copies = matches!(kind, ReportingKind::Resolution | ReportingKind::PlatformOperator);
        self.kinds().contains(&kind) || copies && self.kinds().contains(&ReportingKind::BundleDeployment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_in_the_groups_of_its_reasons_and_copies_only_from_bundle_deployments() {
        use ReportingKind::{
            Alert, BundleDeployment, Catalog, PlatformOperator, ProvisionerClass, Receiver, Resolution,
        };
        assert_eq!(Reason::Suspended.kinds(), [BundleDeployment, Catalog, Resolution, Receiver, Alert]);
        assert!(Reason::UnsafeCRDUpgrade.is_reported_by(Resolution), "a member has it");
        assert!(Reason::UnsafeCRDUpgrade.is_reported_by(PlatformOperator), "its BundleDeployment has it");
        assert!(!Reason::UnsafeCRDUpgrade.is_reported_by(ProvisionerClass));
        assert!(!Reason::CatalogStale.is_reported_by(Resolution));
        for kind in ReportingKind::ALL {
            let wanted = Reason::ALL.iter().filter(|reason| reason.kinds().contains(kind));
            assert!(wanted.clone().any(|reason| reason.remedy() == Remedy::Nothing), "{kind} can be fine");
            assert!(wanted.clone().any(|reason| reason.remedy() != Remedy::Nothing), "{kind} can fail");
        }
    }
}
