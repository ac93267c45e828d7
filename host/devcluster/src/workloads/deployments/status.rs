//! A Deployment's counts and conditions.

use std::time::Duration;

use serde_json::Value;

use super::Rollout;
use crate::{
    metadata,
    workloads::{
        action::Decision,
        behaviour::Behaviour,
        conditions::Conditions,
        fields::{Status, condition, count, generation, number, replicas, text, time},
    },
};

/// The value that means no deadline.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// The result of a reconcile, as far as it affects conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The Deployment is paused.
    Paused,
    /// A ReplicaSet of this name is being created.
    Created(String),
    /// The name of the ReplicaSet is taken; the next try has this number.
    Collision(i64),
    /// A rollout makes progress or is complete.
    Rolling,
    /// No progress condition is set.
    Unknown,
}

#[derive(Debug)]
struct Counts {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
    unavailable: i64,
    terminating: i64,
}

impl Counts {
    fn of(rollout: &Rollout<'_>) -> Self {
        let sum = |read: &dyn Fn(&Value) -> i64| rollout.all().map(read).sum::<i64>();
        let available = sum(&|set| count(set, "/status/availableReplicas"));
        Self {
            replicas: sum(&|set| count(set, "/status/replicas")),
            updated: rollout.new.map_or(0, |set| count(set, "/status/replicas")),
            ready: sum(&|set| count(set, "/status/readyReplicas")),
            available,
            unavailable: (sum(&replicas) - available).max(0),
            terminating: sum(&|set| count(set, "/status/terminatingReplicas")),
        }
    }

    fn are_complete(&self, wanted: i64) -> bool {
        [self.updated, self.replicas, self.available].iter().all(|count| *count == wanted)
    }

    /// Whether more is updated, ready or available, or less is outdated, than in the status.
    fn are_better_than(&self, deployment: &Value) -> bool {
        let before = |field: &str| count(deployment, &format!("/status/{field}"));
        let outdated = before("replicas") - before("updatedReplicas");
        self.updated > before("updatedReplicas")
            || self.replicas - self.updated < outdated
            || self.ready > before("readyReplicas")
            || self.available > before("availableReplicas")
    }
}

/// Whether the last written status reports the rollout as complete.
pub(super) fn is_complete(rollout: &Rollout<'_>) -> bool {
    let deployment = rollout.deployment;
    Counts::of(rollout).are_complete(rollout.limits.replicas)
        && count(deployment, "/status/updatedReplicas") == rollout.limits.replicas
        && count(deployment, "/status/observedGeneration") >= generation(deployment)
}

pub(super) fn status(rollout: &Rollout<'_>, progress: Progress, decision: &mut Decision) -> Value {
    let deployment = rollout.deployment;
    let counts = Counts::of(rollout);
    let mut conditions = Conditions::of(deployment, &rollout.world.timestamp(), Some("lastUpdateTime"));
    if counts.available >= rollout.limits.replicas - rollout.limits.unavailable {
        conditions.set("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.");
    } else {
        let message = "Deployment does not have minimum availability.";
        conditions.set("Available", "False", "MinimumReplicasUnavailable", message);
    }
    let mut collisions = number(deployment, "/status/collisionCount");
    if let Progress::Collision(next) = progress {
        collisions = Some(next);
    }
    match deadline(deployment) {
        Some(deadline) => set_progress_condition(rollout, &counts, progress, deadline, &mut conditions, decision),
        None => conditions.remove("Progressing"),
    }
    match failure(rollout) {
        Some(failure) => conditions.put(failure),
        None => conditions.remove("ReplicaFailure"),
    }
    Status::observed(deployment)
        .count("replicas", counts.replicas)
        .count("updatedReplicas", counts.updated)
        .count("readyReplicas", counts.ready)
        .count("availableReplicas", counts.available)
        .count("unavailableReplicas", counts.unavailable)
        // A pointer in Go: not left out when zero.
        .set("terminatingReplicas", counts.terminating)
        .set_some("collisionCount", collisions)
        .set_some("conditions", conditions.build())
        .build()
}

