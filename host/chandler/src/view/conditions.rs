//! The conditions of a BundleDeployment as text: each message once. And which of them need attention.

use std::fmt::Write as _;

use chandler_api::{ConditionType, Reason, find_condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    terminal::{Look, Tone},
    text::{one_line, printable},
};

/// Whether a condition may have a suggested action. `Progressing` may in either state, `Drifted` and `Stalled` only if they are true,
/// and `Reconciling` repeats `Progressing`.
pub fn needs_attention(condition: &Condition) -> bool {
    match ConditionType::from_name(&condition.type_) {
        Some(ConditionType::Drifted | ConditionType::Stalled) => condition.status == "True",
        Some(ConditionType::Progressing) => true,
        Some(ConditionType::Reconciling) => false,
        _ => condition.status != "True",
    }
}

/// The reasons of the conditions that need attention, each once: the causes, without their consequences. A condition with the same message
/// as `Progressing` is a consequence: `Progressing` has the cause as its reason.
pub fn causes(conditions: &[Condition]) -> Vec<Reason> {
    let progressing = find_condition(conditions, ConditionType::Progressing);
    let is_consequence = |condition: &Condition| {
        progressing.is_some_and(|progressing| {
            condition.type_ != progressing.type_ && contains(&progressing.message, &condition.message)
        }) || [Reason::InstallationStatusFalse, Reason::InstallFailed, Reason::UpgradeFailed]
            .iter()
            .any(|reason| reason.as_str() == condition.reason && progressing.is_some())
    };
    let mut reasons = Vec::new();
    for condition in conditions.iter().filter(|condition| needs_attention(condition) && !is_consequence(condition)) {
        reasons.extend(Reason::from_name(&condition.reason).filter(|reason| !reasons.contains(reason)));
    }
    reasons
}

/// Appends the conditions. A message that several conditions share, or that is a part of another one, is shown once.
pub fn write(text: &mut String, conditions: &[Condition], look: Look) {
    let shown: Vec<&Condition> =
        conditions.iter().filter(|it| it.type_ != ConditionType::Reconciling.as_str()).collect();
    if shown.is_empty() {
        return;
    }
    text.push_str("\nconditions\n");
    for (index, condition) in shown.iter().enumerate() {
        let (kind, status) = (one_line(&condition.type_), one_line(&condition.status));
        let (reason, since) = (one_line(&condition.reason), condition.last_transition_time.0);
        // Writing to a string cannot fail.
        let status = look.paint(tone(condition), &format!("{status:<8}"));
        let _ = writeln!(text, "  {kind:<14} {status} {reason}  (since {since:.0})");
        let is_repeated = shown.iter().enumerate().any(|(other, it)| {
            let is_same = it.message == condition.message;
            is_same && other < index || !is_same && contains(&it.message, &condition.message)
        });
        if is_repeated {
            continue;
        }
        for line in printable(&condition.message).lines().filter(|line| !line.trim().is_empty()) {
            let _ = writeln!(text, "      {line}");
        }
    }
}

/// The colour of the status. `Progressing` says nothing about success.
fn tone(condition: &Condition) -> Tone {
    let bad_if_true = || match condition.status.as_str() {
        "True" => Tone::Bad,
        _ => Tone::Plain,
    };
    match ConditionType::from_name(&condition.type_) {
        Some(ConditionType::Drifted | ConditionType::Stalled) => bad_if_true(),
        Some(ConditionType::Progressing | ConditionType::Reconciling) => Tone::Plain,
        _ => match condition.status.as_str() {
            "True" => Tone::Good,
            "False" => Tone::Bad,
            _ => Tone::Busy,
        },
    }
}

/// Whether a message has this part. Line breaks count as spaces, and no message is a part of none.
fn contains(message: &str, part: &str) -> bool {
    !part.trim().is_empty() && one_line(message).contains(&one_line(part))
}

#[cfg(test)]
mod tests {
    use chandler_api::{ConditionStatus, NewCondition, set_condition};
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn conditions(all: &[(ConditionType, ConditionStatus, Reason, &str)]) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (kind, status, reason, message) in all {
            let new = NewCondition { kind: *kind, status: *status, reason: *reason, message: (*message).to_owned() };
            set_condition(&mut conditions, new, Some(1), Time(Timestamp::UNIX_EPOCH));
        }
        conditions
    }

    #[test]
    fn a_blocking_message_is_shown_once_and_its_cause_is_the_only_one() {
        use {ConditionStatus::*, ConditionType as Type};
        let missing = "the ServiceAccount n/a does not exist: create it, or name another one in spec.serviceAccount";
        let refused = conditions(&[
            (Type::Unpacked, True, Reason::UnpackSuccessful, "Successfully unpacked the image Bundle"),
            (Type::Installed, False, Reason::InstallFailed, missing),
            (Type::Healthy, False, Reason::InstallationStatusFalse, "the first release is not installed"),
            (Type::Progressing, True, Reason::ServiceAccountNotFound, missing),
            (Type::Reconciling, True, Reason::ServiceAccountNotFound, missing),
            (Type::Ready, False, Reason::ServiceAccountNotFound, missing),
        ]);
        let mut text = String::new();
        write(&mut text, &refused, Look::Plain);
        insta::assert_snapshot!(text, @r"
        conditions
          Unpacked       True     UnpackSuccessful  (since 1970-01-01T00:00:00Z)
              Successfully unpacked the image Bundle
          Installed      False    InstallFailed  (since 1970-01-01T00:00:00Z)
              the ServiceAccount n/a does not exist: create it, or name another one in spec.serviceAccount
          Healthy        False    InstallationStatusFalse  (since 1970-01-01T00:00:00Z)
              the first release is not installed
          Progressing    True     ServiceAccountNotFound  (since 1970-01-01T00:00:00Z)
          Ready          False    ServiceAccountNotFound  (since 1970-01-01T00:00:00Z)
        ");
        assert_eq!(causes(&refused), [Reason::ServiceAccountNotFound]);
    }

    #[test]
    fn a_message_within_another_one_is_shown_there() {
        use {ConditionStatus::*, ConditionType as Type};
        let waiting = conditions(&[
            (Type::Healthy, False, Reason::Unhealthy, "Deployment.apps n/a: 0 of 1 available"),
            (
                Type::Progressing,
                True,
                Reason::RollingOut,
                "stage 1 of 1 waits for Deployment.apps n/a: 0 of 1 available",
            ),
        ]);
        let mut text = String::new();
        write(&mut text, &waiting, Look::Plain);
        assert_eq!(text.matches("0 of 1 available").count(), 1, "{text}");
        assert_eq!(causes(&waiting), [Reason::RollingOut]);
    }
}
