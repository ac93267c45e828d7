//! A Job's counts and conditions.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{COMPONENT, Tally};
use crate::workloads::{
    action::{Decision, Note},
    conditions::Conditions,
    fields::{Status, condition, is_true, text, time},
    kind::Kind,
    pods,
    world::World,
};

const ENOUGH: (&str, &str) = ("CompletionsReached", "Reached expected number of succeeded pods");

/// The state of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    Suspended,
    Succeeds,
    Fails { reason: String, message: String },
}

impl Verdict {
    pub(super) fn fails(reason: &str, message: &str) -> Self {
        Self::Fails { reason: reason.to_owned(), message: message.to_owned() }
    }
}

/// When a Job ended, if it did; the time may be unknown.
#[expect(clippy::option_option, reason = "that it ended is known although the time may not be")]
pub(super) fn end(job: &Value) -> Option<Option<OffsetDateTime>> {
    let ended = ["Complete", "Failed"].into_iter().find(|condition_type| is_true(job, condition_type))?;
    Some(condition(job, ended).and_then(|condition| time(condition, "/lastTransitionTime")))
}

/// The verdict that was announced and waits for Pods to stop.
pub(super) fn announced(job: &Value) -> Option<Verdict> {
    if is_true(job, "FailureTarget") {
        let target = condition(job, "FailureTarget")?;
        return Some(Verdict::fails(text(target, "/reason"), text(target, "/message")));
    }
    is_true(job, "SuccessCriteriaMet").then_some(Verdict::Succeeds)
}

pub(super) fn write_status(
    world: &World<'_>,
    job: &Value,
    tally: &Tally<'_>,
    verdict: &Verdict,
    decision: &mut Decision,
) {
    let now = world.timestamp();
    let mut conditions = Conditions::of(job, &now, Some("lastProbeTime"));
    let is_idle = tally.active.is_empty() && tally.terminating == 0;
    let mut completed = None;
    let mut notes = Vec::new();
    let was_suspended = is_true(job, "Suspended");
    match verdict {
        Verdict::Suspended => {
            conditions.set("Suspended", "True", "JobSuspended", "Job suspended");
            notes.extend((!was_suspended).then(|| Note::normal(COMPONENT, "Suspended", "Job suspended")));
        }
        Verdict::GoesOn if was_suspended => {
            conditions.set("Suspended", "False", "JobResumed", "Job resumed");
            notes.push(Note::normal(COMPONENT, "Resumed", "Job resumed"));
        }
        Verdict::GoesOn => {}
        Verdict::Succeeds => {
            conditions.set("SuccessCriteriaMet", "True", ENOUGH.0, ENOUGH.1);
            if is_idle {
                conditions.set("Complete", "True", ENOUGH.0, ENOUGH.1);
                completed = Some(now.clone());
                notes.push(Note::normal(COMPONENT, "Completed", "Job completed"));
            }
        }
        Verdict::Fails { reason, message } => {
            conditions.set("FailureTarget", "True", reason, message);
            if is_idle {
                conditions.set("Failed", "True", reason, message);
                let reason = if reason == "DeadlineExceeded" { "DeadlineExceeded" } else { "BackoffLimitExceeded" };
                notes.push(Note::warning(COMPONENT, reason, message));
            }
        }
    }
    let started = Some(text(job, "/status/startTime")).filter(|time| !time.is_empty()).unwrap_or(&now);
    let started = (*verdict != Verdict::Suspended).then_some(started);
    let failed = if matches!(verdict, Verdict::Fails { .. }) { tally.failed_when_stopped } else { tally.failed };
    let counted = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let ready = tally.active.iter().filter(|pod| pods::is_ready(pod)).count();
    let indexes = tally.indexes.as_ref().map(ToString::to_string).filter(|indexes| !indexes.is_empty());
    let status = Status::default()
        .count("active", counted(tally.active.len()))
        .count("succeeded", tally.succeeded)
        .count("failed", failed)
        // Pointers in Go: not left out when zero.
        .set("ready", ready)
        .set("terminating", tally.terminating)
        .set("uncountedTerminatedPods", json!({}))
        .set_some("completedIndexes", indexes)
        .set_some("startTime", started)
        .set_some("completionTime", completed)
        .set_some("conditions", conditions.build());
    let before = decision.actions.len();
    decision.status(Kind::Job, job, &status.build());
    if decision.actions.len() > before {
        for note in notes {
            decision.record_event(note);
        }
    }
}
