use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    metadata,
    workloads::{
        Behaviour, Subject,
        fields::{condition, count, is_true, text},
        kind::{Key, Kind},
        model::Model,
    },
};

fn job(model: &mut Model, more: &Value) -> Key {
    let spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 2, "completionMode": "NonIndexed", "template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}});
    let spec = chandler_devcluster_apimachinery::apply::patch::merge_patch(&spec, more);
    model.create(Kind::Job, json!({"metadata": {"name": "j"}, "spec": spec}))
}

fn reason<'a>(model: &'a Model, key: &Key, condition_type: &str) -> &'a str {
    condition(model.get(key), condition_type).map(|condition| text(condition, "/reason")).unwrap_or_default()
}

#[test]
fn a_job_completes_when_enough_pods_have_succeeded() {
    for (more, pods) in [
        (json!({}), 1),
        (json!({"completions": 5, "parallelism": 2}), 5),
        (json!({"completions": null, "parallelism": 3}), 3),
    ] {
        let mut model = Model::new();
        let key = job(&mut model, &more);
        model.settle();
        let status = model.get(&key)["status"].clone();
        assert_eq!((count(&status, "/succeeded"), count(&status, "/active")), (pods, 0), "{more}");
        assert_eq!(reason(&model, &key, "SuccessCriteriaMet"), "CompletionsReached");
        assert_eq!(reason(&model, &key, "Complete"), "CompletionsReached");
        assert!(!text(&status, "/completionTime").is_empty());
        assert!(model.all(Kind::Pod).iter().all(|pod| text(pod, "/status/phase") == "Succeeded"));
        assert_eq!(model.story(Kind::Job), ["SuccessfulCreate", "Completed"]);
        let before = model.writes;
        model.look_at_all();
        model.settle();
        assert_eq!(model.writes, before);
    }
}

#[test]
fn an_indexed_job_has_a_pod_for_each_index() {
    let mut model = Model::new();
    let key = job(&mut model, &json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2}));
    model.settle();
    assert_eq!(model.get(&key)["status"]["completedIndexes"], "0-3");
    assert_eq!(count(model.get(&key), "/status/succeeded"), 4);
    let mut hosts: Vec<&str> = model.all(Kind::Pod).into_iter().map(|pod| text(pod, "/spec/hostname")).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["j-0", "j-1", "j-2", "j-3"]);
    let pod = model.all(Kind::Pod)[0];
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
}

#[test]
fn a_job_that_fails_too_often_has_failed() {
    let mut model = Model::new();
    model.rules.behave(Subject::object("Job", "n", "j"), Behaviour::Fail);
    let key = job(&mut model, &json!({}));
    model.settle();
    assert_eq!((count(model.get(&key), "/status/failed"), model.all(Kind::Pod).len()), (3, 3));
    assert_eq!(reason(&model, &key, "FailureTarget"), "BackoffLimitExceeded");
    assert_eq!(reason(&model, &key, "Failed"), "BackoffLimitExceeded");
    assert_eq!(model.story(Kind::Job), ["SuccessfulCreate", "BackoffLimitExceeded"]);
    // A Job ends once.
    model.rules.behave(Subject::object("Job", "n", "j"), Behaviour::Healthy);
    model.look_at_all();
    model.settle();
    assert!(!is_true(model.get(&key), "Complete"));
}

#[test]
fn a_job_that_is_mended_in_time_completes() {
    let mut model = Model::new();
    model.rules.behave(Subject::object("Job", "n", "j"), Behaviour::Stall);
    let key = job(&mut model, &json!({}));
    model.settle();
    assert_eq!(count(model.get(&key), "/status/active"), 1);
    model.rules.behave(Subject::object("Job", "n", "j"), Behaviour::Healthy);
    model.look_at_all();
    model.settle();
    assert!(is_true(model.get(&key), "Complete"));
}

#[test]
fn a_job_is_stopped_at_its_deadline() {
    let mut model = Model::new();
    model.rules.behave(Subject::object("Job", "n", "j"), Behaviour::Stall);
    let key = job(&mut model, &json!({"activeDeadlineSeconds": 30}));
    model.settle();
    model.pass(Duration::from_secs(31));
    assert_eq!(reason(&model, &key, "Failed"), "DeadlineExceeded");
    assert_eq!(count(model.get(&key), "/status/failed"), 1, "what was stopped has failed");
    assert!(model.all(Kind::Pod).is_empty());
}

#[test]
fn a_job_is_deleted_after_its_ttl() {
    let mut model = Model::new();
    let key = job(&mut model, &json!({"ttlSecondsAfterFinished": 60}));
    model.settle();
    assert!(is_true(model.get(&key), "Complete"));
    model.pass(Duration::from_secs(61));
    assert!(model.cache.get(&key).is_none() && model.all(Kind::Pod).is_empty());
}

#[test]
fn a_suspended_job_has_no_pods() {
    let mut model = Model::new();
    model.rules.behave(Subject::kind("Pod"), Behaviour::Stall);
    let key = job(&mut model, &json!({"suspend": true}));
    model.settle();
    assert_eq!(reason(&model, &key, "Suspended"), "JobSuspended");
    assert!(model.all(Kind::Pod).is_empty() && metadata::text(model.get(&key), "startTime").is_empty());
    model.change(&key, &json!({"spec": {"suspend": false}}));
    model.settle();
    assert_eq!((reason(&model, &key, "Suspended"), model.all(Kind::Pod).len()), ("JobResumed", 1));
    model.change(&key, &json!({"spec": {"suspend": true}}));
    model.settle();
    assert!(model.all(Kind::Pod).is_empty());
    assert_eq!(model.story(Kind::Job), ["Suspended", "Resumed", "SuccessfulCreate", "SuccessfulDelete"]);
}
