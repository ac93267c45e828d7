use serde_json::{Value, json};

use crate::{assess, dependencies::Dependencies, tests::verdict};

/// Checks specs and statuses against verdicts, `State: message`.
fn check(api_version: &str, kind: &str, cases: &[(Value, Value, &str)]) {
    for (spec, status, want) in cases {
        let object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 1},
            "spec": spec, "status": status
        });
        assert_eq!(verdict(&assess(&object, &Dependencies::default())), *want, "{object}");
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn deployments() {
    let done =
        json!([condition("Available", "True", "", ""), condition("Progressing", "True", "NewReplicaSetAvailable", "")]);
    let status = |total: i64, updated: i64, available: i64, ready: i64| {
        json!({
            "observedGeneration": 1, "replicas": total, "updatedReplicas": updated, "availableReplicas": available,
            "readyReplicas": ready, "conditions": done
        })
    };
    let two = || json!({"replicas": 2, "progressDeadlineSeconds": 600});
    let paused = || json!({"replicas": 2, "progressDeadlineSeconds": 600, "paused": true});
    check(
        "apps/v1",
        "Deployment",
        &[
            (json!({}), json!({}), "Progressing: 0 of 1 replica is created"),
            (two(), status(1, 1, 1, 1), "Progressing: 1 of 2 replicas are created"),
            (two(), status(2, 1, 1, 1), "Progressing: 1 of 2 replicas are updated"),
            (two(), status(3, 2, 2, 2), "Progressing: 1 old replica is pending termination"),
            (two(), status(4, 2, 2, 2), "Progressing: 2 old replicas are pending termination"),
            (two(), status(2, 2, 1, 2), "Progressing: 1 of 2 replicas are available"),
            (two(), status(2, 2, 2, 1), "Progressing: 1 of 2 replicas are ready"),
            (two(), status(2, 2, 2, 2), "Healthy"),
            (
                two(),
                json!({"observedGeneration": 0, "replicas": 2}),
                "Progressing: its controller has observed generation 0 of 1 of this Deployment",
            ),
            (
                two(),
                json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2,
                    "conditions": [condition("Available", "True", "", "")]}),
                "Progressing: its new ReplicaSet is not available",
            ),
            (
                json!({"replicas": 0}),
                json!({"conditions": [condition("Available", "False", "", "")]}),
                "Progressing: is not available",
            ),
            // Scaled to nothing is what it should be.
            (json!({"replicas": 0}), status(0, 0, 0, 0), "Healthy"),
            (
                two(),
                json!({"updatedReplicas": 1, "conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded", "")]}),
                "Degraded: made no progress for 600 s: 1 of 2 replicas are updated and 0 available (kubectl describe -n n \
                 deployment/x)",
            ),
            (
                two(),
                json!({"conditions": [condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")]}),
                "Degraded: pods cannot be created: exceeded quota",
            ),
            // Paused in the midst of a change, and paused with nothing to do.
            (
                paused(),
                json!({"replicas": 2, "updatedReplicas": 0, "availableReplicas": 2, "readyReplicas": 2}),
                "Progressing: is paused while 0 of 2 replicas are updated (kubectl rollout resume -n n deployment/x)",
            ),
            (
                paused(),
                json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2,
                    "conditions": [condition("Available", "True", "", ""), condition("Progressing", "Unknown", "DeploymentPaused", "")]}),
                "Healthy",
            ),
        ],
    );
}

