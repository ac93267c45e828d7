//! Workloads: what runs pods.

use serde_json::Value;

use crate::health::{Health, Reader};

/// What a workload's fields must reach, in the order in which kstatus looks at them.
fn behind(label: &str, have: i64, want: i64) -> Option<Health> {
    (have < want).then(|| Health::InProgress(format!("{label}: {have}/{want}")))
}

fn surplus(have: i64, want: i64) -> Option<Health> {
    (have > want).then(|| Health::InProgress(format!("Pending termination: {}", have - want)))
}

fn first(checks: impl IntoIterator<Item = Option<Health>>) -> Health {
    checks.into_iter().flatten().next().unwrap_or(Health::Current)
}

fn waiting(condition: bool, message: &str) -> Option<Health> {
    condition.then(|| Health::InProgress(message.to_owned()))
}

pub(crate) fn deployment(object: Reader<'_>) -> Health {
    if object.conditions().any(|c| c.kind == "Progressing" && c.reason == "ProgressDeadlineExceeded") {
        return Health::Failed("Progress deadline exceeded".to_owned());
    }
    // Without a deadline (or with the largest, which switches it off) the controller does not report progress.
    let deadline = object.number("/spec/progressDeadlineSeconds").unwrap_or(i64::from(i32::MAX));
    let progressed = deadline == i64::from(i32::MAX)
        || object
            .conditions()
            .any(|c| c.kind == "Progressing" && c.status == "True" && c.reason == "NewReplicaSetAvailable");
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let status = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    first([
        behind("Replicas", status("replicas"), wanted),
        behind("Updated", status("updatedReplicas"), wanted),
        surplus(status("replicas"), wanted),
        behind("Available", status("availableReplicas"), status("updatedReplicas")),
        behind("Ready", status("readyReplicas"), wanted),
        waiting(!progressed, "ReplicaSet not Available"),
        waiting(!object.condition_is("Available", "True"), "Deployment not Available"),
    ])
}

pub(crate) fn replica_set(object: Reader<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let status = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    first([
        waiting(object.condition_is("ReplicaFailure", "True"), "Replica Failure condition. Check Pods"),
        behind("Labelled", status("fullyLabeledReplicas"), wanted),
        behind("Available", status("availableReplicas"), wanted),
        behind("Ready", status("readyReplicas"), wanted),
        surplus(status("replicas"), wanted),
    ])
}

pub(crate) fn stateful_set(object: Reader<'_>) -> Health {
    if object.text("/spec/updateStrategy/type") == Some("OnDelete") {
        return Health::Current;
    }
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let status = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    let common = [
        behind("Replicas", status("replicas"), wanted),
        behind("Ready", status("readyReplicas"), wanted),
        surplus(status("replicas"), wanted),
    ];
    let rest = match object.number("/spec/updateStrategy/rollingUpdate/partition") {
        // Zero is what the API server fills in: every pod is updated, and the revisions tell when.
        Some(partition) if partition > 0 => {
            [behind("updated", status("updatedReplicas"), wanted.saturating_sub(partition)), None]
        }
        _ => [
            behind("current", status("currentReplicas"), wanted),
            waiting(
                object.text("/status/currentRevision") != object.text("/status/updateRevision"),
                "Waiting for updated revision to match current",
            ),
        ],
    };
    first(common.into_iter().chain(rest))
}

pub(crate) fn daemon_set(object: Reader<'_>) -> Health {
    if object.number("/metadata/generation").is_none() {
        return Health::InProgress("DaemonSet metadata.generation not found".to_owned());
    }
    if object.number("/status/observedGeneration").is_none() {
        return Health::InProgress("DaemonSet status.observedGeneration not found".to_owned());
    }
    let Some(wanted) = object.number("/status/desiredNumberScheduled") else {
        return Health::InProgress("Missing .status.desiredNumberScheduled".to_owned());
    };
    let status = |name: &str| object.number(&format!("/status/{name}")).unwrap_or(0);
    first([
        behind("Current", status("currentNumberScheduled"), wanted),
        behind("Updated", status("updatedNumberScheduled"), wanted),
        behind("Available", status("numberAvailable"), wanted),
        behind("Ready", status("numberReady"), wanted),
    ])
}

