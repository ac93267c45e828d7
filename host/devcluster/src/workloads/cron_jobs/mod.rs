//! CronJobs: Jobs on a schedule.

mod schedule;

use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;

use self::schedule::Schedule;
use super::{
    action::{Action, Decision, Note},
    fields::{Status, condition, controller_reference, flag, is_true, map, number, text, time},
    kind::{Key, Kind},
    world::World,
};
use crate::{clock, metadata};

const COMPONENT: &str = "cronjob-controller";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
const UTC: &[&str] = &["", "UTC", "Etc/UTC"];

pub(super) fn reconcile(world: &World<'_>, cron_job: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(cron_job) {
        return decision;
    }
    let jobs = world.living(Kind::Job, cron_job);
    let zone = text(cron_job, "/spec/timeZone");
    let schedule = match Schedule::parse(text(cron_job, "/spec/schedule")) {
        Ok(schedule) if UTC.contains(&zone) => Some(schedule),
        // Recorded as an Event only when the CronJob changes: nothing else triggers this code again.
        Ok(_) => {
            let message = format!("invalid timeZone: {zone:?}: only UTC is simulated");
            decision.record_event(Note::warning(COMPONENT, "UnknownTimeZone", message));
            None
        }
        Err(why) => {
            let message = format!("unparseable schedule: {:?} : {why}", text(cron_job, "/spec/schedule"));
            decision.record_event(Note::warning(COMPONENT, "UnparseableSchedule", message));
            None
        }
    };
    let mut last = time(cron_job, "/status/lastScheduleTime");
    if let Some(schedule) = schedule.filter(|_| !flag(cron_job, "/spec/suspend")) {
        start(world, cron_job, &jobs, schedule, &mut last, &mut decision);
    }
    write_status(cron_job, &jobs, last, &mut decision);
    clean_up(cron_job, &jobs, &mut decision);
    decision
}

/// Creates the Job whose time has come; earlier ones that were missed are passed over.
fn start(
    world: &World<'_>,
    cron_job: &Value,
    jobs: &[&Value],
    schedule: Schedule,
    last: &mut Option<OffsetDateTime>,
    decision: &mut Decision,
) {
    if let Some(next) = schedule.next(world.now)
        && let Ok(wait) = Duration::try_from(next - world.now)
    {
        decision.look_again(wait.max(Duration::from_millis(1)));
    }
    let since = last.or_else(|| time(cron_job, "/metadata/creationTimestamp")).unwrap_or(world.now);
    let Some(due) = schedule.latest(since, world.now) else { return };
    let deadline = number(cron_job, "/spec/startingDeadlineSeconds").and_then(|seconds| u64::try_from(seconds).ok());
    if deadline.is_some_and(|seconds| world.since(Some(due)) > Duration::from_secs(seconds)) {
        let message = format!("Missed scheduled time to start a job: {}", clock::seconds(due));
        decision.record_event(Note::warning(COMPONENT, "MissSchedule", message));
        *last = Some(due);
        return;
    }
    let active: Vec<&Value> = jobs.iter().copied().filter(|job| !has_ended(job)).collect();
    match text(cron_job, "/spec/concurrencyPolicy") {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            return decision.record_event(Note::normal(COMPONENT, "JobAlreadyActive", message));
        }
        "Replace" => active.into_iter().for_each(|job| delete(job, decision)),
        _ => {}
    }
    let name = format!("{}-{}", metadata::name(cron_job), due.unix_timestamp() / 60);
    if world.cache.get(&Key::new(Kind::Job, metadata::namespace(cron_job), &name)).is_none() {
        decision.push(create(cron_job, &name, due));
    }
    *last = Some(due);
}

fn create(cron_job: &Value, name: &str, due: OffsetDateTime) -> Action {
    let template = cron_job.pointer("/spec/jobTemplate").cloned().unwrap_or_default();
    let mut annotations = map(&template, "/metadata/annotations");
    annotations.insert(SCHEDULED.to_owned(), clock::seconds(due).into());
    let object = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": metadata::namespace(cron_job),
            "labels": map(&template, "/metadata/labels"), "annotations": annotations,
            "ownerReferences": [controller_reference(Kind::CronJob, cron_job)],
        },
        "spec": map(&template, "/spec"),
    });
    Action::Create {
        kind: Kind::Job,
        object,
        note: Some(Note::normal(COMPONENT, "SuccessfulCreate", "Created job {name}")),
        failure: Some(Note::warning(COMPONENT, "FailedCreate", "Error creating job: {error}")),
    }
}

fn delete(job: &Value, decision: &mut Decision) {
    let message = format!("Deleted job {}", metadata::name(job));
    decision.delete(Kind::Job, job, Some(Note::normal(COMPONENT, "SuccessfulDelete", message)));
}

fn has_ended(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

fn write_status(cron_job: &Value, jobs: &[&Value], last: Option<OffsetDateTime>, decision: &mut Decision) {
    let active: Vec<Value> = jobs
        .iter()
        .filter(|job| !has_ended(job))
        .map(|job| {
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "name": metadata::name(job),
                "namespace": metadata::namespace(job), "uid": metadata::uid(job),
            })
        })
        .collect();
    let completed = jobs.iter().filter(|job| is_true(job, "Complete"));
    let successful = completed.filter_map(|job| time(job, "/status/completionTime")).max();
    let known = time(cron_job, "/status/lastSuccessfulTime");
    let status = Status::default()
        .set_some("active", (!active.is_empty()).then_some(active))
        .set_some("lastScheduleTime", last.map(clock::seconds))
        .set_some("lastSuccessfulTime", successful.max(known).map(clock::seconds));
    decision.status(Kind::CronJob, cron_job, &status.build());
}

/// Deletes the oldest Jobs that have ended beyond the limits.
fn clean_up(cron_job: &Value, jobs: &[&Value], decision: &mut Decision) {
    for (condition_type, field, default) in
        [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
    {
        let limit = number(cron_job, &format!("/spec/{field}")).unwrap_or(default);
        let mut ended: Vec<&&Value> = jobs.iter().filter(|job| is_true(job, condition_type)).collect();
        ended.sort_by_key(|job| {
            let ended = condition(job, condition_type).map(|condition| text(condition, "/lastTransitionTime"));
            (ended.unwrap_or_default(), metadata::name(job))
        });
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        ended.into_iter().take(surplus).for_each(|job| delete(job, decision));
    }
}
