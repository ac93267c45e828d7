//! The lifecycle of a Pod: a table of stages, as in kwok.
//!
//! The first row whose condition holds is next; after the duration of its step, its effect is applied.

mod node;
mod status;

use std::time::Duration;

use serde_json::Value;

pub(super) use self::node::{NODE, fits, key as node_key, reconcile as reconcile_node};
use self::status::{Doing, back_off_seconds, full_name, status};
use super::{
    action::{Action, Decision, Note},
    behaviour::Behaviour,
    fields::{controller, count, is_true, list, text, time},
    kind::{Key, Kind},
    rules::Step,
    world::World,
};
use crate::metadata;

const KUBELET: &str = "kubelet";
const SCHEDULER: &str = "default-scheduler";
/// The scheduler that is simulated; Pods that name another one are left to it.
const SCHEDULER_NAME: &str = "default-scheduler";

/// A Pod and its simulated behaviour.
struct Look<'a> {
    pod: &'a Value,
    behaviour: Behaviour,
    world: &'a World<'a>,
}

/// One row: the condition, its duration, the effect.
struct Stage {
    when: fn(&Look<'_>) -> bool,
    step: Option<Step>,
    then: fn(&Look<'_>, &mut Decision),
}

const STAGES: &[Stage] = &[
    Stage { when: |look| look.is_stopping(), step: Some(Step::Terminate), then: |look, decision| look.stop(decision) },
    Stage { when: |look| look.is_at_rest(), step: None, then: |_, _| {} },
    Stage {
        when: |look| look.is_unscheduled(),
        step: Some(Step::Schedule),
        then: |look, decision| look.schedule(decision),
    },
    Stage {
        when: |look| look.cannot_be_pulled(),
        step: Some(Step::Start),
        then: |look, decision| look.pull_in_vain(decision),
    },
    Stage { when: |look| look.fails(), step: Some(Step::Start), then: |look, decision| look.fail(decision) },
    Stage { when: |look| look.crashes(), step: Some(Step::Start), then: |look, decision| look.crash(decision) },
    Stage { when: |look| look.backs_off(), step: None, then: |look, decision| look.crash_again(decision) },
    Stage { when: |look| look.stalls(), step: None, then: |look, decision| look.create(decision) },
    Stage { when: |look| look.is_to_start(), step: Some(Step::Start), then: |look, decision| look.start(decision) },
    Stage {
        when: |look| look.is_to_complete(),
        step: Some(Step::Complete),
        then: |look, decision| look.complete(decision),
    },
    Stage { when: |look| look.runs(), step: None, then: |look, decision| look.keep_ready(decision) },
];

/// The step that a Pod is in, if it takes time.
pub(super) fn step(world: &World<'_>, pod: &Value) -> Option<(Step, Duration)> {
    let look = Look::at(world, pod);
    let step = look.stage()?.step?;
    let delay = world.delay(step, Kind::Pod, pod);
    (!delay.is_zero()).then_some((step, delay))
}

/// The next stage of a Pod.
pub(super) fn reconcile(world: &World<'_>, pod: &Value) -> Decision {
    let look = Look::at(world, pod);
    let mut decision = Decision::default();
    if let Some(stage) = look.stage() {
        (stage.then)(&look, &mut decision);
    }
    decision
}

impl<'a> Look<'a> {
    fn at(world: &'a World<'a>, pod: &'a Value) -> Self {
        Self { pod, behaviour: world.behaviour(Kind::Pod, pod), world }
    }

    fn stage(&self) -> Option<&'static Stage> {
        STAGES.iter().find(|stage| (stage.when)(self))
    }

    fn phase(&self) -> &str {
        text(self.pod, "/status/phase")
    }

    fn is_stopping(&self) -> bool {
        metadata::is_deleting(self.pod)
    }

    fn is_at_rest(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    fn is_unscheduled(&self) -> bool {
        text(self.pod, "/spec/nodeName").is_empty()
    }

    fn is_running(&self) -> bool {
        self.phase() == "Running"
            && list(self.pod, "/status/containerStatuses")
                .iter()
                .all(|container| container.pointer("/state/running").is_some())
    }

    fn waits_for(&self, reason: &str) -> bool {
        ["/status/containerStatuses", "/status/initContainerStatuses"].iter().any(|statuses| {
            list(self.pod, statuses).iter().any(|container| text(container, "/state/waiting/reason") == reason)
        })
    }

    fn cannot_be_pulled(&self) -> bool {
        self.behaviour == Behaviour::ImagePull && !self.is_running() && !self.waits_for("ImagePullBackOff")
    }

    /// Whether the Pod ends when its containers do.
    fn is_to_end(&self) -> bool {
        text(self.pod, "/spec/restartPolicy") == "Never" || self.is_of_job()
    }

    fn is_of_job(&self) -> bool {
        controller(self.pod).and_then(Kind::of_reference) == Some(Kind::Job)
    }

    fn fails(&self) -> bool {
        match self.behaviour {
            Behaviour::Fail => self.is_to_end(),
            Behaviour::CrashLoop => text(self.pod, "/spec/restartPolicy") == "Never",
            _ => false,
        }
    }

    fn crashes(&self) -> bool {
        matches!(self.behaviour, Behaviour::Fail | Behaviour::CrashLoop) && !self.waits_for("CrashLoopBackOff")
    }

    fn backs_off(&self) -> bool {
        matches!(self.behaviour, Behaviour::Fail | Behaviour::CrashLoop) && self.waits_for("CrashLoopBackOff")
    }

    fn stalls(&self) -> bool {
        let held = self.behaviour == Behaviour::Stall && !self.is_running() && !self.waits_for("ContainerCreating");
        held && !self.waits_for("PodInitializing")
    }

    fn is_to_start(&self) -> bool {
        self.behaviour == Behaviour::Healthy && !self.is_running()
    }

    fn is_to_complete(&self) -> bool {
        self.behaviour == Behaviour::Healthy && self.is_of_job()
    }

    fn runs(&self) -> bool {
        self.is_running()
    }

    fn write(&self, decision: &mut Decision, doing: Doing) {
        decision.status(Kind::Pod, self.pod, &status(self.pod, doing, &self.world.timestamp()));
    }

    fn containers(&self) -> impl Iterator<Item = &Value> {
        list(self.pod, "/spec/containers").iter()
    }

    fn stop(&self, decision: &mut Decision) {
        let note = self.containers().next().map(|container| {
            Note::normal(KUBELET, "Killing", format!("Stopping container {}", text(container, "/name")))
        });
        let (key, uid) = (Key::of(Kind::Pod, self.pod), metadata::uid(self.pod).to_owned());
        if metadata::finalizers(self.pod).is_empty() {
            decision.push(Action::Delete { key, uid, now: true, note });
        }
    }

    fn schedule(&self, decision: &mut Decision) {
        let named = text(self.pod, "/spec/schedulerName");
        if !(named.is_empty() || named == SCHEDULER_NAME) || !list(self.pod, "/spec/schedulingGates").is_empty() {
            return;
        }
        match node::choose(self.world, self.pod) {
            Ok(node) => {
                let (namespace, name) = (metadata::namespace(self.pod), metadata::name(self.pod));
                let (key, uid) = (Key::of(Kind::Pod, self.pod), metadata::uid(self.pod).to_owned());
                decision.push(Action::Bind { key, uid, node: node.clone() });
                let message = format!("Successfully assigned {namespace}/{name} to {node}");
                decision.record_event(Note::normal(SCHEDULER, "Scheduled", message));
            }
            Err(why) => self.stay_unscheduled(decision, &why),
        }
    }

    fn stay_unscheduled(&self, decision: &mut Decision, why: &str) {
        let mut conditions = super::conditions::Conditions::with_messages(self.pod, &self.world.timestamp());
        conditions.set("PodScheduled", "False", "Unschedulable", why);
        let mut wanted = self.pod.get("status").cloned().unwrap_or_default();
        metadata::set(metadata::as_map(&mut wanted), "conditions", conditions.build());
        let before = decision.actions.len();
        decision.status(Kind::Pod, self.pod, &wanted);
        if decision.actions.len() > before {
            decision.record_event(Note::warning(SCHEDULER, "FailedScheduling", why));
        }
    }

    fn pull_in_vain(&self, decision: &mut Decision) {
        self.write(decision, Doing::PullingInVain);
        let Some(image) = self.containers().next().map(|container| text(container, "/image")) else { return };
        let failed = format!("Failed to pull image {image:?}: failed to resolve reference {image:?}: no such host");
        decision.record_event(Note::normal(KUBELET, "Pulling", format!("Pulling image {image:?}")));
        decision.record_event(Note::warning(KUBELET, "Failed", failed));
        decision.record_event(Note::warning(KUBELET, "Failed", "Error: ErrImagePull"));
        decision.record_event(Note::normal(KUBELET, "BackOff", format!("Back-off pulling image {image:?}")));
        decision.record_event(Note::warning(KUBELET, "Failed", "Error: ImagePullBackOff"));
    }

    fn record_start(&self, decision: &mut Decision) {
        for list_of in ["/spec/initContainers", "/spec/containers"] {
            for container in list(self.pod, list_of) {
                let image = text(container, "/image");
                let pulled =
                    format!("Container image {image:?} already present on machine and can be accessed by the pod");
                decision.record_event(Note::normal(KUBELET, "Pulled", pulled));
                decision.record_event(Note::normal(KUBELET, "Created", "Container created"));
                decision.record_event(Note::normal(KUBELET, "Started", "Container started"));
            }
        }
    }

    fn fail(&self, decision: &mut Decision) {
        self.write(decision, Doing::Failed);
        if !self.is_running() {
            self.record_start(decision);
        }
    }

    fn crash(&self, decision: &mut Decision) {
        self.write(decision, Doing::BackingOff);
        if !self.is_running() {
            self.record_start(decision);
        }
        self.record_crash(decision);
        decision.look_again(self.back_off());
    }

    fn crash_again(&self, decision: &mut Decision) {
        let finished =
            self.containers_of_status().filter_map(|status| time(status, "/lastState/terminated/finishedAt")).max();
        let (waited, wait) = (self.world.since(finished), self.back_off());
        if waited < wait {
            decision.look_again(wait.saturating_sub(waited));
            return;
        }
        self.write(decision, Doing::BackingOff);
        self.record_crash(decision);
    }

    fn containers_of_status(&self) -> impl Iterator<Item = &Value> {
        list(self.pod, "/status/containerStatuses").iter()
    }

    fn back_off(&self) -> Duration {
        let restarts = self.containers_of_status().map(|status| count(status, "/restartCount")).max().unwrap_or(1);
        Duration::from_secs(back_off_seconds(restarts))
    }

    fn record_crash(&self, decision: &mut Decision) {
        for container in self.containers() {
            let (name, pod) = (text(container, "/name"), full_name(self.pod));
            let message = format!("Back-off restarting failed container {name} in pod {pod}");
            decision.record_event(Note::warning(KUBELET, "BackOff", message));
        }
    }

    fn create(&self, decision: &mut Decision) {
        self.write(decision, Doing::Creating);
    }

    fn start(&self, decision: &mut Decision) {
        self.write(decision, Doing::Running);
        self.record_start(decision);
    }

    fn complete(&self, decision: &mut Decision) {
        self.write(decision, Doing::Succeeded);
    }

    /// Others set the conditions that are readiness gates.
    fn keep_ready(&self, decision: &mut Decision) {
        if !list(self.pod, "/spec/readinessGates").is_empty() {
            self.write(decision, Doing::Running);
        }
    }
}

/// Whether a Pod counts as one of its workload: not at its end and not being deleted.
pub(super) fn is_active(pod: &Value) -> bool {
    !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") && !metadata::is_deleting(pod)
}

/// Whether a Pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    is_true(pod, "Ready")
}

/// How long a Pod has yet to stay ready until it is available; `None` when it is not ready.
pub(super) fn until_available(world: &World<'_>, pod: &Value, minimum: i64) -> Option<Duration> {
    let ready = super::fields::condition(pod, "Ready").filter(|_| is_ready(pod))?;
    let minimum = Duration::from_secs(u64::try_from(minimum).unwrap_or(0));
    if minimum.is_zero() {
        return Some(Duration::ZERO);
    }
    Some(minimum.saturating_sub(world.since(time(ready, "/lastTransitionTime"))))
}

#[cfg(test)]
mod tests;
