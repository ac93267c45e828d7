//! Statuses of Pods, as the kubelet writes them.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    metadata,
    workloads::{
        behaviour::is_unpullable,
        conditions::Conditions,
        fields::{Status, count, hexadecimal, list, text},
    },
};

/// The state of the containers of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// They are being created.
    Creating,
    /// Their images cannot be pulled.
    PullingInVain,
    /// They run.
    Running,
    /// They ended with an error and wait to be started again.
    BackingOff,
    /// They ended with an error.
    Failed,
    /// They ended well.
    Succeeded,
}

/// The address of the node of the simulation (TEST-NET-2, RFC 5737).
pub(in crate::workloads) const NODE_ADDRESS: &str = "198.51.100.1";

/// The status of a Pod whose containers do this.
pub(super) fn status(pod: &Value, doing: Doing, now: &str) -> Value {
    let started = Some(text(pod, "/status/startTime")).filter(|time| !time.is_empty()).unwrap_or(now);
    let has_network = !matches!(doing, Doing::Creating);
    let init_held = doing == Doing::PullingInVain && names(pod, "initContainers", bad_image).next().is_some();
    let phase = match doing {
        Doing::Creating | Doing::PullingInVain => "Pending",
        Doing::Running | Doing::BackingOff => "Running",
        Doing::Failed => "Failed",
        Doing::Succeeded => "Succeeded",
    };
    let init: Vec<Value> = list(pod, "/spec/initContainers")
        .iter()
        .map(|container| init_status(pod, container, doing, init_held, now))
        .collect();
    let containers: Vec<Value> = list(pod, "/spec/containers")
        .iter()
        .map(|container| container_status(pod, container, doing, init_held, now))
        .collect();
    let mut status = Status::default()
        .set("phase", phase)
        .set("conditions", conditions(pod, doing, init_held, now).build().unwrap_or_default())
        .set("hostIP", NODE_ADDRESS)
        .set("hostIPs", json!([{"ip": NODE_ADDRESS}]))
        .set("startTime", started)
        .set("containerStatuses", containers);
    if !init.is_empty() {
        status = status.set("initContainerStatuses", init);
    }
    if has_network {
        let address = address(pod);
        status = status.set("podIPs", json!([{"ip": &address}])).set("podIP", address);
    }
    for kept in ["qosClass", "observedGeneration"] {
        status = status.set_some(kept, pod.pointer(&format!("/status/{kept}")).cloned());
    }
    status.build()
}

fn names<'a>(pod: &'a Value, field: &str, which: impl Fn(&Value) -> bool) -> impl Iterator<Item = &'a str> {
    let containers = pod.get("spec").and_then(|spec| spec.get(field)?.as_array()).into_iter().flatten();
    containers.filter(move |container| which(container)).map(|container| text(container, "/name"))
}

fn bad_image(container: &Value) -> bool {
    is_unpullable(text(container, "/image"))
}

fn conditions(pod: &Value, doing: Doing, init_held: bool, now: &str) -> Conditions {
    let mut conditions = Conditions::with_messages(pod, now);
    let sandbox =
        if matches!(doing, Doing::Running | Doing::BackingOff | Doing::PullingInVain) { "True" } else { "False" };
    conditions.set("PodReadyToStartContainers", sandbox, "", "");
    match (init_held, doing) {
        (true, _) => {
            let held: Vec<&str> = names(pod, "initContainers", |_| true).collect();
            let message = format!("containers with incomplete status: [{}]", held.join(" "));
            conditions.set("Initialized", "False", "ContainersNotInitialized", &message);
        }
        (false, Doing::Succeeded) => conditions.set("Initialized", "True", "PodCompleted", ""),
        (false, _) => conditions.set("Initialized", "True", "", ""),
    }
    let unready: Vec<&str> = names(pod, "containers", |_| true).collect();
    let unready = format!("containers with unready status: [{}]", unready.join(" "));
    for condition_type in ["Ready", "ContainersReady"] {
        match doing {
            Doing::Running => conditions.set(condition_type, "True", "", ""),
            Doing::Succeeded => conditions.set(condition_type, "False", "PodCompleted", ""),
            Doing::Failed => conditions.set(condition_type, "False", "PodFailed", ""),
            _ => conditions.set(condition_type, "False", "ContainersNotReady", &unready),
        }
    }
    if doing == Doing::Running {
        hold_by_readiness_gates(pod, &mut conditions);
    }
    conditions.set("PodScheduled", "True", "", "");
    conditions
}

/// Conditions that a Pod names as gates are set by others.
fn hold_by_readiness_gates(pod: &Value, conditions: &mut Conditions) {
    let gates = list(pod, "/spec/readinessGates").iter().map(|gate| text(gate, "/conditionType"));
    let open = |gate: &str| conditions.get(gate).is_some_and(|condition| text(condition, "/status") == "True");
    let shut: Vec<String> = gates
        .filter(|gate| !open(gate))
        .map(|gate| format!("corresponding condition of pod readiness gate {gate:?} does not exist."))
        .collect();
    if !shut.is_empty() {
        conditions.set("Ready", "False", "ReadinessGatesNotReady", &shut.join(", "));
    }
}

/// The previous status of a container.
fn known<'a>(pod: &'a Value, container: &Value) -> Option<&'a Value> {
    let name = text(container, "/name");
    let all = list(pod, "/status/containerStatuses").iter().chain(list(pod, "/status/initContainerStatuses"));
    all.into_iter().find(|status| text(status, "/name") == name)
}

