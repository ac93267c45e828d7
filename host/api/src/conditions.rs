//! Condition types, reasons, and how a condition is set.
//!
//! Types and reasons are a public interface: scripts and other controllers match them, so a name never changes its meaning.

pub use chandler_core::Reason;
use chandler_core::{names, text::printable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The longest message of a condition, in bytes. The schema allows 32 KiB, but a status with several such messages is
/// more than watchers and etcd should carry.
pub const MESSAGE_BYTES: usize = 4096;

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
        /// BundleDeployment: the controller has stopped trying, and only a change by the user helps. Absent otherwise, as kstatus
        /// expects of a condition that is abnormal when True.
        Stalled,
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
