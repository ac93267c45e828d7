//! What the cluster-version operator (CVO) makes of a ClusterOperator.
//!
//! Written from the contract between the two. Conditions that are missing count against a ClusterOperator: it is then neither available
//! nor free of failures.

use std::time::Duration;

use chandler_api::{ClusterOperatorCondition, ClusterOperatorStatus, OperandVersion};

/// How long a ClusterOperator may be degraded until an update fails.
pub const FAIL_AFTER: Duration = Duration::from_mins(40);

/// What the cluster-version operator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It installs the cluster.
    Initializing,
    /// It updates the cluster.
    Updating,
    /// It keeps the cluster as it is.
    Reconciling,
}

/// What a finding does to an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The update waits.
    None,
    /// It is reported only.
    Report,
    /// The update fails.
    Fail,
    /// The update fails if it lasts.
    FailAfterInterval,
}

/// Why a ClusterOperator is not what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The reason that the cluster-version operator reports.
    pub reason: &'static str,
    /// What it does.
    pub effect: Effect,
}

/// Judges a ClusterOperator, for which the payload expects these versions.
///
/// # Errors
/// With what the cluster-version operator reports.
pub fn judge(expected: &[OperandVersion], live: &ClusterOperatorStatus, mode: Mode) -> Result<(), Finding> {
    let finding = |reason, effect| Err(Finding { reason, effect });
    if expected.is_empty() {
        return finding("ClusterOperatorNoVersions", Effect::Fail);
    }
    // Available is False by default, Progressing and Degraded are True.
    let is_available = status(live, "Available") == Some("True");
    let is_degraded = status(live, "Degraded") != Some("False");
    if !is_available {
        return finding("ClusterOperatorNotAvailable", Effect::Fail);
    }
    let has = |version: &OperandVersion| live.versions.iter().any(|it| it == version);
    let is_undone = mode != Mode::Initializing && !expected.iter().all(has);
    match (is_undone, is_degraded, mode) {
        (_, true, Mode::Initializing) => finding("ClusterOperatorDegraded", Effect::Report),
        (_, true, _) => finding("ClusterOperatorDegraded", Effect::FailAfterInterval),
        (true, false, _) => finding("ClusterOperatorUpdating", Effect::None),
        (false, false, _) => Ok(()),
    }
}

/// Whether a ClusterOperator reports progress, which never stops an update.
pub fn is_progressing(live: &ClusterOperatorStatus) -> bool {
    status(live, "Progressing") != Some("False")
}

/// Whether a ClusterOperator permits an update to another minor version: a condition that is missing or unknown does.
///
/// # Errors
/// With the condition that forbids it.
pub fn permits_minor_update(live: &ClusterOperatorStatus) -> Result<(), &ClusterOperatorCondition> {
    let forbids = |it: &&ClusterOperatorCondition| it.kind == "Upgradeable" && it.status == "False";
    live.conditions.iter().find(forbids).map_or(Ok(()), Err)
}

fn status<'a>(live: &'a ClusterOperatorStatus, kind: &str) -> Option<&'a str> {
    live.conditions.iter().find(|condition| condition.kind == kind).map(|condition| condition.status.as_str())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn live(conditions: &[(&str, &str)], versions: &[&str]) -> ClusterOperatorStatus {
        let condition = |(kind, status): &(&str, &str)| ClusterOperatorCondition {
            kind: (*kind).to_owned(),
            status: (*status).to_owned(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            reason: "AsExpected".to_owned(),
            message: String::new(),
        };
        let conditions = conditions.iter().map(condition).collect();
        let versions = versions.iter().map(|version| operator(version)).collect();
        ClusterOperatorStatus { conditions, versions, ..ClusterOperatorStatus::default() }
    }

    fn operator(version: &str) -> OperandVersion {
        OperandVersion { name: "operator".to_owned(), version: version.to_owned() }
    }

    #[test]
    fn the_contract_decides() {
        let expected = [operator("2")];
        let (yes, no) = (("Available", "True"), ("Degraded", "False"));
        let (updating, initializing) = (Mode::Updating, Mode::Initializing);
        for (conditions, versions, mode, reason, effect) in [
            (&[] as &[_], &["2"] as &[_], updating, "ClusterOperatorNotAvailable", Effect::Fail),
            (&[("Available", "Unknown"), no], &["2"], initializing, "ClusterOperatorNotAvailable", Effect::Fail),
            (&[yes], &["2"], updating, "ClusterOperatorDegraded", Effect::FailAfterInterval),
            (&[yes], &["2"], Mode::Reconciling, "ClusterOperatorDegraded", Effect::FailAfterInterval),
            (&[yes, ("Degraded", "True")], &["2"], initializing, "ClusterOperatorDegraded", Effect::Report),
            (&[yes, no], &["1"], updating, "ClusterOperatorUpdating", Effect::None),
            (&[yes, no], &[], updating, "ClusterOperatorUpdating", Effect::None),
        ] {
            let found = judge(&expected, &live(conditions, versions), mode);
            assert_eq!(found, Err(Finding { reason, effect }), "{conditions:?} {versions:?} {mode:?}");
        }
        assert_eq!(judge(&expected, &live(&[yes, no], &["2"]), updating), Ok(()));
        assert_eq!(judge(&expected, &live(&[yes, no], &[]), initializing), Ok(()), "versions do not count then");
        let none = Finding { reason: "ClusterOperatorNoVersions", effect: Effect::Fail };
        assert_eq!(judge(&[], &live(&[yes, no], &["2"]), updating), Err(none));
    }

    #[test]
    fn only_a_false_condition_forbids_a_minor_update() {
        for (conditions, permits) in
            [(&[] as &[_], true), (&[("Upgradeable", "Unknown")], true), (&[("Upgradeable", "False")], false)]
        {
            assert_eq!(permits_minor_update(&live(conditions, &[])).is_ok(), permits, "{conditions:?}");
        }
        assert!(is_progressing(&live(&[], &[])) && !is_progressing(&live(&[("Progressing", "False")], &[])));
    }
}
