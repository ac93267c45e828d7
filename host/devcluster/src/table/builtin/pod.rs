//! Pods: their status in one word.

use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{
    clock, metadata,
    table::{
        cell::{AGE, NAME, NONE, holds, integer, list, text},
        column::{Column, Row},
    },
};

/// Pods.
pub(super) const POD: &[Column] = &[
    NAME,
    Column::text("Ready", |row| {
        let summary = Summary::of(row.object);
        format!("{}/{}", summary.ready, summary.containers).into()
    }),
    Column::text("Status", |row| Summary::of(row.object).reason.into()),
    Column::text("Restarts", |row| {
        let summary = Summary::of(row.object);
        match summary.last_restart {
            Some(time) if summary.restarts != 0 => {
                format!("{} ({} ago)", summary.restarts, clock::age(time, row.now)).into()
            }
            _ => summary.restarts.to_string().into(),
        }
    }),
    AGE,
    Column::text("IP", |row| row.text_or("/status/podIPs/0/ip", row.text_or("/status/podIP", NONE)).into()).wide(),
    Column::text("Node", |row| row.text_or("/spec/nodeName", NONE).into()).wide(),
    Column::text("Nominated Node", |row| row.text_or("/status/nominatedNodeName", NONE).into()).wide(),
    Column::text("Readiness Gates", readiness_gates).wide(),
];

fn readiness_gates(row: Row<'_>) -> Value {
    let gates = row.list("/spec/readinessGates");
    if gates.len() == 0 {
        return NONE.into();
    }
    let open = gates.clone().filter(|gate| holds(row.object, text(gate, "/conditionType"))).count();
    format!("{open}/{}", gates.len()).into()
}

/// The `conditions` of a row: whether the Pod has run to its end.
pub(in crate::table) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// The summary of the containers in a row (`printPod`).
#[derive(Debug, Default, PartialEq)]
struct Summary {
    reason: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<OffsetDateTime>,
}

