//! The status of a Catalog, ProvisionerClass, PlatformOperator, PlatformPolicy, Receiver or Alert, for `chandler status`: fields, conditions and suggested
//! actions.

mod details;

use std::fmt::Write as _;

use chandler_api::{
    Alert, Catalog, ConditionType, PlatformOperator, PlatformPolicy, ProvisionerClass, Reason, Receiver, Remedy,
    ReportingKind, find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::Serialize;

pub use self::details::Details;
use super::{
    advice::{advice, is_copied},
    conditions,
    overview::Decision,
    progress_reporter::RolloutState,
    subject::Subject,
    table::cut_middle,
    terminal::{Frame, Tone},
    text::one_line,
};

/// The width of the labels.
const LABEL: usize = 12;

/// An object whose status is its conditions and a few fields.
pub trait Reported {
    /// Its kind.
    const KIND: ReportingKind;
    /// The condition that summarizes the others.
    const SUMMARY: &'static str;

    /// The metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The conditions, and the generation that they describe.
    fn observed(&self) -> (&[Condition], Option<i64>);
    /// The fields that are shown.
    fn details(&self) -> Details;
}

macro_rules! reported {
    ($($kind:ident: $summary:expr, $details:path;)+) => {
        $(impl Reported for $kind {
            const KIND: ReportingKind = ReportingKind::$kind;
            const SUMMARY: &'static str = $summary.as_str();

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn observed(&self) -> (&[Condition], Option<i64>) {
                self.status.as_ref().map_or((&[], None), |status| (&status.conditions, status.observed_generation))
            }

            fn details(&self) -> Details {
                $details(self)
            }
        })+
    };
}

reported! {
    Catalog: ConditionType::Ready, details::of_catalog;
    ProvisionerClass: ConditionType::Ready, details::of_class;
    PlatformOperator: ConditionType::Installed, details::of_operator;
    PlatformPolicy: ConditionType::Accepted, details::of_policy;
    Receiver: ConditionType::Ready, details::of_receiver;
    Alert: ConditionType::Ready, details::of_alert;
}

/// The status of such an object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedStatus {
    /// The kind.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// Whether the condition that summarizes the others is True for the current generation.
    pub healthy: bool,
    /// Whether a user or an administrator has to act, since retries will not help.
    pub needs_action: bool,
    /// Whether the controller has observed the current generation.
    pub up_to_date: bool,
    /// The fields of this kind.
    #[serde(flatten)]
    pub details: Details,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Suggested actions.
    pub next_steps: Vec<String>,
    #[serde(skip)]
    summary: Option<Condition>,
    #[serde(skip)]
    shown: String,
}

impl ReportedStatus {
    /// The status of an object.
    pub fn new<K: Reported>(object: &K) -> Self {
        let name = object.metadata().name.clone().unwrap_or_default();
        let subject = Subject::new(K::KIND, &name);
        let (conditions, observed) = object.observed();
        let up_to_date = observed.is_some() && observed >= object.metadata().generation;
        let summary = conditions.iter().find(|condition| condition.type_ == K::SUMMARY);
        let healthy = up_to_date && summary.is_some_and(|summary| summary.status == "True");
        let mut next_steps: Vec<String> = Vec::new();
        if !up_to_date || summary.is_none() {
            next_steps.push(
                "check that the controller is running, and that its --watch-selector selects the object: it has not observed the current \
                 generation"
                    .to_owned(),
            );
        }
        for reason in causes(conditions, K::SUMMARY) {
            next_steps.extend(advice(reason, &subject).filter(|step| !next_steps.contains(step)));
        }
        Self {
            kind: K::KIND.as_str(),
            healthy,
            needs_action: up_to_date && !healthy && needs_action(conditions, summary),
            up_to_date,
            details: object.details(),
            conditions: conditions.to_vec(),
            next_steps,
            summary: summary.cloned(),
            shown: subject.to_string(),
            name,
        }
    }

    /// The state, for commands that follow the object.
    pub fn state(&self) -> RolloutState {
        let (reason, message) = match &self.summary {
            Some(summary) if self.up_to_date => (Some(summary.reason.clone()), summary.message.clone()),
            _ => (None, "the controller has not observed the current spec yet".to_owned()),
        };
        match (self.healthy, self.only_waits(), self.needs_action) {
            (true, ..) => RolloutState::Healthy,
            (false, true, _) => RolloutState::Paused { decision: Decision::Resume, message },
            (false, false, true) => {
                RolloutState::Failed { reason: reason.unwrap_or_default(), message, runs: None, is_retried: false }
            }
            (false, false, false) => RolloutState::Waiting { message, reason },
        }
    }

