//! Why a Pod does not run.

use super::{Finding, Rank, family::Events, image, text};
use crate::reader::{Reader, terminating};

/// The reasons of Events about a Pod whose containers are being created.
const NOT_CREATING: &[&str] =
    &["FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "NetworkNotReady"];
/// The reasons of Events about a Pod that runs and is not ready.
const NOT_READY: &[&str] = &["Unhealthy", "ProbeWarning", "NodeNotReady"];
/// The number of restarts from which a container crashes repeatedly, although it may run at the moment.
const REPEATED: i64 = 2;

/// What is known about a container: its status, and how messages name it.
#[derive(Clone, Copy)]
struct Container<'a> {
    status: Reader<'a>,
    is_init: bool,
}

/// Why a Pod does not run or is not ready, or `None` if nothing is known to be wrong.
pub(super) fn finding(pod: Reader<'_>, events: Events<'_>) -> Option<Finding> {
    if pod.is_terminating() {
        let is_held = pod.list("/metadata/finalizers").next().is_some();
        let text = format!("Pod {} {}", pod.text("/metadata/name"), terminating(pod));
        return is_held.then(|| Finding::new(Rank::Remaining, text));
    }
    match pod.text("/status/phase") {
        "Succeeded" => return None,
        "Failed" => return Some(failed(pod)),
        _ => {}
    }
    if let Some(scheduled) = pod.condition("PodScheduled").filter(|scheduled| scheduled.status == "False") {
        // The second sentence is about preemption, and changes with every attempt.
        let message = scheduled.message.split(" preemption:").next().unwrap_or_default();
        let message = message.trim_end().trim_end_matches('.');
        let text = with_reason(scheduled.reason, message);
        let unbound = message.contains("PersistentVolumeClaim") || message.contains("persistentvolumeclaim");
        let finding = Finding::new(Rank::Unscheduled, text);
        return Some(if unbound { finding.incomplete() } else { finding });
    }
    containers(pod).find_map(|container| of_container(pod, container, events)).or_else(|| not_ready(pod, events))
}

/// Whether Events about a Pod may have more information than the Pod.
pub(super) fn needs_events(pod: Reader<'_>) -> bool {
    let is_over = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
    let is_ready = pod.conditions().any(|condition| condition.is("Ready", "True"));
    !is_over && !is_ready && !pod.is_terminating()
}

