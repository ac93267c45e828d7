//! Health of workloads that keep pods running.

pub(crate) mod pods;

use crate::{health::Health, reader::Reader};

/// Progressing while there are fewer than wanted: `1 of 2 replicas are ready`.
fn fewer(have: i64, want: i64, what: &str, verb: &str) -> Option<Health> {
    let plural = if want == 1 { "" } else { "s" };
    let are = if want == 1 { "is" } else { "are" };
    (have < want).then(|| Health::progressing(format!("{have} of {want} {what}{plural} {are} {verb}")))
}

/// Progressing while there are more replicas than wanted.
fn surplus(have: i64, want: i64) -> Option<Health> {
    (have > want).then(|| match have - want {
        1 => Health::progressing("1 old replica is pending termination"),
        more => Health::progressing(format!("{more} old replicas are pending termination")),
    })
}

fn waiting(condition: bool, message: &str) -> Option<Health> {
    condition.then(|| Health::progressing(message))
}

fn first(checks: impl IntoIterator<Item = Option<Health>>) -> Health {
    checks.into_iter().flatten().next().unwrap_or_else(Health::healthy)
}

/// Pods that cannot be created because of a quota or an admission policy. No counter below would show the cause.
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
    let of_wanted = if wanted == 1 { "of 1 replica is".to_owned() } else { format!("of {wanted} replicas are") };
    if object.flag("/spec/paused") && updated < wanted {
        // kstatus waits without a message in this case.
        return Health::progressing(format!("is paused while {updated} {of_wanted} updated"))
            .help(format!("kubectl rollout resume {}", subject(object, "deployment")));
    }
    if object.conditions().any(|c| c.kind == "Progressing" && c.reason == "ProgressDeadlineExceeded") {
        let seconds = object.number("/spec/progressDeadlineSeconds").unwrap_or(600);
        return Health::degraded(format!(
            "made no progress for {seconds} s: {updated} {of_wanted} updated and {available} available"
        ))
        .help(format!("kubectl describe {}", subject(object, "deployment")));
    }
    // Without a deadline, or with the largest one, which disables it, the controller does not report progress.
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
    // Only with this field must pods stay ready for some time. Older API servers do not count available replicas.
    let must_stay_ready = object.number("/spec/minReadySeconds").is_some_and(|seconds| seconds > 0);
    let available =
        if must_stay_ready { fewer(object.count("availableReplicas"), wanted, "replica", "available") } else { None };
    let updated = object.count("updatedReplicas");
    let rest = match object.number("/spec/updateStrategy/rollingUpdate/partition") {
        // The user who deletes the pods decides when they are updated. kstatus does not even check whether they run.
        _ if object.text("/spec/updateStrategy/type") == "OnDelete" => [None, None],
        // The API server defaults the partition to zero: every pod is updated, and the revisions show when that is done.
        Some(partition) if partition > 0 => {
            [fewer(updated, wanted.saturating_sub(partition), "replica", "updated"), None]
        }
        _ => [
            // kstatus uses the number of current pods, but in the end only pods of the new revision count.
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
    // Its controller always sets these fields. Without them it has not observed the object yet.
    if object.number("/status/observedGeneration").is_none() {
        return Health::progressing("its controller has not observed it yet");
    }
    let Some(wanted) = object.number("/status/desiredNumberScheduled") else {
        return Health::progressing("its controller has not counted the nodes yet");
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
