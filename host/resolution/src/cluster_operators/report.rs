//! The conditions of a status, with the times at which they last changed.

use chandler_api::{
    ClusterOperatorCondition, ClusterOperatorStatus, OperandVersion, RelatedObject,
    conditions::{bounded_message, whole_seconds},
};
use k8s_openapi::jiff::Timestamp;

pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const DEGRADED: &str = "Degraded";
pub(crate) const UPGRADEABLE: &str = "Upgradeable";
/// Everything is as it is to be.
pub(crate) const AS_EXPECTED: &str = "AsExpected";
/// The name of the version of the operator itself.
pub(crate) const OPERATOR: &str = "operator";

/// Whether a condition holds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Verdict {
    pub(crate) fn yes(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: true, reason, message: message.into() }
    }

    pub(crate) fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: false, reason, message: message.into() }
    }
}

/// What a ClusterOperator reports.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) available: Verdict,
    pub(crate) progressing: Verdict,
    pub(crate) degraded: Verdict,
    pub(crate) upgradeable: Verdict,
    /// The version that is completely rolled out; none leaves what was reported before.
    pub(crate) version: Option<String>,
    pub(crate) related: Vec<RelatedObject>,
}

impl Report {
    /// The status after this report. What other writers added stays.
    pub(crate) fn status(self, before: Option<&ClusterOperatorStatus>, now: Timestamp) -> ClusterOperatorStatus {
        let verdicts = [
            (AVAILABLE, self.available),
            (PROGRESSING, self.progressing),
            (DEGRADED, self.degraded),
            (UPGRADEABLE, self.upgradeable),
        ];
        let own = verdicts.map(|(kind, verdict)| condition(kind, verdict, find(before, kind), now));
        let mut status = before.cloned().unwrap_or_default();
        let others = std::mem::take(&mut status.conditions).into_iter().filter(|condition| !is_own(&condition.kind));
        status.conditions = own.into_iter().chain(others).collect();
        if let Some(version) = self.version {
            status.versions = vec![OperandVersion { name: OPERATOR.to_owned(), version }];
        }
        status.related_objects = self.related;
        status
    }
}

/// The status that the proxy wrote last, with what other writers have added to it since.
pub fn continued(written: &ClusterOperatorStatus, live: &ClusterOperatorStatus) -> ClusterOperatorStatus {
    let mut status = written.clone();
    status.conditions.retain(|condition| is_own(&condition.kind));
    status.conditions.extend(live.conditions.iter().filter(|condition| !is_own(&condition.kind)).cloned());
    status.extension.clone_from(&live.extension);
    status
}

fn is_own(kind: &str) -> bool {
    [AVAILABLE, PROGRESSING, DEGRADED, UPGRADEABLE].contains(&kind)
}

/// A condition of a status.
pub(crate) fn find<'a>(status: Option<&'a ClusterOperatorStatus>, kind: &str) -> Option<&'a ClusterOperatorCondition> {
    status?.conditions.iter().find(|condition| condition.kind == kind)
}

fn condition(
    kind: &str,
    verdict: Verdict,
    before: Option<&ClusterOperatorCondition>,
    now: Timestamp,
) -> ClusterOperatorCondition {
    let status = if verdict.holds { "True" } else { "False" };
    let last_transition_time = match before {
        Some(before) if before.status == status => before.last_transition_time.clone(),
        // A clock that goes back must not make a change older than the one before.
        Some(before) => whole_seconds(now.max(before.last_transition_time.0)),
        None => whole_seconds(now),
    };
    ClusterOperatorCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time,
        reason: verdict.reason.to_owned(),
        message: bounded_message(&verdict.message),
    }
}

/// One sentence for one object; a heading and a line each for several.
pub(crate) fn lines(one: impl Fn(&str) -> String, many: &str, lines: &[(String, String)]) -> String {
    match lines {
        [(name, line)] => sentence(&format!("{} {line}", one(name))),
        lines => {
            let each: Vec<String> = lines.iter().map(|(name, line)| format!("\n- {name} {line}")).collect();
            format!("{many}:{}", each.concat())
        }
    }
}

/// One sentence for each object, with a line each for several.
pub(crate) fn sentences(of: &[(String, String)]) -> String {
    of.iter().map(|(_, text)| sentence(text)).collect::<Vec<_>>().join("\n")
}

/// The text with a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}