#[test]
fn replica_sets_and_replication_controllers() {
    check(
        "apps/v1",
        "ReplicaSet",
        &[
            (json!({}), json!({}), "Progressing: 0 of 1 replica is labelled"),
            (json!({}), json!({"fullyLabeledReplicas": 1}), "Progressing: 0 of 1 replica is available"),
            (json!({"replicas": 0}), json!({"replicas": 1}), "Progressing: 1 old replica is pending termination"),
            (json!({"replicas": 0}), json!({}), "Healthy"),
            (
                json!({"replicas": 0}),
                json!({"conditions": [condition("ReplicaFailure", "True", "FailedDelete", "")]}),
                "Degraded: pods cannot be created: FailedDelete",
            ),
        ],
    );
    check(
        "v1",
        "ReplicationController",
        &[
            (json!({"replicas": 2}), json!({"availableReplicas": 1}), "Progressing: 1 of 2 replicas are available"),
            (json!({"replicas": 2}), json!({"availableReplicas": 2, "replicas": 2}), "Healthy"),
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
            (json!({}), json!({}), "Progressing: 0 of 1 replica is created"),
            (json!({}), json!({"replicas": 1}), "Progressing: 0 of 1 replica is ready"),
            (json!({"replicas": 0}), json!({"replicas": 1}), "Progressing: 1 old replica is pending termination"),
            (json!({"replicas": 0}), json!({"currentRevision": "a", "updateRevision": "a"}), "Healthy"),
            (two(Value::Null), all(1, "a"), "Progressing: 1 of 2 replicas are updated"),
            (two(Value::Null), all(2, "b"), "Progressing: the last pods are being updated"),
            (two(Value::Null), all(2, "a"), "Healthy"),
            (partition(0), all(2, "a"), "Healthy"),
            (partition(1), all(1, "b"), "Healthy"),
            (
                partition(1),
                json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 0}),
                "Progressing: 0 of 1 replica is updated",
            ),
            // Updated by hand: old pods are fine, missing ones are not.
            (two(json!({"type": "OnDelete"})), all(0, "b"), "Healthy"),
            (
                two(json!({"type": "OnDelete"})),
                json!({"replicas": 2, "readyReplicas": 1}),
                "Progressing: 1 of 2 replicas are ready",
            ),
            (
                json!({"replicas": 1, "minReadySeconds": 10}),
                json!({"replicas": 1, "readyReplicas": 1, "currentReplicas": 1}),
                "Progressing: 0 of 1 replica is available",
            ),
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
            (json!({}), json!({}), "Progressing: its controller has not observed it yet"),
            (json!({}), json!({"observedGeneration": 1}), "Progressing: its controller has not counted the nodes yet"),
            (json!({}), status([2, 1, 2, 2, 2]), "Progressing: 1 of 2 pods are created"),
            (json!({}), status([2, 2, 1, 2, 2]), "Progressing: 1 of 2 pods are updated"),
            (json!({}), status([2, 2, 2, 1, 2]), "Progressing: 1 of 2 pods are available"),
            (json!({}), status([2, 2, 2, 2, 1]), "Progressing: 1 of 2 pods are ready"),
            // No node is selected.
            (json!({}), status([0, 0, 0, 0, 0]), "Healthy"),
            (json!({"updateStrategy": {"type": "OnDelete"}}), status([2, 2, 0, 2, 2]), "Healthy"),
        ],
    );
}

#[test]
fn jobs() {
    let begun = |more: Value| {
        let mut status = json!({"startTime": "2026-01-01T00:00:00Z"});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        status
    };
    check(
        "batch/v1",
        "Job",
        &[
            (json!({}), json!({}), "Progressing: has not started"),
            (json!({}), begun(json!({})), "Progressing: 0 of 1 pod has completed"),
            (
                json!({"completions": 3, "backoffLimit": 2}),
                begun(json!({"succeeded": 1, "failed": 1})),
                "Progressing: 1 of 3 pods have completed, 1 failed (up to 2 are replaced)",
            ),
            (json!({}), json!({"conditions": [condition("Complete", "True", "", "")]}), "Healthy"),
            (json!({"suspend": true}), json!({}), "Healthy: is suspended"),
            // Resumed, but its controller has not noticed.
            (
                json!({}),
                json!({"conditions": [condition("Suspended", "True", "", "")]}),
                "Progressing: has not started",
            ),
            (
                json!({"completions": 3}),
                json!({"failed": 2, "conditions": [condition("Failed", "True", "BackoffLimitExceeded", "too often")]}),
                "Failed: has failed: too often (delete the Job to run it again, or change the bundle)",
            ),
        ],
    );
    check(
        "batch/v1",
        "CronJob",
        &[(json!({"suspend": true}), json!({}), "Healthy"), (json!({}), json!({}), "Healthy")],
    );
}

#[test]
fn pods() {
    let waiting = |reason: &str| json!([{"name": "a", "state": {"waiting": {"reason": reason}}}, {"name": "b"}]);
    check(
        "v1",
        "Pod",
        &[
            (json!({}), json!({}), "Progressing: has no phase yet"),
            (json!({}), json!({"phase": "Pending"}), "Progressing: is starting"),
            (
                json!({}),
                json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", "no node")]}),
                "Progressing: is not scheduled: no node",
            ),
            (
                json!({}),
                json!({"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}),
                "Progressing: is starting",
            ),
            (
                json!({}),
                json!({"phase": "Pending", "containerStatuses": waiting("ErrImagePull")}),
                "Degraded: container a: ErrImagePull",
            ),
            (
                json!({}),
                json!({"phase": "Pending", "initContainerStatuses": waiting("CreateContainerConfigError")}),
                "Degraded: container a: CreateContainerConfigError",
            ),
            (json!({}), json!({"phase": "Running"}), "Progressing: is running but not ready"),
            (
                json!({}),
                json!({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff")}),
                "Degraded: container a: CrashLoopBackOff",
            ),
            (json!({}), json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]}), "Healthy"),
            (json!({}), json!({"phase": "Succeeded"}), "Healthy"),
            (
                json!({}),
                json!({"phase": "Failed", "reason": "Evicted"}),
                "Failed: has failed: Evicted (delete the Pod to create it again)",
            ),
            (json!({}), json!({"phase": "Odd"}), "Unknown: is in phase Odd"),
        ],
    );
}
