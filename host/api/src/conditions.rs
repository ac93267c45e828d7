//! Condition types and reasons, and setting a condition.
//!
//! Types and reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning.

pub use chandler_core::{Reason, Remedy, ReportingKind};
use chandler_core::{names, text::printable};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// The longest message of a condition, in bytes. The schema allows 32 KiB, but several such messages make a status too
/// large for watchers and etcd.
pub const MESSAGE_BYTES: usize = 4096;

names! {
    /// The type of a condition.
    ConditionType {
        /// BundleDeployment, Catalog: the content was fetched, verified and unpacked.
        Unpacked,
        /// BundleDeployment: the provisioner accepted the content.
        HasValidBundle,
        /// BundleDeployment: every object of the release is applied. Resolution: every member of the set is.
        Installed,
        /// BundleDeployment: every object of the release is healthy. Resolution: every member of the set is.
        Healthy,
        /// BundleDeployment: the controller makes progress or retries, without user action.
        Progressing,
        /// All: the controller is working, or retries after an error that may be transient. Absent otherwise, as kstatus expects of a
        /// condition that is abnormal when True.
        Reconciling,
        /// All: retries will not help; a user or an administrator has to act. Absent otherwise, like Reconciling.
        Stalled,
        /// BundleDeployment: objects of a complete release differ from the release and are not repaired. Absent if objects are not
        /// compared.
        Drifted,
        /// ProvisionerClass: the image is known by digest and was pulled. Catalog: the source is known by digest. Resolution: the
        /// packages have an answer.
        Resolved,
        /// ProvisionerClass: the component is signed by a trusted signer. False with reason NotRequired where the controller requires no
        /// signatures.
        Verified,
        /// Catalog: the content is a catalog without errors.
        Valid,
        /// PlatformPolicy: it is in force.
        Accepted,
        /// ProvisionerClass: this host supports the version of the contract that the component uses.
        Compatible,
        /// ProvisionerClass: the component is compiled.
        Compiled,
        /// ProvisionerClass: the BundleDeployments that use the class have its component. Absent while none uses it.
        Updated,
        /// All: the state matches the spec. Summarizes the other conditions.
        Ready,
    }
}

names! {
    /// The status of a condition.
    ConditionStatus {
        /// The condition holds.
        True,
        /// The condition does not hold.
        False,
        /// The controller does not know.
        Unknown,
    }
}

/// A condition to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// The type.
    pub kind: ConditionType,
    /// The status.
    pub status: ConditionStatus,
    /// The reason.
    pub reason: Reason,
    /// The message for people. Bounded to [`MESSAGE_BYTES`] when it is set.
    pub message: String,
}

impl NewCondition {
    /// A condition with the status True.
    pub fn is_true(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::True, reason, message: message.into() }
    }

    /// A condition with the status False.
    pub fn is_false(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::False, reason, message: message.into() }
    }

    /// A condition with the status Unknown.
    pub fn is_unknown(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, status: ConditionStatus::Unknown, reason, message: message.into() }
    }
}

/// A time as the API server keeps it, in whole seconds: a status that differs only below them would be written again and again.
pub fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// Sets a condition. Returns whether anything changed.
///
/// `lastTransitionTime` changes only when the status changes. The message is bounded and [printable], since messages quote text
/// of bundles and plugins.
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

/// Removes a condition. Returns whether it was set.
pub fn remove_condition(conditions: &mut Vec<Condition>, kind: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind.as_str());
    conditions.len() != before
}

/// The message in at most [`MESSAGE_BYTES`] bytes, cut between characters. The end states how many bytes are missing.
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
    fn the_transition_time_changes_only_with_the_status() {
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
    fn names_round_trip() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::from_name("unpacking"), None);
        assert_eq!(ConditionType::HasValidBundle.to_string(), "HasValidBundle");
    }

    #[test]
    fn a_truncated_message_states_how_much_is_missing() {
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
