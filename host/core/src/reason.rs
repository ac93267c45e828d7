//! Reasons of conditions.
//!
//! Reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning. Every crate
//! that can fail returns its reasons as this type.

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
    /// The reason of a condition.
    Reason {
        // Unpacked
        /// A finalizer failed. Only RukPak sets it.
        ProcessingFinalizerFailed,
        /// Unpacking has not begun. Only RukPak sets it.
        UnpackPending,
        /// The content is being fetched.
        Unpacking,
        /// The content could not be fetched, verified or unpacked.
        UnpackFailed,
        /// The image lacks the signatures that it must have.
        NoMatchingSignature,
        /// The content is unpacked.
        UnpackSuccessful,
        /// The content is larger than the administrator allows.
        ContentLimitExceeded,

        // HasValidBundle
        /// The content is not a bundle of the provisioner's format.
        BundleLoadFailed,

        // Installed
        /// The release could not be rendered or installed.
        InstallFailed,
        /// The release could not replace the previous one.
        UpgradeFailed,
        /// An installed release could not be repaired.
        ReconcileFailed,
        /// There is no client for the cluster. Only RukPak sets it.
        ErrorGettingClient,
        /// The installed release could not be determined. Only RukPak sets it.
        ErrorGettingReleaseState,
        /// The objects could not be watched. Only RukPak sets it.
        CreateDynamicWatchFailed,
        /// Every object is applied.
        InstallationSucceeded,
        /// Some objects are not applied yet.
        Installing,

        // Healthy
        /// Every object is healthy.
        Healthy,
        /// Some objects are not healthy.
        Unhealthy,
        /// The release is not installed.
        InstallationStatusFalse,
        /// Whether the release is installed is unknown. Only RukPak sets it.
        InstallationStatusUnknown,
        /// The objects could not be read.
        ObjectLookupFailure,

        // Drifted
        /// Every object matches the release.
        AsReleased,
        /// Objects differ from the release, and the spec disables repairs.
        DriftReported,
        /// Objects differ from the release, and repairing them failed.
        RepairFailed,
        /// Other clients change objects again and again, so Chandler repairs them less and less often.
        Contested,

        // Progressing and Ready
        /// The release is being rolled out.
        RollingOut,
        /// The release is complete and healthy.
        Succeeded,
        /// A step failed and is retried.
        Retrying,
        /// The release did not become complete and healthy in time.
        ProgressDeadlineExceeded,
        /// A revision failed, and the controller rolled back to the last one that succeeded.
        RolledBack,
        /// The revision to roll back to is not in the history, or its release renders differently now.
        RevisionUnavailable,
        /// A change is pending approval.
        ApprovalRequired,
        /// The spec suspends the object.
        Suspended,
        /// The object and the objects of its release are being deleted.
        Deleting,
        /// The deletion is blocked: custom resources exist that would be deleted with the CRDs of the release.
        CustomResourcesExist,

        // Provisioners
        /// No class of that name exists, and none is built in.
        ProvisionerMissing,
        /// The class exists, but its component is not usable.
        ProvisionerNotReady,
        /// The spec names no class, and none recognises the content.
        ProvisionerNotDetected,
        /// The spec names no class, and several with the highest priority recognise the content.
        ProvisionerAmbiguous,
        /// A call took longer than allowed.
        PluginTimeout,
        /// The provisioner did not return in time, because the machine is busy.
        MachineBusy,
        /// A call used more memory than allowed.
        PluginOutOfMemory,
        /// A call read, returned or logged more than allowed.
        PluginLimitExceeded,
        /// A call crashed.
        PluginTrapped,
        /// The provisioner reported a failure of its own.
        ProvisionFailed,
        /// The provisioner returned an invalid object, or an object twice.
        InvalidOutput,
        /// The provisioner refused the content.
        InvalidContent,
        /// The provisioner refused the configuration.
        InvalidConfiguration,
        /// A ConfigMap or Secret that spec.valuesFrom names, or its key, does not exist.
        ValuesNotFound,
        /// The values of a ConfigMap or Secret that spec.valuesFrom names are invalid.
        InvalidValues,
        /// The content requires a feature that the provisioner does not support.
        UnsupportedContent,
        /// The host failed.
        InternalError,
        /// The record of created objects and revisions cannot be read or written.
        RecordUnavailable,
        /// The record of created objects and revisions is older than the objects in the cluster.
        RecordOutdated,

        // Rollout
        /// An object of the release already exists and belongs to another owner.
        ObjectCollision,
        /// An object is of a kind that the cluster does not serve.
        RequiredResourceNotFound,
        /// The namespace to install into does not exist.
        InstallNamespaceNotFound,
        /// The API server refused an object.
        ObjectRefused,
        /// The release changes an immutable field, so the object would have to be deleted and created again.
        ImmutableField,
        /// The controller lacks permissions that the release needs.
        Forbidden,
        /// A new version of a CustomResourceDefinition would break clients or stored objects.
        UnsafeCRDUpgrade,
        /// Validating custom resources against a new version of their CRD exceeds its budget.
        CRDCheckLimitExceeded,
        /// Comparing an object of the release with the live object exceeds its budget.
        ComparisonTooLarge,
        /// The ServiceAccount that the spec names does not exist.
        ServiceAccountNotFound,
        /// The annotations of the ServiceAccount that the spec names do not list this object.
        ServiceAccountNotGranted,
        /// The spec names no ServiceAccount, and the controller installs nothing with its own permissions.
        ServiceAccountRequired,
        /// The ServiceAccount that the spec names lacks permissions that the release needs.
        PermissionsMissing,
        /// The release contains objects of the Chandler installation.
        ReservedObjects,

        // ProvisionerClass
        /// The image is known by digest and was pulled.
        ImageResolved,
        /// The image could not be resolved or pulled.
        ImageNotResolved,
        /// Nothing was verified: the controller does not require signatures.
        NotRequired,
        /// The component uses a supported version of the contract.
        ContractSupported,
        /// The component uses no supported version of the contract.
        UnsupportedContract,
        /// The component has imports that are not in the contract.
        MissingImports,
        /// The artifact has no component, or the facts of the component cannot be read.
        InvalidComponent,
        /// The component declares capabilities that nothing grants.
        MissingCapabilities,
        /// The component is compiled.
        CompilationSucceeded,
        /// The component could not be compiled.
        CompileFailed,
        /// The component was not compiled in time, because the machine is busy.
        CompilerBusy,
        /// The class is usable.
        ProvisionerReady,
        /// A newer component is not available. The previous one stays in use.
        UpdateFailed,
        /// The limits or the configuration of the class are not legal, or the spec of a BundleDeployment or a Catalog cannot be read.
        InvalidSpec,

        // Catalog
        /// The source is known by digest.
        SourceResolved,
        /// The source could not be resolved.
        SourceNotResolved,
        /// The content is a catalog without errors.
        CatalogValid,
        /// The content is not a catalog, or has errors.
        CatalogInvalid,
        /// The index of what the source names is in use.
        CatalogReady,
        /// The current content of the source is not usable or not known. The index of earlier content stays in use.
        CatalogStale,

        // Resolution
        /// The packages have an answer.
        PackagesResolved,
        /// The packages cannot be installed together, or not in the wanted versions.
        NotSatisfiable,
        /// The catalogs that are needed for an answer have no index yet.
        CatalogsNotReady,
        /// A change waits until the next maintenance window begins.
        OutsideMaintenanceWindow,
        /// The members of a decision are being fetched and checked, before the first of them is written.
        Preflighting,
        /// A member of a decision would be refused, so that none is written.
        PreflightFailed,
        /// An upgrade waits until the BundleDeployment of the package is healthy.
        MembersNotHealthy,
        /// The decision to roll back to is not kept.
        DecisionUnavailable,

        // PlatformOperator
        /// No bundle of the package fits.
        SourceFailed,
        /// The BundleDeployment installs the bundle.
        InstallPending,
        /// The bundle is installed.
        InstallSuccessful,

        // PlatformPolicy
        /// The policy is in force.
        PolicyAccepted,
        /// The policy has a value that cannot be read, so nothing new is decided for PlatformOperators.
        InvalidPolicy,
        /// The controller reads the policy with another name.
        PolicyNotUsed,
    }
}