/// Restarts of some containers.
#[derive(Clone, Copy, Debug, Default)]
struct Restarts {
    count: i64,
    last: Option<OffsetDateTime>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += integer(status, "/restartCount");
        self.last = self.last.max(clock::parse(text(status, "/lastState/terminated/finishedAt")));
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let phase = text(pod, "/status/phase");
        let mut summary = Self { reason: phase.to_owned(), ..Self::default() };
        if !text(pod, "/status/reason").is_empty() {
            text(pod, "/status/reason").clone_into(&mut summary.reason);
        }
        let gated = |condition: &Value| {
            text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated"
        };
        if list(pod, "/status/conditions").any(gated) {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let sidecars = list(pod, "/spec/initContainers").filter(|container| is_sidecar(container)).count();
        summary.containers = list(pod, "/spec/containers").len() + sidecars;

        let (all, of_sidecars, initializing) = summary.read_init_containers(pod);
        let mut restarts = all;
        if !initializing || holds(pod, "Initialized") {
            restarts = of_sidecars;
            summary.read_containers(pod, &mut restarts);
        }
        summary.restarts = restarts.count;
        summary.last_restart = restarts.last;
        if metadata::is_deleting(pod) {
            if text(pod, "/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if phase != "Succeeded" && phase != "Failed" {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Reads the init containers in order up to the first that is not done: restarts of all and of sidecars, and whether there
    /// is such a one.
    fn read_init_containers(&mut self, pod: &Value) -> (Restarts, Restarts, bool) {
        let (mut all, mut of_sidecars) = (Restarts::default(), Restarts::default());
        let declared = list(pod, "/spec/initContainers");
        for (at, status) in list(pod, "/status/initContainerStatuses").enumerate() {
            all.add(status);
            let named = |container: &&Value| container.get("name") == status.get("name");
            let sidecar = declared.clone().find(named).is_some_and(is_sidecar);
            if sidecar {
                of_sidecars.add(status);
            }
            let terminated = status.pointer("/state/terminated");
            let waiting = text(status, "/state/waiting/reason");
            if terminated.is_some_and(|terminated| integer(terminated, "/exitCode") == 0) {
                continue;
            }
            if sidecar && status.get("started") == Some(&Value::Bool(true)) {
                self.ready += usize::from(status.get("ready") == Some(&Value::Bool(true)));
                continue;
            }
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", end_of(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{at}/{}", declared.len()),
            };
            return (all, of_sidecars, true);
        }
        (all, of_sidecars, false)
    }

    /// Reads the containers; the first one has the last word.
    fn read_containers(&mut self, pod: &Value, restarts: &mut Restarts) {
        let (mut running, mut error) = (false, None);
        for status in list(pod, "/status/containerStatuses").rev() {
            restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.pointer("/state/terminated") {
                self.reason = end_of(terminated);
                if integer(terminated, "/exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status.get("ready") == Some(&Value::Bool(true)) && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            match error {
                _ if running && holds(pod, "Ready") => "Running".clone_into(&mut self.reason),
                Some(error) => self.reason = error,
                None if running => "NotReady".clone_into(&mut self.reason),
                None => {}
            }
        }
    }
}

/// Whether an init container runs on beside the others.
fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

/// Why a container ended.
fn end_of(terminated: &Value) -> String {
    match (text(terminated, "/reason"), integer(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", integer(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(pod: Value) -> (String, String, i64) {
        let summary = Summary::of(&pod);
        (summary.reason, format!("{}/{}", summary.ready, summary.containers), summary.restarts)
    }

    #[test]
    fn a_pod_is_summed_up_as_kubectl_shows_it() {
        let spec =
            json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
        let running = json!({"name": "a", "ready": true, "restartCount": 1, "state": {"running": {}}});
        let exited = |code: i64| json!({"name": "b", "state": {"terminated": {"exitCode": code, "reason": ""}}});
        let done = json!({"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let backoff = json!({"name": "b", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        let init = |state: Value| json!([{"name": "i", "restartCount": 2, "state": state}]);
        let cases = [
            (json!({"phase": "Pending"}), "Pending", "0/2", 0),
            (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted", "0/2", 0),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
                "SchedulingGated",
                "0/2",
                0,
            ),
            (json!({"phase": "Running", "containerStatuses": [running, running]}), "Running", "2/2", 2),
            (json!({"phase": "Running", "containerStatuses": [running, backoff]}), "CrashLoopBackOff", "1/2", 5),
            (json!({"phase": "Running", "containerStatuses": [running, exited(3)]}), "ExitCode:3", "1/2", 1),
            (
                json!({"phase": "Running", "containerStatuses": [running, done], "conditions": ready}),
                "Running",
                "1/2",
                1,
            ),
            (json!({"phase": "Running", "containerStatuses": [running, done]}), "NotReady", "1/2", 1),
            (json!({"phase": "Succeeded", "containerStatuses": [done, done]}), "Completed", "0/2", 0),
            (json!({"phase": "Pending", "initContainerStatuses": init(json!({"running": {}}))}), "Init:0/2", "0/2", 2),
            (
                json!({"phase": "Pending", "initContainerStatuses": init(json!({"waiting": {"reason": "ImagePullBackOff"}}))}),
                "Init:ImagePullBackOff",
                "0/2",
                2,
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": init(json!({"terminated": {"exitCode": 1}}))}),
                "Init:ExitCode:1",
                "0/2",
                2,
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": init(json!({"terminated": {"exitCode": 1, "signal": 9}}))}),
                "Init:Signal:9",
                "0/2",
                2,
            ),
        ];
        for (status, reason, ready, restarts) in cases {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
            assert_eq!(summary(pod), (reason.to_owned(), ready.to_owned(), restarts), "{status}");
        }
    }

    #[test]
    fn sidecars_count_as_containers_and_deletion_shows() {
        let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]});
        let status = json!({
            "phase": "Running",
            "initContainerStatuses": [
                {"name": "s", "started": true, "ready": true, "restartCount": 3, "state": {"running": {}}}],
            "containerStatuses": [{"name": "a", "ready": true, "restartCount": 1, "state": {"running": {}}}],
        });
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        assert_eq!(summary(pod.clone()), ("Running".to_owned(), "2/2".to_owned(), 4));
        pod["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        assert_eq!(summary(pod.clone()).0, "Terminating");
        pod["status"]["reason"] = "NodeLost".into();
        assert_eq!(summary(pod).0, "Unknown");
    }
}