fn init_status(pod: &Value, container: &Value, doing: Doing, held: bool, now: &str) -> Value {
    if held || doing == Doing::Creating {
        let state =
            if held && bad_image(container) { pulling_in_vain(container) } else { waiting("PodInitializing", "") };
        return entry(pod, container, state, false, false, 0);
    }
    if text(container, "/restartPolicy") == "Always" {
        return container_status(pod, container, doing, false, now);
    }
    let before = known(pod, container).and_then(|known| known.pointer("/state/terminated")).cloned();
    let ended = before.unwrap_or_else(|| terminated(pod, container, 0, "Completed", now, now));
    entry(pod, container, json!({"terminated": ended}), true, false, 0)
}

fn container_status(pod: &Value, container: &Value, doing: Doing, held: bool, now: &str) -> Value {
    let before = known(pod, container);
    let restarts = before.map_or(0, |status| count(status, "/restartCount"));
    let started = before.map(|status| text(status, "/state/running/startedAt")).unwrap_or_default();
    let started = if started.is_empty() { now } else { started };
    match doing {
        Doing::Creating => {
            let reason = if text(pod, "/spec/initContainers/0/name").is_empty() {
                "ContainerCreating"
            } else {
                "PodInitializing"
            };
            entry(pod, container, waiting(reason, ""), false, false, restarts)
        }
        Doing::PullingInVain if held => entry(pod, container, waiting("PodInitializing", ""), false, false, restarts),
        Doing::PullingInVain => entry(pod, container, pulling_in_vain(container), false, false, restarts),
        Doing::Running => {
            // A container that recovers from a crash has been restarted once more.
            let crashed = before.is_some_and(|status| {
                text(status, "/state/waiting/reason") == "CrashLoopBackOff"
                    || status.pointer("/state/terminated").is_some()
            });
            let state = json!({"running": {"startedAt": started}});
            let mut entry = entry(pod, container, state, true, true, restarts + i64::from(crashed));
            keep_last_state(&mut entry, before);
            entry
        }
        Doing::BackingOff => {
            // It was started once more, and ended.
            let restarts = restarts + 1;
            let message = format!(
                "back-off {} restarting failed container={} pod={}",
                back_off(restarts),
                text(container, "/name"),
                full_name(pod)
            );
            let mut entry = entry(pod, container, waiting("CrashLoopBackOff", &message), false, false, restarts);
            let last = terminated(pod, container, 1, "Error", started, now);
            metadata::as_map(&mut entry).insert("lastState".to_owned(), json!({"terminated": last}));
            entry
        }
        Doing::Failed | Doing::Succeeded => {
            let (code, reason) = if doing == Doing::Failed { (1, "Error") } else { (0, "Completed") };
            let ended = terminated(pod, container, code, reason, started, now);
            entry(pod, container, json!({"terminated": ended}), false, false, restarts)
        }
    }
}

fn entry(pod: &Value, container: &Value, state: Value, ready: bool, started: bool, restarts: i64) -> Value {
    let image = text(container, "/image");
    let exists = state.get("waiting").is_none() || restarts > 0;
    let mut entry = json!({
        "name": text(container, "/name"), "image": image, "imageID": "",
        "ready": ready, "started": started, "restartCount": restarts, "state": state, "lastState": {},
    });
    if exists {
        let fields = metadata::as_map(&mut entry);
        fields.insert("imageID".to_owned(), format!("{image}@sha256:{}", digest(&[image])).into());
        fields.insert("containerID".to_owned(), container_id(pod, container, restarts).into());
    }
    entry
}

fn keep_last_state(entry: &mut Value, before: Option<&Value>) {
    if let Some(last) = before.and_then(|before| before.get("lastState")) {
        metadata::as_map(entry).insert("lastState".to_owned(), last.clone());
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    let mut state = Map::new();
    state.insert("reason".to_owned(), reason.into());
    if !message.is_empty() {
        state.insert("message".to_owned(), message.into());
    }
    json!({"waiting": state})
}

fn pulling_in_vain(container: &Value) -> Value {
    waiting("ImagePullBackOff", &format!("Back-off pulling image {:?}", text(container, "/image")))
}

fn terminated(pod: &Value, container: &Value, code: i64, reason: &str, started: &str, finished: &str) -> Value {
    json!({
        "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished,
        "containerID": container_id(pod, container, 0),
    })
}

fn container_id(pod: &Value, container: &Value, restarts: i64) -> String {
    let restarts = restarts.to_string();
    format!("devcluster://{}", digest(&[metadata::uid(pod), text(container, "/name"), &restarts]))
}

fn digest(parts: &[&str]) -> String {
    hexadecimal(&Sha256::digest(parts.join("/")))
}

/// The Pod's address: one of 10.128.0.0/9 that follows from its uid, so that it stays and hardly ever collides.
fn address(pod: &Value) -> String {
    let known = text(pod, "/status/podIP");
    if !known.is_empty() {
        return known.to_owned();
    }
    let digest: [u8; 32] = Sha256::digest(metadata::uid(pod)).into();
    let [first, second, third, ..] = digest;
    format!("10.{}.{second}.{}", 128 | first, third.clamp(1, 254))
}

/// How the kubelet names a Pod in messages.
pub(super) fn full_name(pod: &Value) -> String {
    format!("{}_{}({})", metadata::name(pod), metadata::namespace(pod), metadata::uid(pod))
}

/// Seconds between a crash and the next start: ten, doubled each time, five minutes at most.
pub(super) fn back_off_seconds(restarts: i64) -> u64 {
    let doublings = u32::try_from(restarts.clamp(1, 6) - 1).unwrap_or(0);
    (10_u64 << doublings).min(300)
}

fn back_off(restarts: i64) -> String {
    let seconds = back_off_seconds(restarts);
    let (minutes, rest) = (seconds / 60, seconds % 60);
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{rest}s") }
}
