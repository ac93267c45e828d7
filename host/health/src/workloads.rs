//! Workloads: what keeps pods running.

pub(crate) mod pods;

use crate::{health::Health, reader::Reader};

/// Fewer than wanted of something: `1 of 2 replicas are ready`.
fn fewer(have: i64, want: i64, what: &str, verb: &str) -> Option<Health> {
    let plural = if want == 1 { "" } else { "s" };
    let are = if want == 1 { "is" } else { "are" };
    (have < want).then(|| Health::progressing(format!("{have} of {want} {what}{plural} {are} {verb}")))
}

/// More replicas than wanted.
fn surplus(have: i64, want: i64) -> Option<Health> {
    (have > want).then(|| match have - want {
        1 => Health::progressing("1 old replica is still running"),
        more => Health::progressing(format!("{more} old replicas are still to go")),
    })
}

fn waiting(condition: bool, message: &str) -> Option<Health> {
    condition.then(|| Health::progressing(message))
}

fn first(checks: impl IntoIterator<Item = Option<Health>>) -> Health {
    checks.into_iter().flatten().next().unwrap_or_else(Health::healthy)
}

/// Pods that cannot be created, because of a quota or an admission policy: nothing below would ever say so.
fn cannot_create(object: Reader<'_>) -> Option<Health> {
    let failure = object.conditions().find(|condition| condition.is("ReplicaFailure", "True"))?;
    Some(Health::degraded(format!("pods cannot be created: {}", failure.text())))
}

fn subject(object: Reader<'_>, kind: &str) -> String {
    format!("-n {} {kind}/{}", object.text("/metadata/namespace"), object.text("/metadata/name"))
}

pub(crate) fn deployment(object: Reader<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let (updated, available) = (object.count("updatedReplicas"), object.count("availableReplicas"));
    if let Some(health) = cannot_create(object) {
        return health;
    }
    if object.flag("/spec/paused") && updated < wanted {
        // kstatus waits in silence here.
        return Health::progressing(format!("is paused while {updated} of {wanted} replicas are updated"))
            .help(format!("kubectl rollout resume {}", subject(object, "deployment")));
    }
    if object.conditions().any(|c| c.kind == "Progressing" && c.reason == "ProgressDeadlineExceeded") {
        let seconds = object.number("/spec/progressDeadlineSeconds").unwrap_or(600);
        return Health::degraded(format!(
            "made no progress for {seconds} s: {updated} of {wanted} replicas are updated and {available} available"
        ))
        .help(format!("kubectl describe {}", subject(object, "deployment")));
    }
    // Without a deadline (or with the largest, which switches it off) the controller does not report progress.
    let deadline = object.number("/spec/progressDeadlineSeconds").unwrap_or(i64::from(i32::MAX));
    let progressed = deadline == i64::from(i32::MAX)
        || object.flag("/spec/paused")
        || object.conditions().any(|c| c.is("Progressing", "True") && c.reason == "NewReplicaSetAvailable");
    first([
        fewer(object.count("replicas"), wanted, "replica", "created"),
        fewer(updated, wanted, "replica", "updated"),
        surplus(object.count("replicas"), wanted),
        fewer(available, updated, "replica", "available"),
        fewer(object.count("readyReplicas"), wanted, "replica", "ready"),
        waiting(!progressed, "its new ReplicaSet is not available"),
        waiting(!object.conditions().any(|c| c.is("Available", "True")), "is not available"),
    ])
}

pub(crate) fn replica_set(object: Reader<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    first([
        cannot_create(object),
        fewer(object.count("fullyLabeledReplicas"), wanted, "replica", "labelled"),
        fewer(object.count("availableReplicas"), wanted, "replica", "available"),
        fewer(object.count("readyReplicas"), wanted, "replica", "ready"),
        surplus(object.count("replicas"), wanted),
    ])
}

pub(crate) fn replication_controller(object: Reader<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    first([
        cannot_create(object),
        fewer(object.count("availableReplicas"), wanted, "replica", "available"),
        surplus(object.count("replicas"), wanted),
    ])
}

pub(crate) fn stateful_set(object: Reader<'_>) -> Health {
    let wanted = object.number("/spec/replicas").unwrap_or(1);
    let replicas = object.count("replicas");
    let common = [
        fewer(replicas, wanted, "replica", "created"),
        fewer(object.count("readyReplicas"), wanted, "replica", "ready"),
        surplus(replicas, wanted),
    ];
    // Only with this field does readiness have to last, and older API servers do not count what is available.
    let lasting = object.number("/spec/minReadySeconds").is_some_and(|seconds| seconds > 0);
    let available =
        if lasting { fewer(object.count("availableReplicas"), wanted, "replica", "available") } else { None };
    let updated = object.count("updatedReplicas");
    let rest = match object.number("/spec/updateStrategy/rollingUpdate/partition") {
        // Whoever deletes the pods decides when they are updated. kstatus does not even look whether they run.
        _ if object.text("/spec/updateStrategy/type") == "OnDelete" => [None, None],
        // Zero is what the API server fills in: every pod is updated, and the revisions tell when.
        Some(partition) if partition > 0 => {
            [fewer(updated, wanted.saturating_sub(partition), "replica", "updated"), None]
        }
        _ => [
            // The count of current pods is what kstatus goes by, but only pods of the new revision count in the end.
            fewer(object.count("currentReplicas").max(updated), wanted, "replica", "updated"),
            waiting(
                object.text("/status/currentRevision") != object.text("/status/updateRevision"),
                "the last pods are being updated",
            ),
        ],
    };
    first(common.into_iter().chain([available]).chain(rest))
}

pub(crate) fn daemon_set(object: Reader<'_>) -> Health {
    // Its controller always sets these; without them it has not looked yet.
    if object.number("/status/observedGeneration").is_none() {
        return Health::progressing("its controller has not seen it yet");
    }
    let Some(wanted) = object.number("/status/desiredNumberScheduled") else {
        return Health::progressing("its controller has not counted nodes yet");
    };
    let by_hand = object.text("/spec/updateStrategy/type") == "OnDelete";
    let updated = object.count("updatedNumberScheduled");
    first([
        fewer(object.count("currentNumberScheduled"), wanted, "pod", "created"),
        if by_hand { None } else { fewer(updated, wanted, "pod", "updated") },
        fewer(object.count("numberAvailable"), wanted, "pod", "available"),
        fewer(object.count("numberReady"), wanted, "pod", "ready"),
    ])
}

#[cfg(test)]
mod tests;
