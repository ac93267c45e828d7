//! Controllers of Pods.

use serde_json::Value;

use crate::{
    metadata,
    table::{
        cell::{AGE, NAME, NONE, UNSET, duration, holds, integer, labels, selector, selector_text, text},
        column::{Column, Row},
    },
};

const CONTAINERS: Column =
    Column::text("Containers", |row| row.containers("/spec/template/spec/containers", "/name")).wide();
const IMAGES: Column = Column::text("Images", |row| row.containers("/spec/template/spec/containers", "/image")).wide();
const SELECTOR: Column = Column::text("Selector", |row| selector(row.object.pointer("/spec/selector")).into()).wide();

/// `ready/wanted`
fn readiness(row: Row<'_>) -> Value {
    format!("{}/{}", row.integer("/status/readyReplicas"), row.integer("/spec/replicas")).into()
}

/// Deployments.
pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    Column::text("Ready", readiness),
    Column::text("Up-to-date", |row| row.integer("/status/updatedReplicas").into()),
    Column::text("Available", |row| row.integer("/status/availableReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    Column::text("Selector", |row| selector_text(row.object.pointer("/spec/selector")).into()).wide(),
];

/// StatefulSets.
pub(super) const STATEFUL_SET: &[Column] = &[NAME, Column::text("Ready", readiness), AGE, CONTAINERS, IMAGES];

/// ReplicaSets.
pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    Column::integer("Desired", |row| row.integer("/spec/replicas").into()),
    Column::integer("Current", |row| row.integer("/status/replicas").into()),
    Column::integer("Ready", |row| row.integer("/status/readyReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// ReplicationControllers, whose selector is a map.
pub(super) const REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    Column::integer("Desired", |row| row.integer("/spec/replicas").into()),
    Column::integer("Current", |row| row.integer("/status/replicas").into()),
    Column::integer("Ready", |row| row.integer("/status/readyReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    Column::text("Selector", |row| labels(row.object.pointer("/spec/selector")).into()).wide(),
];

/// DaemonSets.
pub(super) const DAEMON_SET: &[Column] = &[
    NAME,
    Column::integer("Desired", |row| row.integer("/status/desiredNumberScheduled").into()),
    Column::integer("Current", |row| row.integer("/status/currentNumberScheduled").into()),
    Column::integer("Ready", |row| row.integer("/status/numberReady").into()),
    Column::integer("Up-to-date", |row| row.integer("/status/updatedNumberScheduled").into()),
    Column::integer("Available", |row| row.integer("/status/numberAvailable").into()),
    Column::text("Node Selector", |row| labels(row.object.pointer("/spec/template/spec/nodeSelector")).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// Jobs.
pub(super) const JOB: &[Column] = &[
    NAME,
    Column::text("Status", |row| job_status(row).into()),
    Column::text("Completions", completions),
    Column::text("Duration", job_duration),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn job_status(row: Row<'_>) -> &'static str {
    let first = |wanted: &[&'static str]| wanted.iter().copied().find(|wanted| holds(row.object, wanted));
    let ended = first(&["Complete", "Failed"]);
    let deleted = || metadata::is_deleting(row.object).then_some("Terminating");
    ended.or_else(deleted).or_else(|| first(&["Suspended", "FailureTarget", "SuccessCriteriaMet"])).unwrap_or("Running")
}

fn completions(row: Row<'_>) -> Value {
    let succeeded = row.integer("/status/succeeded");
    let wanted = row.object.pointer("/spec/completions").and_then(Value::as_i64);
    match (wanted, row.integer("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}").into(),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}").into(),
        (None, _) => format!("{succeeded}/1").into(),
    }
}

fn job_duration(row: Row<'_>) -> Value {
    let time = |pointer: &str| crate::clock::parse(row.text(pointer));
    match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => "".into(),
        (Some(start), end) => duration((end.unwrap_or(row.now) - start).whole_seconds(), row.now).into(),
    }
}

/// CronJobs.
pub(super) const CRON_JOB: &[Column] = &[
    NAME,
    Column::text("Schedule", |row| row.text("/spec/schedule").into()),
    Column::text("Timezone", |row| row.text_or("/spec/timeZone", NONE).into()),
    Column::boolean("Suspend", |row| match row.flag("/spec/suspend") {
        Some(true) => "True".into(),
        Some(false) => "False".into(),
        None => UNSET.into(),
    }),
    Column::integer("Active", |row| row.count("/status/active").into()),
    Column::text("Last Schedule", |row| match row.text("/status/lastScheduleTime") {
        "" => NONE.into(),
        _ => row.since("/status/lastScheduleTime").into(),
    }),
    AGE,
    Column::text("Containers", |row| row.containers("/spec/jobTemplate/spec/template/spec/containers", "/name")).wide(),
    Column::text("Images", |row| row.containers("/spec/jobTemplate/spec/template/spec/containers", "/image")).wide(),
    Column::text("Selector", |row| selector(row.object.pointer("/spec/jobTemplate/spec/selector")).into()).wide(),
];

/// ControllerRevisions.
pub(super) const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    Column::text("Controller", |row| {
        let mut owners = row.list("/metadata/ownerReferences");
        let owner = owners.find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
        let Some(owner) = owner else { return NONE.into() };
        let kind = text(owner, "/kind").to_lowercase();
        match text(owner, "/apiVersion").split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "/name")).into(),
            None => format!("{kind}/{}", text(owner, "/name")).into(),
        }
    }),
    Column::text("Revision", |row| integer(row.object, "/revision").into()),
    AGE,
];

/// PodTemplates.
pub(super) const POD_TEMPLATE: &[Column] = &[
    NAME,
    Column::text("Containers", |row| row.containers("/template/spec/containers", "/name")),
    Column::text("Images", |row| row.containers("/template/spec/containers", "/image")),
    Column::text("Pod Labels", |row| labels(row.object.pointer("/template/metadata/labels")).into()),
];