fn deadline(deployment: &Value) -> Option<i64> {
    number(deployment, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds != NO_DEADLINE)
}

fn set_progress_condition(
    rollout: &Rollout<'_>,
    counts: &Counts,
    progress: Progress,
    deadline: i64,
    conditions: &mut Conditions,
    decision: &mut Decision,
) {
    let deployment = rollout.deployment;
    let set = |what: &str, otherwise: &str| match rollout.new {
        Some(new) => format!("ReplicaSet {:?} {what}", metadata::name(new)),
        None => format!("Deployment {:?} {otherwise}", metadata::name(deployment)),
    };
    let reason = conditions.reason("Progressing").to_owned();
    match (progress, reason.as_str()) {
        // A lack of progress that was reported stays so.
        (Progress::Paused, "ProgressDeadlineExceeded") => return,
        (Progress::Paused, _) => {
            return conditions.set("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused");
        }
        (_, "DeploymentPaused") => {
            return conditions.set("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed");
        }
        (Progress::Created(name), _) => {
            if let Some(why) = rollout.refusal() {
                let message = format!("Failed to create new replica set {name:?}: {why}");
                conditions.set("Progressing", "False", "ReplicaSetCreateError", &message);
            } else {
                let message = format!("Created new replica set {name:?}");
                conditions.set("Progressing", "True", "NewReplicaSetCreated", &message);
            }
            return;
        }
        (_, "") => {
            if let Some(new) = rollout.new {
                let message = format!("Found new replica set {:?}", metadata::name(new));
                conditions.set("Progressing", "True", "FoundNewReplicaSet", &message);
            }
        }
        (Progress::Rolling, _) => {}
        (Progress::Unknown | Progress::Collision(_), _) => return,
    }
    if counts.replicas == counts.updated && reason == "NewReplicaSetAvailable" {
        return;
    }
    if counts.are_complete(rollout.limits.replicas) && rollout.new.is_some() {
        let message = set("has successfully progressed.", "has successfully progressed.");
        conditions.set("Progressing", "True", "NewReplicaSetAvailable", &message);
    } else if counts.are_better_than(deployment) {
        let message = set("is progressing.", "is progressing.");
        conditions.renew("Progressing", "True", "ReplicaSetUpdated", &message);
    } else {
        watch_deadline(
            rollout,
            deadline,
            conditions,
            decision,
            &set("has timed out progressing.", "has timed out progressing."),
        );
    }
}

/// Reports that the deadline has passed, or looks again when it will have.
fn watch_deadline(
    rollout: &Rollout<'_>,
    deadline: i64,
    conditions: &mut Conditions,
    decision: &mut Decision,
    message: &str,
) {
    if conditions.reason("Progressing") == "ProgressDeadlineExceeded" {
        return;
    }
    let Some(progressing) = conditions.get("Progressing") else { return };
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
    let waited = rollout.world.since(time(progressing, "/lastUpdateTime"));
    // A simulated failure exceeds the deadline at once.
    if waited > deadline || fails(rollout) {
        conditions.set("Progressing", "False", "ProgressDeadlineExceeded", message);
    } else {
        // A second more: times in objects are whole seconds.
        decision.look_again(deadline.saturating_sub(waited) + Duration::from_secs(1));
    }
}

fn fails(rollout: &Rollout<'_>) -> bool {
    let unready = rollout.new.is_some_and(|new| count(new, "/status/readyReplicas") < replicas(new));
    unready && rollout.behaviour() == Behaviour::Fail
}

/// The failure of a ReplicaSet; the current one comes first.
fn failure(rollout: &Rollout<'_>) -> Option<Value> {
    let found = rollout.new.into_iter().chain(rollout.old.iter().copied());
    let failure = found.into_iter().find_map(|set| condition(set, "ReplicaFailure"))?;
    let mut failure = failure.clone();
    let time = text(&failure, "/lastTransitionTime").to_owned();
    metadata::as_map(&mut failure).insert("lastUpdateTime".to_owned(), time.into());
    Some(failure)
}
