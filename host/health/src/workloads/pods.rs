//! Health of Pods and Jobs.

use crate::{health::Health, reader::Reader};

/// A Job is healthy when it is complete, or suspended because its spec says so. For kstatus a Job that has started is current,
/// but a Job that precedes other objects is meant to complete first.
pub(crate) fn job(object: Reader<'_>) -> Health {
    if object.flag("/spec/suspend") {
        return Health::at_rest("is suspended");
    }
    for condition in object.conditions().filter(|condition| condition.status == "True") {
        match condition.kind {
            "Complete" | "SuccessCriteriaMet" => return Health::healthy(),
            "Failed" | "FailureTarget" => {
                return Health::failed(format!("has failed: {}", condition.text()))
                    .help("delete the Job to run it again, or change the bundle");
            }
            _ => {}
        }
    }
    // Without `completions` one success is enough, regardless of the parallelism.
    let wanted = object.number("/spec/completions").unwrap_or(1);
    let done = object.count("succeeded");
    let failed = object.count("failed");
    let message = match object.text("/status/startTime") {
        "" => "has not started".to_owned(),
        _ => format!("{done} of {wanted} pod{} completed", if wanted == 1 { " has" } else { "s have" }),
    };
    if failed > 0 {
        let limit = object.number("/spec/backoffLimit").unwrap_or(6);
        return Health::progressing(format!("{message}, {failed} failed (up to {limit} are replaced)"));
    }
    Health::progressing(message)
}

/// A failed Pod stays failed. For kstatus it is current since it ended, but it did not do its work.
pub(crate) fn pod(object: Reader<'_>) -> Health {
    match object.text("/status/phase") {
        "Succeeded" => Health::healthy(),
        "Failed" => {
            let (reason, message) = (object.text("/status/reason"), object.text("/status/message"));
            let cause = if message.is_empty() { reason } else { message };
            let text = if cause.is_empty() { "has failed".to_owned() } else { format!("has failed: {cause}") };
            Health::failed(text).help("delete the Pod to create it again")
        }
        "Running" if object.conditions().any(|c| c.is("Ready", "True")) => Health::healthy(),
        "Running" => containers(object).unwrap_or_else(|| Health::progressing("is running but not ready")),
        // kstatus calls this failed after fifteen seconds. This rule does not depend on a clock.
        "Pending" => match object.condition("PodScheduled") {
            Some(scheduled) if scheduled.status == "False" => {
                Health::progressing(format!("is not scheduled: {}", scheduled.text()))
            }
            _ => containers(object).unwrap_or_else(|| Health::progressing("is starting")),
        },
        "" => Health::progressing("has no phase yet"),
        phase => Health::unknown(format!("is in phase {phase}")),
    }
}

/// The reasons for which containers do not run, as the kubelet reports them.
fn containers(object: Reader<'_>) -> Option<Health> {
    let all = object.list("/status/initContainerStatuses").chain(object.list("/status/containerStatuses"));
    let stuck: Vec<String> = all
        .filter(|status| {
            let reason = status.text("/state/waiting/reason");
            reason.ends_with("BackOff") || reason.starts_with("Err") || reason.ends_with("Error")
        })
        .map(|status| format!("container {}: {}", status.text("/name"), status.text("/state/waiting/reason")))
        .collect();
    (!stuck.is_empty()).then(|| Health::degraded(stuck.join(", ")))
}
