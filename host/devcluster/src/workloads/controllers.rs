//! Statuses of what runs Pods.

use serde_json::{Map, Value, json};

use super::{behaviour::Behaviour, conditions::Conditions};
use crate::metadata;

/// A status; zero counts are left out, as Go's `omitempty` does.
#[derive(Default)]
struct Status(Map<String, Value>);

impl Status {
    /// A status of the present generation.
    fn observed(object: &Value) -> Self {
        Self::default()
            .set("observedGeneration", object.pointer("/metadata/generation").cloned().unwrap_or_else(|| 1.into()))
    }

    fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0.insert(field.to_owned(), value.into());
        self
    }

    fn count(self, field: &str, count: i64) -> Self {
        if count == 0 { self } else { self.set(field, count) }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the last step of functions that may have nothing to say")]
    fn build(self) -> Option<Value> {
        Some(Value::Object(self.0))
    }
}

fn number(object: &Value, pointer: &str, default: i64) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default)
}

fn replicas(object: &Value) -> i64 {
    number(object, "/spec/replicas", 1).max(0)
}

pub(super) fn deployment(object: &Value, now: &str) -> Option<Value> {
    let wanted = replicas(object);
    let name = metadata::name(object);
    let conditions = Conditions::new(object, now, Some("lastUpdateTime"));
    let behaviour = Behaviour::of(object);
    if behaviour.is_healthy() || wanted == 0 {
        let conditions = conditions
            .with("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
            .with(
                "Progressing",
                "True",
                "NewReplicaSetAvailable",
                &format!("Deployment {name:?} has successfully progressed."),
            );
        return Status::observed(object)
            .count("replicas", wanted)
            .count("updatedReplicas", wanted)
            .count("readyReplicas", wanted)
            .count("availableReplicas", wanted)
            .set("conditions", conditions.build())
            .build();
    }
    // What an earlier release brought up keeps running while the new one does not come up.
    let running = number(object, "/status/availableReplicas", 0).min(wanted);
    let conditions = if running > 0 {
        conditions.with("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        conditions.with(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let conditions = if behaviour == Behaviour::Fail {
        let message = format!("Deployment {name:?} has timed out progressing.");
        conditions.with("Progressing", "False", "ProgressDeadlineExceeded", &message)
    } else {
        conditions.with("Progressing", "True", "ReplicaSetUpdated", &format!("Deployment {name:?} is progressing."))
    };
    let updated = if running > 0 { 1 } else { wanted };
    Status::observed(object)
        .count("replicas", running + updated)
        .count("updatedReplicas", updated)
        .count("readyReplicas", running)
        .count("availableReplicas", running)
        .count("unavailableReplicas", updated)
        .set("conditions", conditions.build())
        .build()
}

pub(super) fn replica_set(object: &Value, _now: &str) -> Option<Value> {
    let wanted = replicas(object);
    let ready = if Behaviour::of(object).is_healthy() { wanted } else { 0 };
    Status::observed(object)
        // Not left out when zero: the field is required.
        .set("replicas", wanted)
        .count("fullyLabeledReplicas", wanted)
        .count("readyReplicas", ready)
        .count("availableReplicas", ready)
        .build()
}

pub(super) fn stateful_set(object: &Value, _now: &str) -> Option<Value> {
    let wanted = replicas(object);
    let revision = format!("{}-{}", metadata::name(object), number(object, "/metadata/generation", 1));
    let status = Status::observed(object).set("updateRevision", revision.as_str()).set("collisionCount", 0);
    if Behaviour::of(object).is_healthy() || wanted == 0 {
        return status
            .set("replicas", wanted)
            .count("currentReplicas", wanted)
            .count("updatedReplicas", wanted)
            .count("readyReplicas", wanted)
            // Required as well.
            .set("availableReplicas", wanted)
            .set("currentRevision", revision)
            .build();
    }
    // Pods come up one after the other: the first one holds up the others.
    status.set("replicas", 1).set("currentReplicas", 1).set("updatedReplicas", 1).set("availableReplicas", 0).build()
}

pub(super) fn daemon_set(object: &Value, _now: &str) -> Option<Value> {
    let ready = i64::from(Behaviour::of(object).is_healthy());
    Status::observed(object)
        .set("desiredNumberScheduled", 1)
        .set("currentNumberScheduled", 1)
        .set("updatedNumberScheduled", 1)
        .set("numberMisscheduled", 0)
        .set("numberReady", ready)
        .count("numberAvailable", ready)
        .count("numberUnavailable", 1 - ready)
        .build()
}

pub(super) fn job(object: &Value, now: &str) -> Option<Value> {
    let ended = |condition: &Value| {
        matches!(condition.get("type").and_then(Value::as_str), Some("Complete" | "Failed"))
            && condition.get("status").and_then(Value::as_str) == Some("True")
    };
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    if conditions.into_iter().any(ended) {
        // A Job ends once.
        return None;
    }
    let conditions = Conditions::new(object, now, Some("lastProbeTime"));
    if object.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        let conditions = conditions.with("Suspended", "True", "JobSuspended", "Job suspended");
        return Status::default().set("conditions", conditions.build()).build();
    }
    let started = object.pointer("/status/startTime").and_then(Value::as_str).unwrap_or(now);
    let status = Status::default().set("startTime", started).set("ready", 0).set("terminating", 0);
    match Behaviour::of(object) {
        Behaviour::Healthy => {
            let message = "Reached expected number of succeeded pods";
            let conditions = conditions.with("SuccessCriteriaMet", "True", "CompletionsReached", message).with(
                "Complete",
                "True",
                "CompletionsReached",
                message,
            );
            status
                .set("completionTime", now)
                .set("succeeded", number(object, "/spec/completions", 1))
                .set("uncountedTerminatedPods", json!({}))
                .set("conditions", conditions.build())
                .build()
        }
        Behaviour::Fail | Behaviour::CrashLoop => {
            let message = "Job has reached the specified backoff limit";
            let conditions = conditions.with("FailureTarget", "True", "BackoffLimitExceeded", message).with(
                "Failed",
                "True",
                "BackoffLimitExceeded",
                message,
            );
            status
                .set("failed", number(object, "/spec/backoffLimit", 6) + 1)
                .set("uncountedTerminatedPods", json!({}))
                .set("conditions", conditions.build())
                .build()
        }
        Behaviour::Stall | Behaviour::ImagePull => status.set("active", number(object, "/spec/parallelism", 1)).build(),
    }
}

pub(super) fn pod(object: &Value, now: &str) -> Option<Value> {
    let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    if matches!(phase, "Succeeded" | "Failed") {
        return None;
    }
    let behaviour = Behaviour::of(object);
    let started = object.pointer("/status/startTime").and_then(Value::as_str).unwrap_or(now);
    let ready = behaviour.is_healthy();
    let truth = if ready { "True" } else { "False" };
    let reason = if ready { "" } else { "ContainersNotReady" };
    let conditions = Conditions::new(object, now, None)
        .with("PodScheduled", "True", "", "")
        .with("Initialized", "True", "", "")
        .with("ContainersReady", truth, reason, "")
        .with("Ready", truth, reason, "");
    let state = match behaviour {
        Behaviour::Healthy => json!({"running": {"startedAt": started}}),
        Behaviour::Fail => json!({"terminated": {"exitCode": 1, "reason": "Error"}}),
        Behaviour::CrashLoop => {
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}})
        }
        Behaviour::ImagePull => json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}),
        Behaviour::Stall => json!({"waiting": {"reason": "ContainerCreating"}}),
    };
    let containers = object.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    let statuses = containers.map(|container| {
        let image = container.get("image").cloned().unwrap_or_else(|| "".into());
        json!({
            "name": container.get("name"), "image": image, "imageID": "", "ready": ready, "started": ready,
            "restartCount": i64::from(behaviour == Behaviour::CrashLoop), "state": state,
        })
    });
    let phase = match behaviour {
        Behaviour::Healthy | Behaviour::CrashLoop => "Running",
        Behaviour::Fail => "Failed",
        Behaviour::Stall | Behaviour::ImagePull => "Pending",
    };
    let mut status = Status::default()
        .set("phase", phase)
        .set("startTime", started)
        .set("conditions", conditions.build())
        .set("containerStatuses", statuses.collect::<Vec<_>>());
    if let Some(quality) = object.pointer("/status/qosClass") {
        status = status.set("qosClass", quality.clone());
    }
    status.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::ANNOTATION;

    fn object(annotation: &str) -> Value {
        json!({"metadata": {"name": "web", "generation": 2, "annotations": {ANNOTATION: annotation}}, "spec": {"replicas": 2}})
    }

    fn condition<'a>(status: &'a Value, condition_type: &str) -> &'a Value {
        status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == condition_type).unwrap()
    }

    #[test]
    fn a_deployment_becomes_available_unless_told_otherwise() {
        let healthy = deployment(&object(""), "t").unwrap();
        assert_eq!(healthy["availableReplicas"], 2);
        assert_eq!(healthy["observedGeneration"], 2);
        assert_eq!(condition(&healthy, "Available")["status"], "True");

        let stalled = deployment(&object("stall"), "t").unwrap();
        assert_eq!(stalled.get("availableReplicas"), None);
        assert_eq!(stalled["unavailableReplicas"], 2);
        assert_eq!(condition(&stalled, "Progressing")["status"], "True");

        let failed = deployment(&object("fail"), "t").unwrap();
        assert_eq!(condition(&failed, "Progressing")["reason"], "ProgressDeadlineExceeded");
    }

    #[test]
    fn a_release_that_does_not_come_up_leaves_the_earlier_one_running() {
        let mut deployed = object("stall");
        deployed["status"] = deployment(&object(""), "t").unwrap();
        let status = deployment(&deployed, "t").unwrap();
        assert_eq!(
            (&status["availableReplicas"], &status["updatedReplicas"], &status["replicas"]),
            (&2.into(), &1.into(), &3.into())
        );
        assert_eq!(condition(&status, "Available")["status"], "True");
    }

    #[test]
    fn a_job_ends_once() {
        let mut done = object("");
        done["status"] = job(&done, "t").unwrap();
        assert_eq!(condition(&done["status"], "Complete")["status"], "True");
        assert_eq!(job(&done, "t2"), None);
        assert_eq!(condition(&job(&object("fail"), "t").unwrap(), "Failed")["reason"], "BackoffLimitExceeded");
        assert_eq!(job(&object("stall"), "t").unwrap()["active"], 1);
    }
}