/// A running Job is healthy: whoever needs it to be complete emits a probe.
pub(crate) fn job(object: Reader<'_>) -> Health {
    let completions = object.number("/spec/completions").or_else(|| object.number("/spec/parallelism")).unwrap_or(1);
    for condition in object.conditions().filter(|condition| condition.status == "True") {
        match condition.kind {
            "Complete" | "Suspended" => return Health::Current,
            "Failed" => {
                let failed = object.number("/status/failed").unwrap_or(0);
                return Health::Failed(format!("Job Failed. failed: {failed}/{completions}"));
            }
            _ => {}
        }
    }
    match object.text("/status/startTime") {
        Some(time) if !time.is_empty() => Health::Current,
        _ => Health::InProgress("Job not started".to_owned()),
    }
}

pub(crate) fn pod(object: Reader<'_>) -> Health {
    match object.text("/status/phase").unwrap_or_default() {
        // A pod that ended stays as it is: there is nothing to wait for.
        "Succeeded" | "Failed" => Health::Current,
        "Running" if object.condition_is("Ready", "True") => Health::Current,
        "Running" => {
            let crashing: Vec<&str> = object
                .list("/status/containerStatuses")
                .filter(|status| {
                    status.pointer("/state/waiting/reason").and_then(Value::as_str) == Some("CrashLoopBackOff")
                })
                .filter_map(|status| status.get("name")?.as_str())
                .collect();
            if crashing.is_empty() {
                Health::InProgress("Pod is running but is not Ready".to_owned())
            } else {
                Health::Failed(format!("Containers in CrashLoop state: {}", crashing.join(",")))
            }
        }
        // kstatus calls this failed after fifteen seconds; here the verdict does not depend on a clock.
        "Pending"
            if object
                .conditions()
                .any(|c| c.kind == "PodScheduled" && c.status == "False" && c.reason == "Unschedulable") =>
        {
            Health::InProgress("Pod has not been scheduled".to_owned())
        }
        "Pending" => Health::InProgress("Pod is in the Pending phase".to_owned()),
        "" => Health::InProgress("Pod phase not available".to_owned()),
        phase => Health::InProgress(format!("unknown phase {phase}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::health::health;

    fn check(api_version: &str, kind: &str, cases: &[(Value, Value, &str)]) {
        for (spec, status, want) in cases {
            let object = json!({
                "apiVersion": api_version, "kind": kind, "metadata": {"generation": 1}, "spec": spec, "status": status
            });
            assert_eq!(health(&object).to_string(), *want, "{object}");
        }
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": ""})
    }

    #[test]
    fn deployments() {
        let done =
            json!([condition("Available", "True", ""), condition("Progressing", "True", "NewReplicaSetAvailable")]);
        let status = |total: i64, updated: i64, available: i64, ready: i64| {
            json!({
                "observedGeneration": 1, "replicas": total, "updatedReplicas": updated, "availableReplicas": available,
                "readyReplicas": ready, "conditions": done
            })
        };
        let two = || json!({"replicas": 2, "progressDeadlineSeconds": 600});
        check(
            "apps/v1",
            "Deployment",
            &[
                (json!({}), json!({}), "object InProgress: Replicas: 0/1"),
                (two(), status(1, 1, 1, 1), "object InProgress: Replicas: 1/2"),
                (two(), status(2, 1, 1, 1), "object InProgress: Updated: 1/2"),
                (two(), status(3, 2, 2, 2), "object InProgress: Pending termination: 1"),
                (two(), status(2, 2, 1, 2), "object InProgress: Available: 1/2"),
                (two(), status(2, 2, 2, 1), "object InProgress: Ready: 1/2"),
                (two(), status(2, 2, 2, 2), "object Current"),
                (
                    two(),
                    json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2,
                    "conditions": [condition("Available", "True", "")]}),
                    "object InProgress: ReplicaSet not Available",
                ),
                (
                    json!({"replicas": 0}),
                    json!({"conditions": [condition("Available", "False", "")]}),
                    "object InProgress: Deployment not Available",
                ),
                (
                    two(),
                    json!({"conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")]}),
                    "object Failed: Progress deadline exceeded",
                ),
            ],
        );
    }

    #[test]
    fn replica_sets() {
        check(
            "apps/v1",
            "ReplicaSet",
            &[
                (json!({}), json!({}), "object InProgress: Labelled: 0/1"),
                (json!({}), json!({"fullyLabeledReplicas": 1}), "object InProgress: Available: 0/1"),
                (json!({"replicas": 0}), json!({"replicas": 1}), "object InProgress: Pending termination: 1"),
                (json!({"replicas": 0}), json!({}), "object Current"),
                (
                    json!({"replicas": 0}),
                    json!({"conditions": [condition("ReplicaFailure", "True", "")]}),
                    "object InProgress: Replica Failure condition. Check Pods",
                ),
            ],
        );
    }

    #[test]
    fn stateful_sets() {
        let all = |current: i64, revision: &str| {
            json!({"replicas": 2, "readyReplicas": 2, "currentReplicas": current, "updatedReplicas": 1,
                "currentRevision": "a", "updateRevision": revision})
        };
        let two = |strategy: Value| json!({"replicas": 2, "updateStrategy": strategy});
        let partition = |n: i64| two(json!({"type": "RollingUpdate", "rollingUpdate": {"partition": n}}));
        check(
            "apps/v1",
            "StatefulSet",
            &[
                (json!({}), json!({}), "object InProgress: Replicas: 0/1"),
                (json!({}), json!({"replicas": 1}), "object InProgress: Ready: 0/1"),
                (json!({"replicas": 0}), json!({"replicas": 1}), "object InProgress: Pending termination: 1"),
                (two(Value::Null), all(1, "a"), "object InProgress: current: 1/2"),
                (two(Value::Null), all(2, "b"), "object InProgress: Waiting for updated revision to match current"),
                (two(Value::Null), all(2, "a"), "object Current"),
                (partition(0), all(2, "a"), "object Current"),
                (partition(1), all(1, "b"), "object Current"),
                (
                    partition(1),
                    json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 0}),
                    "object InProgress: updated: 0/1",
                ),
                (two(json!({"type": "OnDelete"})), json!({}), "object Current"),
            ],
        );
    }

    #[test]
    fn daemon_sets() {
        let status = |numbers: [i64; 5]| {
            let [wanted, current, updated, available, ready] = numbers;
            json!({"observedGeneration": 1, "desiredNumberScheduled": wanted, "currentNumberScheduled": current,
                "updatedNumberScheduled": updated, "numberAvailable": available, "numberReady": ready})
        };
        check(
            "apps/v1",
            "DaemonSet",
            &[
                (json!({}), json!({}), "object InProgress: DaemonSet status.observedGeneration not found"),
                (
                    json!({}),
                    json!({"observedGeneration": 1}),
                    "object InProgress: Missing .status.desiredNumberScheduled",
                ),
                (json!({}), status([2, 1, 2, 2, 2]), "object InProgress: Current: 1/2"),
                (json!({}), status([2, 2, 1, 2, 2]), "object InProgress: Updated: 1/2"),
                (json!({}), status([2, 2, 2, 1, 2]), "object InProgress: Available: 1/2"),
                (json!({}), status([2, 2, 2, 2, 1]), "object InProgress: Ready: 1/2"),
                (json!({}), status([0, 0, 0, 0, 0]), "object Current"),
            ],
        );
    }

    #[test]
    fn jobs() {
        check(
            "batch/v1",
            "Job",
            &[
                (json!({}), json!({}), "object InProgress: Job not started"),
                (json!({}), json!({"startTime": "2026-01-01T00:00:00Z"}), "object Current"),
                (json!({}), json!({"conditions": [condition("Complete", "True", "")]}), "object Current"),
                (json!({}), json!({"conditions": [condition("Suspended", "True", "")]}), "object Current"),
                (
                    json!({"completions": 3}),
                    json!({"failed": 2, "conditions": [condition("Failed", "True", "")]}),
                    "object Failed: Job Failed. failed: 2/3",
                ),
            ],
        );
    }

    #[test]
    fn pods() {
        let crashing = json!([{"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}, {"name": "b"}]);
        check(
            "v1",
            "Pod",
            &[
                (json!({}), json!({}), "object InProgress: Pod phase not available"),
                (json!({}), json!({"phase": "Pending"}), "object InProgress: Pod is in the Pending phase"),
                (
                    json!({}),
                    json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}),
                    "object InProgress: Pod has not been scheduled",
                ),
                (json!({}), json!({"phase": "Running"}), "object InProgress: Pod is running but is not Ready"),
                (
                    json!({}),
                    json!({"phase": "Running", "containerStatuses": crashing}),
                    "object Failed: Containers in CrashLoop state: a",
                ),
                (
                    json!({}),
                    json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]}),
                    "object Current",
                ),
                (json!({}), json!({"phase": "Succeeded"}), "object Current"),
                (json!({}), json!({"phase": "Failed"}), "object Current"),
                (json!({}), json!({"phase": "Odd"}), "object InProgress: unknown phase Odd"),
            ],
        );
    }
}
