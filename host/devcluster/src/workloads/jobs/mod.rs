//! Jobs: Pods until enough have succeeded or too many have failed.

mod indexes;
mod status;

use std::time::Duration;

use serde_json::{Value, json};

use self::{
    indexes::Indexes,
    status::{Verdict, write_status},
};
use super::{
    action::{Action, Decision, Note},
    fields::{count, flag, list, number, text, time},
    kind::Kind,
    pods,
    rules::Step,
    template,
    world::World,
};
use crate::metadata;

const COMPONENT: &str = "job-controller";
const DEFAULT_BACKOFF_LIMIT: i64 = 6;
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A Job's Pods, counted.
struct Tally<'a> {
    active: Vec<&'a Value>,
    terminating: usize,
    succeeded: i64,
    failed: i64,
    /// The Pods that will have failed when all that run were stopped.
    failed_when_stopped: i64,
    /// The completed indexes of an indexed Job.
    indexes: Option<Indexes>,
}

impl<'a> Tally<'a> {
    fn of(world: &World<'a>, job: &Value) -> Self {
        let all = world.cache.controlled(Kind::Pod, metadata::uid(job));
        let all: Vec<&Value> = all.into_iter().map(AsRef::as_ref).collect();
        let in_phase = |phase: &'static str| all.iter().copied().filter(move |pod| text(pod, "/status/phase") == phase);
        let counted = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let indexes = is_indexed(job).then(|| {
            let mut indexes = Indexes::parse(text(job, "/status/completedIndexes"));
            indexes.extend(in_phase("Succeeded").filter_map(index));
            indexes
        });
        // Pods that were deleted since count on.
        let succeeded = counted(in_phase("Succeeded").count()).max(count(job, "/status/succeeded"));
        let known = count(job, "/status/failed");
        let ended = in_phase("Succeeded").chain(in_phase("Failed")).count();
        let unfinished = counted(all.len().saturating_sub(ended));
        let failed = counted(in_phase("Failed").count());
        Self {
            active: all.iter().copied().filter(|pod| pods::is_active(pod)).collect(),
            terminating: all.iter().filter(|pod| metadata::is_deleting(pod)).count(),
            failed_when_stopped: failed.saturating_add(unfinished).max(known),
            failed: failed.max(known),
            succeeded: indexes.as_ref().map_or(succeeded, Indexes::len),
            indexes,
        }
    }
}

fn is_indexed(job: &Value) -> bool {
    text(job, "/spec/completionMode") == "Indexed"
}

fn index(pod: &Value) -> Option<i64> {
    metadata::annotation(pod, INDEX)?.parse().ok()
}

pub(super) fn reconcile(world: &World<'_>, job: &Value) -> Decision {
    let mut decision = Decision::default();
    let managed = text(job, "/spec/managedBy");
    if metadata::is_deleting(job) || !(managed.is_empty() || managed == "kubernetes.io/job-controller") {
        return decision;
    }
    if let Some(ended) = status::end(job) {
        expire(world, job, ended, &mut decision);
        return decision;
    }
    let tally = Tally::of(world, job);
    let verdict = judge(world, job, &tally, &mut decision);
    match &verdict {
        Verdict::GoesOn => {}
        // Running Pods are stopped first.
        _ => tally.active.iter().for_each(|pod| delete(pod, &mut decision)),
    }
    let before = decision.actions.len();
    write_status(world, job, &tally, &verdict, &mut decision);
    // The status reports why Pods are deleted before they are.
    decision.actions.rotate_left(before);
    if verdict == Verdict::GoesOn {
        adjust(world, job, &tally, &mut decision);
    }
    decision
}

