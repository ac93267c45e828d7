use std::time::Duration;

use serde_json::{Value, json};

use crate::workloads::{
    Behaviour, Subject,
    behaviour::ANNOTATION,
    fields::{condition, count, text},
    kind::{Key, Kind},
    model::Model,
};

fn pod(model: &mut Model, more: &Value) -> Key {
    let object = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    model.create(Kind::Pod, chandler_devcluster_apimachinery::apply::patch::merge_patch(&object, more))
}

fn annotated(behaviour: &str) -> Value {
    json!({"metadata": {"annotations": {ANNOTATION: behaviour}}})
}

fn waiting<'a>(model: &'a Model, key: &Key) -> &'a str {
    text(model.get(key), "/status/containerStatuses/0/state/waiting/reason")
}

/// Phase, whether it is ready, and what the container waits for.
fn shown<'a>(model: &'a Model, key: &Key) -> (&'a str, &'a str, &'a str) {
    let pod = model.get(key);
    let ready = condition(pod, "Ready").map(|ready| text(ready, "/status")).unwrap_or_default();
    (text(pod, "/status/phase"), ready, waiting(model, key))
}

#[test]
fn a_pod_reaches_the_simulated_state() {
    let never = |behaviour: &str| {
        let mut more = annotated(behaviour);
        more["spec"] = json!({"restartPolicy": "Never"});
        more
    };
    let cases = [
        (json!({}), ("Running", "True", "")),
        (annotated("stall"), ("Pending", "False", "ContainerCreating")),
        (annotated("image-pull"), ("Pending", "False", "ImagePullBackOff")),
        (annotated("crash-loop"), ("Running", "False", "CrashLoopBackOff")),
        (annotated("fail"), ("Running", "False", "CrashLoopBackOff")),
        (never("fail"), ("Failed", "False", "")),
        (never("crash-loop"), ("Failed", "False", "")),
        (never("healthy"), ("Running", "True", "")),
        (
            json!({"spec": {"containers": [{"name": "c", "image": "x.invalid/y"}]}}),
            ("Pending", "False", "ImagePullBackOff"),
        ),
        (json!({"spec": {"nodeSelector": {"disk": "ssd"}}}), ("Pending", "", "")),
        (json!({"spec": {"schedulerName": "another"}}), ("Pending", "", "")),
        (json!({"spec": {"readinessGates": [{"conditionType": "example.com/gate"}]}}), ("Running", "False", "")),
    ];
    for (more, expected) in cases {
        let mut model = Model::new();
        let key = pod(&mut model, &more);
        model.settle();
        assert_eq!(shown(&model, &key), expected, "{more}");
        let before = model.writes;
        model.look_at_all();
        model.settle();
        assert_eq!(model.writes, before, "{more}");
    }
}

#[test]
fn an_unschedulable_pod_reports_it() {
    let mut model = Model::new();
    let key = pod(&mut model, &json!({"spec": {"nodeSelector": {"disk": "ssd"}}}));
    model.settle();
    let scheduled = condition(model.get(&key), "PodScheduled").unwrap();
    assert_eq!(scheduled["message"], "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
    assert_eq!(model.story(Kind::Pod), ["FailedScheduling"]);
    model.change(&crate::workloads::pods::node_key(), &json!({"metadata": {"labels": {"disk": "ssd"}}}));
    model.settle();
    assert_eq!(shown(&model, &key), ("Running", "True", ""));
}

#[test]
fn a_crash_loop_backs_off_ever_longer_and_ends_when_it_is_mended() {
    let mut model = Model::new();
    let key = pod(&mut model, &annotated("crash-loop"));
    model.settle();
    assert_eq!(model.story(Kind::Pod), ["Scheduled", "Pulled", "Created", "Started", "BackOff"]);
    let restarts = |model: &Model| count(model.get(&key), "/status/containerStatuses/0/restartCount");
    for (wait, expected) in [(10, 2), (20, 3), (40, 4), (80, 5), (160, 6), (300, 7), (300, 8)] {
        model.pass(Duration::from_secs(wait) / 2);
        assert_eq!(restarts(&model), expected - 1, "not yet");
        model.pass(Duration::from_secs(wait) / 2);
        assert_eq!(restarts(&model), expected);
    }
    let last = "/status/containerStatuses/0/lastState/terminated/exitCode";
    assert_eq!(count(model.get(&key), last), 1);
    let message = text(model.get(&key), "/status/containerStatuses/0/state/waiting/message");
    assert!(message.starts_with("back-off 5m0s restarting failed container=c pod=p_n("), "{message}");
    model.change(&key, &json!({"metadata": {"annotations": null}}));
    model.settle();
    assert_eq!(shown(&model, &key), ("Running", "True", ""));
    assert_eq!((restarts(&model), count(model.get(&key), last)), (9, 1));
}

#[test]
fn init_containers_end_before_the_others_start() {
    let mut model = Model::new();
    let init = |image: &str| {
        json!({"spec": {"initContainers": [
            {"name": "i", "image": image}, {"name": "s", "image": "sidecar", "restartPolicy": "Always"}]}})
    };
    let key = pod(&mut model, &init("busybox"));
    model.settle();
    let status = &model.get(&key)["status"];
    assert_eq!(text(status, "/initContainerStatuses/0/state/terminated/reason"), "Completed");
    assert!(status.pointer("/initContainerStatuses/1/state/running").is_some());
    let mut model = Model::new();
    let key = pod(&mut model, &init("x.invalid/y"));
    model.settle();
    assert_eq!(text(model.get(&key), "/status/initContainerStatuses/0/state/waiting/reason"), "ImagePullBackOff");
    assert_eq!(waiting(&model, &key), "PodInitializing");
    assert_eq!(condition(model.get(&key), "Initialized").unwrap()["status"], "False");
}

#[test]
fn running_pods_keep_running_if_only_new_ones_stall() {
    let mut model = Model::new();
    let key = pod(&mut model, &json!({}));
    model.settle();
    model.rules.behave(Subject::kind("Pod"), Behaviour::Stall);
    model.look_at_all();
    model.settle();
    assert_eq!(shown(&model, &key), ("Running", "True", ""));
}
