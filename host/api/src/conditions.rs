//! Condition types, reasons, and how a condition is set.
//!
//! Types and reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning.

use std::fmt;

use chandler_core::text::printable;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The longest message of a condition, in bytes. The schema allows 32 KiB, but a status with several such messages is
/// more than watchers and etcd should carry.
pub const MESSAGE_BYTES: usize = 4096;

/// Declares an enum of names whose text is the name of the variant.
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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// The aspect that a condition is about.
    ConditionType {
        /// BundleDeployment: the content was fetched, verified and unpacked.
        Unpacked,
        /// BundleDeployment: the provisioner accepted the content.
        HasValidBundle,
        /// BundleDeployment: every object of the release is applied.
        Installed,
        /// BundleDeployment: every object of the release is healthy.
        Healthy,
        /// BundleDeployment: there is work that goes on without anybody's help.
        Progressing,
        /// BundleDeployment: objects of a complete release are not as released and are left so. Absent where nobody looks.
        Drifted,
        /// ProvisionerClass: the image is known by digest and was pulled.
        Resolved,
        /// ProvisionerClass: the component is what its digest says.
        Verified,
        /// ProvisionerClass: the component speaks a version of the contract that this host speaks.
        Compatible,
        /// ProvisionerClass: the component is compiled.
        Compiled,
        /// Both: what the spec asks for is the case. The sum of the others.
        Ready,
    }
}

names! {
    /// Whether the aspect is the case.
    ConditionStatus {
        /// It is.
        True,
        /// It is not.
        False,
        /// Nobody knows.
        Unknown,
    }
}

names! {
    /// Why a condition has its status.
    Reason {
        // Unpacked
        /// A finalizer could not do its work.
        ProcessingFinalizerFailed,
        /// Unpacking has not begun.
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
        /// The provisioner accepted the content.
        BundleLoadSuccessful,

        // Installed
        /// The release could not be made or installed.
        InstallFailed,
        /// The release could not replace the one before.
        UpgradeFailed,
        /// An installed release could not be kept as it is.
        ReconcileFailed,
        /// There is no client for the cluster.
        ErrorGettingClient,
        /// What is installed could not be found out.
        ErrorGettingReleaseState,
        /// The objects could not be watched.
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
        /// Whether the release is installed is not known.
        InstallationStatusUnknown,
        /// The objects could not be read.
        ObjectLookupFailure,

        // Drifted
        /// Every object is as released.
        AsReleased,
        /// Objects are not as released, and the spec says to leave them so.
        DriftReported,
        /// Objects are not as released, and repairing them failed.
        RepairFailed,
        /// Others change objects again and again, so that Chandler repairs them ever less often.
        Contested,

        // Progressing and Ready
        /// The release is on its way to the cluster.
        RollingOut,
        /// The release is complete and healthy.
        Succeeded,
        /// It failed and is tried again.
        Retrying,
        /// Only a change of the spec or of the cluster by somebody else helps.
        Blocked,
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
        /// The object is to be deleted, but custom resources exist that would go with the definitions of its release.
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
        /// What Chandler created for the bundle, and which revisions ran, cannot be read or written down.
        RecordUnavailable,

        // Rollout
        /// An object of the release exists already and belongs to somebody else.
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
        /// The digest of the component is not as announced.
        DigestMismatch,
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
        /// The limits or the configuration of the class are not legal.
        InvalidSpec,
    }
}

/// A condition that is about to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// The aspect.
    pub kind: ConditionType,
    /// Whether it is the case.
    pub status: ConditionStatus,
    /// Why.
    pub reason: Reason,
    /// What a human should know. Bounded to [`MESSAGE_BYTES`] when it is set.
    pub message: String,
}

impl NewCondition {
    /// The aspect is the case.
    pub fn is_true(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::True, reason, message: message.into() }
    }

    /// The aspect is not the case.
    pub fn is_false(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::False, reason, message: message.into() }
    }

    /// Nobody knows.
    pub fn is_unknown(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::Unknown, reason, message: message.into() }
    }
}

/// Sets a condition and tells whether anything changed.
///
/// `lastTransitionTime` moves only when the status does. The message is bounded and [printable], since messages quote what bundles
/// and plugins say.
pub fn set_condition(conditions: &mut Vec<Condition>, new: NewCondition, generation: Option<i64>, now: Time) -> bool {
    let NewCondition { kind, status, reason, message } = new;
    let mut condition = Condition {
        last_transition_time: now,
        message: bounded_message(&message),
        observed_generation: generation,
        reason: reason.as_str().to_owned(),
        status: status.as_str().to_owned(),
        type_: kind.as_str().to_owned(),
    };
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if old.status == condition.status {
        condition.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != condition;
    *old = condition;
    changed
}

/// The condition of this type.
pub fn find_condition(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// Takes a condition off, and tells whether it was there.
pub fn remove_condition(conditions: &mut Vec<Condition>, kind: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind.as_str());
    conditions.len() != before
}

/// A message that fits: at most [`MESSAGE_BYTES`] bytes, cut between characters, with what was cut counted at the end.
pub fn bounded_message(message: &str) -> String {
    let clean = printable(message);
    if clean.len() <= MESSAGE_BYTES {
        return clean.into_owned();
    }
    // Long enough for the note below with any number.
    let mut end = MESSAGE_BYTES - 48;
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    let (kept, cut) = clean.split_at(end);
    format!("{kept}… ({} more bytes)", cut.len())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        let ready = |message: &str| NewCondition::is_false(ConditionType::Ready, Reason::RollingOut, message);
        assert!(set_condition(&mut conditions, ready("a"), Some(1), at(1)));
        assert!(!set_condition(&mut conditions, ready("a"), Some(1), at(2)), "nothing changed");
        assert!(set_condition(&mut conditions, ready("b"), Some(1), at(3)), "the message changed");
        assert_eq!(conditions[0].last_transition_time, at(1));
        let done = NewCondition::is_true(ConditionType::Ready, Reason::Succeeded, "");
        assert!(set_condition(&mut conditions, done, Some(2), at(4)));
        assert_eq!((conditions.len(), &conditions[0].last_transition_time), (1, &at(4)));
        assert!(remove_condition(&mut conditions, ConditionType::Ready));
        assert!(!remove_condition(&mut conditions, ConditionType::Ready));
    }

    #[test]
    fn names_read_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::from_name("unpacking"), None);
        assert_eq!(ConditionType::HasValidBundle.to_string(), "HasValidBundle");
    }

    #[test]
    fn a_long_message_says_how_much_is_missing() {
        assert_eq!(bounded_message("a\tb\nc\u{1b}\u{61c}"), "a\tb\nc\\u{001B}\\u{061C}");
        let long = bounded_message(&"x".repeat(5000));
        assert!(long.ends_with("x… (952 more bytes)"), "{long}");
    }

    proptest! {
        #[test]
        fn messages_are_bounded_and_stable(message in "\\PC{0,3000}") {
            let bounded = bounded_message(&message);
            prop_assert!(bounded.len() <= MESSAGE_BYTES);
            prop_assert_eq!(bounded_message(&bounded), bounded);
        }
    }
}
