//! Why a condition has its status.
//!
//! Reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning. Every crate
//! that can fail returns its reasons as this type.

/// Declares an enum of names whose text is the name of the variant.
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every name, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name as it is written in the API.
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
    /// Why a condition has its status.
    Reason {
        // Unpacked
        /// A finalizer could not do its work. Chandler never sets it: it is RukPak's.
        ProcessingFinalizerFailed,
        /// Unpacking has not begun. Chandler never sets it: it is RukPak's.
        UnpackPending,
        /// The content is being fetched.
        Unpacking,
        /// The content could not be fetched, verified or unpacked.
        UnpackFailed,
        /// The content is unpacked.
        UnpackSuccessful,
        /// The content is larger than the administrator allows.
        ContentLimitExceeded,

        // HasValidBundle
        /// The content is not a bundle of the provisioner's format.
        BundleLoadFailed,

        // Installed
        /// The release could not be made or installed.
        InstallFailed,
        /// The release could not replace the one before.
        UpgradeFailed,
        /// An installed release could not be kept as it is.
        ReconcileFailed,
        /// There is no client for the cluster. Chandler never sets it: it is RukPak's.
        ErrorGettingClient,
        /// What is installed could not be found out. Chandler never sets it: it is RukPak's.
        ErrorGettingReleaseState,
        /// The objects could not be watched. Chandler never sets it: it is RukPak's.
        CreateDynamicWatchFailed,
        /// Every object is applied.
        InstallationSucceeded,
        /// Objects are still to be applied.
        Installing,

        // Healthy
        /// Every object is healthy.
        Healthy,
        /// Some objects are not healthy.
        Unhealthy,
        /// The release is not installed.
        InstallationStatusFalse,
        /// Whether the release is installed is not known. Chandler never sets it: it is RukPak's.
        InstallationStatusUnknown,
        /// The objects could not be read.
        ObjectLookupFailure,

        // Drifted
        /// Every object matches the release.
        AsReleased,
        /// Objects differ from the release, and the spec says to leave them so.
        DriftReported,
        /// Objects differ from the release, and repairing them failed.
        RepairFailed,
        /// Other clients change objects again and again, so Chandler repairs them less and less often.
        Contested,

        // Progressing and Ready
        /// The release is on its way to the cluster.
        RollingOut,
        /// The release is complete and healthy.
        Succeeded,
        /// It failed and is tried again.
        Retrying,
        /// The release did not become complete and healthy in time.
        ProgressDeadlineExceeded,
        /// A revision failed, and the last one that succeeded runs again.
        RolledBack,
        /// A revision that is to run again is not in the history, or its release does not come out as it was.
        RevisionUnavailable,
        /// A change waits for approval.
        ApprovalRequired,
        /// The spec says to leave everything as it is.
        Suspended,
        /// The object is being deleted and the objects of its release with it.
        Deleting,
        /// The object is to be deleted, but custom resources exist that would be deleted with the CRDs of its release.
        CustomResourcesExist,

        // Provisioners
        /// No class of that name exists, and none is built in.
        ProvisionerMissing,
        /// The class exists but its component cannot be used.
        ProvisionerNotReady,
        /// A call took longer than allowed.
        PluginTimeout,
        /// A call used more memory than allowed.
        PluginOutOfMemory,
        /// A call read, returned or logged more than allowed.
        PluginLimitExceeded,
        /// A call crashed.
        PluginTrapped,
        /// The provisioner reported a failure of its own.
        ProvisionFailed,
        /// The provisioner returned something that is not an object, or one object twice.
        InvalidOutput,
        /// The provisioner refused the content.
        InvalidContent,
        /// The configuration does not fit the provisioner.
        InvalidConfiguration,
        /// The content asks for something that the provisioner cannot do.
        UnsupportedContent,
        /// The host could not do its part.
        InternalError,
        /// What Chandler created for the bundle, and which revisions ran, cannot be read or recorded.
        RecordUnavailable,

        // Rollout
        /// An object of the release exists already and belongs to another owner.
        ObjectCollision,
        /// An object is of a kind that the cluster does not serve.
        RequiredResourceNotFound,
        /// The namespace to install into does not exist.
        InstallNamespaceNotFound,
        /// The API server refused an object.
        ObjectRefused,
        /// The controller is not allowed to do what the release needs.
        Forbidden,
        /// A new version of a CustomResourceDefinition would break clients or stored objects.
        UnsafeCRDUpgrade,
        /// A new version of a CustomResourceDefinition takes too much to be checked against its custom resources.
        CRDCheckLimitExceeded,
        /// Comparing an object of the release with what is in the cluster takes too much.
        ComparisonTooLarge,
        /// The ServiceAccount that the spec names does not exist.
        ServiceAccountNotFound,
        /// The spec names no ServiceAccount, and the controller installs nothing with its own rights.
        ServiceAccountRequired,
        /// The ServiceAccount that the spec names is not allowed to do all that the release needs.
        PermissionsMissing,
        /// The release holds objects that are part of the installation of Chandler itself.
        ReservedObjects,

        // ProvisionerClass
        /// The image is known by digest and was pulled.
        ImageResolved,
        /// The image could not be resolved or pulled.
        ImageNotResolved,
        /// The digest of the component is as announced.
        DigestVerified,
        /// The component speaks a supported version of the contract.
        ContractSupported,
        /// The component speaks no supported version of the contract.
        UnsupportedContract,
        /// The component imports something that the contract does not hold.
        MissingImports,
        /// The artifact holds no component, or one whose facts cannot be read.
        InvalidComponent,
        /// The component declares capabilities that nothing grants.
        MissingCapabilities,
        /// The component is compiled.
        CompilationSucceeded,
        /// The component could not be compiled.
        CompileFailed,
        /// The class can be used.
        ProvisionerReady,
        /// A newer component could not be had; the one before stays in use.
        UpdateFailed,
        /// The limits or the configuration of the class are not legal, or the spec of a BundleDeployment cannot be read.
        InvalidSpec,
    }
}