    /// Whether it is not ready only because it is suspended.
    pub fn only_waits(&self) -> bool {
        let reason = self.summary.as_ref().filter(|_| self.up_to_date).map(|summary| summary.reason.as_str());
        !self.healthy && reason == Some(Reason::Suspended.as_str())
    }

    /// Whether it is ready with what its source names.
    pub fn is_current(&self) -> bool {
        self.healthy && !self.uses_earlier_content()
    }

    /// Whether earlier content is in use, because the newest is not available or not valid.
    pub fn uses_earlier_content(&self) -> bool {
        let reason = self.summary.as_ref().and_then(|summary| Reason::from_name(&summary.reason));
        matches!(reason, Some(Reason::CatalogStale | Reason::UpdateFailed))
    }

    /// The message of the condition that summarizes the others.
    pub fn message(&self) -> String {
        self.summary.as_ref().map(|summary| one_line(&summary.message)).unwrap_or_default()
    }

    /// The status as text. In a width, long fields are cut in the middle, so that each stays on its line.
    pub fn text(&self, frame: impl Into<Frame>) -> String {
        let Frame { width, look } = frame.into();
        let mut text = String::new();
        let keep = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2).max(LABEL));
        // Writing to a string cannot fail.
        for (label, value) in std::iter::once(("name", self.shown.clone())).chain(self.details.rows()) {
            let _ = writeln!(text, "{label:<LABEL$}  {}", cut_middle(&one_line(&value), keep));
        }
        conditions::write(&mut text, &self.conditions, look);
        if !self.next_steps.is_empty() {
            text.push_str("\nsuggested actions\n");
        }
        for step in &self.next_steps {
            let _ = writeln!(text, "  - {}", one_line(step));
        }
        let (tone, state) = match (self.healthy, self.needs_action) {
            (true, _) if self.uses_earlier_content() => (Tone::Busy, "ready, with an earlier version"),
            (true, _) => (Tone::Good, "ready"),
            (false, true) => (Tone::Bad, "not ready, needs action"),
            (false, false) => (Tone::Busy, "not ready"),
        };
        let _ = writeln!(text, "\n{}", look.paint(tone, state));
        text
    }
}

/// The reasons that have suggested actions, each once. Where a step has the cause, the summary of the steps only repeats that there is one.
fn causes(conditions: &[Condition], summary: &str) -> Vec<Reason> {
    let of = |condition: &Condition| {
        let reason = Reason::from_name(&condition.reason)?;
        (reason.remedy() != Remedy::Nothing && condition.status != "Unknown").then_some(reason)
    };
    let steps = conditions.iter().filter(|condition| condition.type_ != summary && condition.status == "False");
    let mut reasons: Vec<Reason> = Vec::new();
    for reason in steps.filter_map(of) {
        reasons.extend(Some(reason).filter(|reason| !reasons.contains(reason)));
    }
    let summary = conditions.iter().find(|condition| condition.type_ == summary).and_then(of);
    let is_new = |reason: &Reason| {
        let repeats = matches!(reason, Reason::CatalogStale | Reason::UpdateFailed) && !reasons.is_empty();
        !reasons.contains(reason) && !repeats
    };
    let summary = summary.filter(is_new);
    reasons.extend(summary);
    reasons
}

/// Whether a user or an administrator has to act. A kind without `Stalled` says so with its reason.
fn needs_action(conditions: &[Condition], summary: Option<&Condition>) -> bool {
    if find_condition(conditions, ConditionType::Stalled).is_some_and(|stalled| stalled.status == "True") {
        return true;
    }
    let is_in_progress = find_condition(conditions, ConditionType::Reconciling).is_some();
    let reason = summary.and_then(|summary| Reason::from_name(&summary.reason));
    reason.is_some_and(|reason| {
        // A BundleDeployment whose requirement is missing continues by itself once that appears.
        let continues = reason.remedy() == Remedy::Requirement && is_copied(reason, ReportingKind::PlatformOperator);
        !is_in_progress && !reason.remedy().time_may_help() && !continues
    })
}

#[cfg(test)]
mod tests;