fn judge(world: &World<'_>, job: &Value, tally: &Tally<'_>, decision: &mut Decision) -> Verdict {
    if let Some(verdict) = status::announced(job) {
        return verdict;
    }
    let started = time(job, "/status/startTime");
    let deadline = number(job, "/spec/activeDeadlineSeconds").and_then(|seconds| u64::try_from(seconds).ok());
    let restarts: i64 = tally
        .active
        .iter()
        .flat_map(|pod| list(pod, "/status/containerStatuses"))
        .map(|container| count(container, "/restartCount"))
        .sum();
    let limit = number(job, "/spec/backoffLimit").unwrap_or(DEFAULT_BACKOFF_LIMIT);
    if tally.failed > limit || (restarts > 0 && restarts >= limit) {
        return Verdict::fails("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if let (Some(seconds), Some(_), false) = (deadline, started, flag(job, "/spec/suspend")) {
        let (deadline, waited) = (Duration::from_secs(seconds), world.since(started));
        if waited >= deadline {
            return Verdict::fails("DeadlineExceeded", "Job was active longer than specified deadline");
        }
        decision.look_again(deadline.saturating_sub(waited));
    }
    let is_enough = match number(job, "/spec/completions") {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    if is_enough {
        Verdict::Succeeds
    } else if flag(job, "/spec/suspend") {
        Verdict::Suspended
    } else {
        Verdict::GoesOn
    }
}

/// Creates the Pods that are missing and deletes those that are too many.
fn adjust(world: &World<'_>, job: &Value, tally: &Tally<'_>, decision: &mut Decision) {
    let parallelism = number(job, "/spec/parallelism").unwrap_or(1).max(0);
    let active = i64::try_from(tally.active.len()).unwrap_or(i64::MAX);
    let wanted = match number(job, "/spec/completions") {
        Some(completions) => parallelism.min(completions - tally.succeeded),
        None if tally.succeeded > 0 => active.min(parallelism),
        None => parallelism,
    };
    for pod in tally.active.iter().take(usize::try_from(active - wanted).unwrap_or(0)) {
        delete(pod, decision);
    }
    let missing = usize::try_from(wanted - active).unwrap_or(0);
    if missing == 0 {
        return;
    }
    if let Some(wait) = retry_after(world, job) {
        return decision.look_again(wait);
    }
    match &tally.indexes {
        None => (0..missing).for_each(|_| decision.push(create(job, None))),
        Some(completed) => {
            let taken: Vec<i64> = tally.active.iter().filter_map(|pod| index(pod)).collect();
            let open = (0..count(job, "/spec/completions"))
                .filter(|index| !completed.contains(*index) && !taken.contains(index));
            open.take(missing).for_each(|index| decision.push(create(job, Some(index))));
        }
    }
}

/// How long a Pod that failed keeps the next one waiting.
fn retry_after(world: &World<'_>, job: &Value) -> Option<Duration> {
    let delay = world.delay(Step::Retry, Kind::Job, job);
    let failed = world.living(Kind::Pod, job).into_iter().filter(|pod| text(pod, "/status/phase") == "Failed");
    let ended = failed
        .flat_map(|pod| list(pod, "/status/containerStatuses"))
        .filter_map(|container| time(container, "/state/terminated/finishedAt"))
        .max()?;
    let wait = delay.saturating_sub(world.since(Some(ended)));
    (!wait.is_zero()).then_some(wait)
}

fn delete(pod: &Value, decision: &mut Decision) {
    let message = format!("Deleted pod: {}", metadata::name(pod));
    decision.delete(Kind::Pod, pod, Some(Note::normal(COMPONENT, "SuccessfulDelete", message)));
}

fn create(job: &Value, index: Option<i64>) -> Action {
    let mut pod = template::pod(Kind::Job, job, job.pointer("/spec/template").unwrap_or(&Value::Null));
    if let Some(index) = index {
        let name = metadata::name(job);
        let fields = metadata::of(&mut pod);
        fields.insert("generateName".to_owned(), format!("{name}-{index}-").into());
        for place in ["annotations", "labels"] {
            metadata::child(fields, place).insert(INDEX.to_owned(), index.to_string().into());
        }
        let spec = metadata::child(metadata::as_map(&mut pod), "spec");
        spec.entry("hostname").or_insert_with(|| format!("{name}-{index}").into());
        let path = format!("metadata.labels['{INDEX}']");
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}});
        for containers in ["initContainers", "containers"] {
            let containers = spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers {
                let environment = metadata::as_map(container).entry("env").or_insert_with(|| json!([]));
                if let Some(environment) = environment.as_array_mut() {
                    environment.push(variable.clone());
                }
            }
        }
    }
    Action::Create {
        kind: Kind::Pod,
        object: pod,
        note: Some(Note::normal(COMPONENT, "SuccessfulCreate", "Created pod: {name}")),
        failure: Some(Note::warning(COMPONENT, "FailedCreate", "Error creating: {error}")),
    }
}

/// Deletes a Job that has ended when its time is over.
fn expire(world: &World<'_>, job: &Value, ended: Option<time::OffsetDateTime>, decision: &mut Decision) {
    let Some(seconds) = number(job, "/spec/ttlSecondsAfterFinished") else { return };
    let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let waited = world.since(ended);
    if waited >= lifetime {
        decision.delete(Kind::Job, job, None);
    } else {
        decision.look_again(lifetime.saturating_sub(waited));
    }
}

#[cfg(test)]
mod tests;
