use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    metadata,
    workloads::{
        Behaviour, Subject,
        fields::{list, text},
        kind::{Key, Kind},
        model::Model,
    },
};

fn cron_job(model: &mut Model, more: &Value) -> Key {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}});
    let spec = json!({"schedule": "* * * * *", "jobTemplate": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"completions": 1, "parallelism": 1, "template": pod}}});
    let spec = chandler_devcluster_apimachinery::apply::patch::merge_patch(&spec, more);
    model.create(Kind::CronJob, json!({"metadata": {"name": "c"}, "spec": spec}))
}

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn jobs_come_by_the_schedule_and_the_oldest_go() {
    let mut model = Model::new();
    let key = cron_job(&mut model, &json!({"successfulJobsHistoryLimit": 2}));
    model.settle();
    assert!(model.all(Kind::Job).is_empty(), "not yet");
    for round in 1..=4 {
        model.pass(MINUTE);
        assert_eq!(model.all(Kind::Job).len(), round.min(2));
    }
    let job = *model.all(Kind::Job).last().unwrap();
    let minutes = model.now.unix_timestamp() / 60;
    assert_eq!(metadata::name(job), format!("c-{minutes}"));
    assert_eq!(job["metadata"]["labels"]["a"], "b");
    let scheduled = metadata::annotation(job, "batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert_eq!(scheduled, Some(text(model.get(&key), "/status/lastScheduleTime")));
    assert!(!text(model.get(&key), "/status/lastSuccessfulTime").is_empty());
    let before = model.writes;
    model.look_at_all();
    model.settle();
    assert_eq!(model.writes, before);
}

#[test]
fn a_running_job_forbids_the_next_or_is_replaced() {
    for (policy, expected) in [("Allow", 3), ("Forbid", 1), ("Replace", 1)] {
        let mut model = Model::new();
        model.rules.behave(Subject::kind("CronJob"), Behaviour::Stall);
        let key = cron_job(&mut model, &json!({"concurrencyPolicy": policy}));
        model.settle();
        (0..3).for_each(|_| model.pass(MINUTE));
        assert_eq!(list(model.get(&key), "/status/active").len(), expected, "{policy}");
        assert_eq!(model.all(Kind::Job).len(), expected, "{policy}");
    }
}

#[test]
fn a_suspended_or_unreadable_schedule_starts_nothing() {
    for (more, story) in [
        (json!({"suspend": true}), vec![]),
        (json!({"schedule": "x"}), vec!["UnparseableSchedule"]),
        (json!({"timeZone": "Europe/Berlin"}), vec!["UnknownTimeZone"]),
    ] {
        let mut model = Model::new();
        cron_job(&mut model, &more);
        model.settle();
        (0..3).for_each(|_| model.pass(MINUTE));
        assert!(model.all(Kind::Job).is_empty(), "{more}");
        assert_eq!(model.story(Kind::CronJob), story, "{more}");
    }
}