/// The containers that are not ready, in the order in which they start.
fn containers(pod: Reader<'_>) -> impl Iterator<Item = Container<'_>> {
    let of = |list: &str, is_init| pod.list(list).map(move |status| Container { status, is_init });
    let all = of("/status/initContainerStatuses", true).chain(of("/status/containerStatuses", false));
    all.filter(|container| !container.status.flag("/ready"))
}

/// A Pod that has ended without success.
fn failed(pod: Reader<'_>) -> Finding {
    let reason = pod.text("/status/reason");
    if !reason.is_empty() {
        // Further sentences have numbers that differ from Pod to Pod.
        let message = text::first_sentence(pod.text("/status/message"));
        return Finding::new(Rank::Ended, with_reason(reason, message));
    }
    let failed = containers(pod).find_map(|container| {
        let ended = Reader(container.status.0.pointer("/state/terminated")?);
        (ended.number("/exitCode") != Some(0)).then(|| container.ended(ended))
    });
    Finding::new(Rank::Ended, failed.unwrap_or_else(|| "its Pod has failed".to_owned()))
}

fn of_container(pod: Reader<'_>, container: Container<'_>, events: Events<'_>) -> Option<Finding> {
    let status = container.status;
    let (reason, message) = (status.text("/state/waiting/reason"), status.text("/state/waiting/message"));
    if image::is_about_image(reason) {
        let about = image_of(pod, container);
        let warned: Vec<&str> = events
            .warnings(pod, &["Failed"])
            .into_iter()
            .map(|(_, message)| message)
            .filter(|it| it.contains(about))
            .collect();
        let detail = [message].into_iter().chain(warned).find_map(|message| image::detail(message, about));
        let finding = Finding::new(Rank::Container, image::text(reason, about, detail.as_deref()));
        return Some(if detail.is_some() { finding } else { finding.incomplete() });
    }
    match reason {
        "CrashLoopBackOff" => return Some(crashed(pod, container, events)),
        "ContainerCreating" | "PodInitializing" | "" => {}
        reason => {
            let text = with_reason(reason, &container.said(pod, message));
            return Some(Finding::new(Rank::Container, text));
        }
    }
    let restarts = restarts(status);
    let has_ended = status.0.pointer("/state/terminated").is_some();
    let is_done = status.number("/state/terminated/exitCode") == Some(0);
    if has_ended && !(container.is_init && is_done) && (restarts > 0 || !is_done) {
        return Some(crashed(pod, container, events));
    }
    let runs = status.0.pointer("/state/running").is_some();
    (runs && restarts > 0 && status.0.pointer("/lastState/terminated").is_some())
        .then(|| crashed(pod, container, events))
}

/// A container that ended and is restarted.
fn crashed(pod: Reader<'_>, container: Container<'_>, events: Events<'_>) -> Finding {
    let status = container.status;
    let ended = ["/state/terminated", "/lastState/terminated"].into_iter().find_map(|place| status.0.pointer(place));
    let repeated = status.text("/state/waiting/reason") == "CrashLoopBackOff" || restarts(status) >= REPEATED;
    let prefix = if repeated { "CrashLoopBackOff: " } else { "" };
    let Some(ended) = ended.map(Reader) else {
        return Finding::new(Rank::Container, format!("{prefix}{} ends again and again", container.name()));
    };
    // The kubelet ends containers whose liveness probe fails, with these codes.
    let may_be_killed = ended.text("/reason") == "Error" && matches!(ended.number("/exitCode"), Some(137 | 143));
    let killed = events.warnings(pod, NOT_READY).into_iter().find(|(_, message)| message.starts_with("Liveness probe"));
    if let (true, Some((_, message))) = (may_be_killed, killed) {
        let text = format!("{prefix}{} is restarted: {}", container.name(), text::probe(message));
        return Finding::new(Rank::Container, text);
    }
    let finding = Finding::new(Rank::Container, format!("{prefix}{}", container.ended(ended)));
    if may_be_killed { finding.incomplete() } else { finding }
}

/// A Pod whose containers report nothing.
fn not_ready(pod: Reader<'_>, events: Events<'_>) -> Option<Finding> {
    if !needs_events(pod) {
        return None;
    }
    let is_running = pod.text("/status/phase") == "Running";
    if let Some(ready) = pod.condition("Ready").filter(|ready| ready.reason == "ReadinessGatesNotReady") {
        return Some(Finding::new(Rank::Waiting, with_reason(ready.reason, ready.message)));
    }
    let warnings = events.warnings(pod, if is_running { NOT_READY } else { NOT_CREATING });
    // The cause is more useful than the message that a volume was not mounted in time.
    let said = warnings.iter().find(|(_, message)| !message.starts_with("Unable to attach or mount volumes"));
    let (reason, message) = said.or(warnings.first())?;
    let text = match *reason {
        "Unhealthy" | "ProbeWarning" => text::probe(message),
        reason => with_reason(reason, text::volume(message)),
    };
    Some(Finding::new(Rank::Waiting, text))
}

impl Container<'_> {
    fn name(self) -> String {
        let init = if self.is_init { "init " } else { "" };
        format!("{init}container {}", self.status.text("/name"))
    }

    /// A message about the container, with its name if the Pod has several.
    fn said(self, pod: Reader<'_>, message: &str) -> String {
        let alone = pod.list("/spec/containers").count() <= 1 && !self.is_init;
        match (alone, message) {
            (_, "") => self.name(),
            (true, message) => message.to_owned(),
            (false, message) => format!("{}: {message}", self.name()),
        }
    }

    /// How it ended. The output of the process is left out, since it may be secret.
    fn ended(self, ended: Reader<'_>) -> String {
        let code = ended.number("/exitCode").unwrap_or_default();
        match ended.text("/reason") {
            "OOMKilled" => format!("{} was killed: OOMKilled (exit code {code})", self.name()),
            // The container runtime wrote the message: the process did not start.
            reason @ ("ContainerCannotRun" | "StartError") => {
                format!("{} did not start: {reason}: {}", self.name(), ended.text("/message"))
            }
            _ => format!("{} exited with code {code}", self.name()),
        }
    }
}

fn image_of<'a>(pod: Reader<'a>, container: Container<'a>) -> &'a str {
    let list = if container.is_init { "/spec/initContainers" } else { "/spec/containers" };
    let specified = pod.list(list).find(|it| it.text("/name") == container.status.text("/name"));
    specified.map(|it| it.text("/image")).filter(|image| !image.is_empty()).unwrap_or(container.status.text("/image"))
}

fn with_reason(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn restarts(status: Reader<'_>) -> i64 {
    status.number("/restartCount").unwrap_or_default()
}
