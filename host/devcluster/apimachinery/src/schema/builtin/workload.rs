//! Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs.

use serde_json::Value;

use super::{immutable, pod};
use crate::schema::{
    error::FieldError,
    fields::{list, text},
    path::FieldPath,
    selector,
};

/// Validates a controller of the group `apps`.
pub(super) fn controller(
    kind: &str,
    new: &Value,
    old: Option<&Value>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !matches!(kind, "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") {
        return;
    }
    let selector_path = path.field("selector");
    let template_path = path.field("template");
    let template = new.get("template").unwrap_or(&Value::Null);
    match new.get("selector").filter(|selector| !selector.is_null()) {
        None => errors.push(FieldError::required(&selector_path, "")),
        Some(selector) => {
            selector::selector(selector, &selector_path, errors);
            if selector::is_empty(selector) {
                let detail = format!("empty selector is invalid for {}", kind.to_lowercase());
                errors.push(FieldError::invalid(&selector_path, selector.clone(), detail));
            } else if !selects(selector, template.pointer("/metadata/labels")) {
                let labels = template
                    .pointer("/metadata/labels")
                    .cloned()
                    .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                let metadata_path = template_path.field("metadata");
                let detail = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid(&metadata_path.field("labels"), labels, detail));
            }
        }
    }
    if new.get("replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas < 0) {
        let value = new.get("replicas").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path.field("replicas"), value, "must be greater than or equal to 0"));
    }
    let claims = if kind == "StatefulSet" { list(new, "volumeClaimTemplates") } else { &[] };
    pod::template(template, &["Always"], claims, &template_path, errors);
    strategy(kind, new, path, errors);
    if kind == "StatefulSet" {
        stateful_set_update(new, old, path, errors);
    } else {
        immutable::field("selector", new, old, path, errors);
    }
}

/// Refuses the parameters of rolling updates beside another strategy.
fn strategy(kind: &str, new: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let (name, other) = match kind {
        "Deployment" => ("strategy", "Recreate"),
        "StatefulSet" => ("updateStrategy", "OnDelete"),
        _ => return,
    };
    let Some(strategy) = new.get(name).filter(|strategy| text(strategy, "type") == other) else { return };
    let Some(parameters) = strategy.get("rollingUpdate").filter(|parameters| !parameters.is_null()) else { return };
    let path = path.field(name);
    let path = path.field("rollingUpdate");
    errors.push(if kind == "Deployment" {
        FieldError::forbidden(&path, "may not be specified when strategy `type` is 'Recreate'")
    } else {
        FieldError::invalid(&path, parameters.clone(), "only allowed for updateStrategy 'RollingUpdate'")
    });
}

fn stateful_set_update(new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const MUTABLE: &[&str] = &[
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    ];
    let (Some(new), Some(old)) = (new.as_object(), old.and_then(Value::as_object)) else { return };
    let fixed = |spec: &serde_json::Map<String, Value>| {
        let mut spec = spec.clone();
        spec.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        spec
    };
    if fixed(new) != fixed(old) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                      'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Whether a label selector selects these labels.
fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let exact = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut exact = exact.map(|(key, value)| label(key) == value.as_str());
    let mut expressions = list(selector, "matchExpressions").iter().map(|expression| {
        let found = label(text(expression, "key"));
        let among = || list(expression, "values").iter().any(|value| value.as_str() == found);
        match text(expression, "operator") {
            "In" => found.is_some() && among(),
            "NotIn" => found.is_none() || !among(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    });
    exact.all(|holds| holds) && expressions.all(|holds| holds)
}

/// Validates a Job.
pub(super) fn job(new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let template = new.get("template").unwrap_or(&Value::Null);
    pod::template(template, &["Never", "OnFailure"], &[], &path.field("template"), errors);
    for name in ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
        if let Some(value) = new.get(name).filter(|value| value.as_i64().is_some_and(|value| value < 0)) {
            errors.push(FieldError::invalid(&path.field(name), value.clone(), "must be greater than or equal to 0"));
        }
    }
    immutable::field("selector", new, old, path, errors);
    // A suspended job that never started may still be given other resources and places; jobs are never started partially.
    if old.is_some_and(|old| old.get("suspend") != Some(&Value::Bool(true))) {
        immutable::field("template", new, old, path, errors);
    }
    immutable::field("completionMode", new, old, path, errors);
}

/// Validates a CronJob.
pub(super) fn cron_job(new: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let schedule = text(new, "schedule");
    let fields = schedule.split_whitespace().count();
    if schedule.is_empty() {
        errors.push(FieldError::required(&path.field("schedule"), ""));
    } else if fields != 5 && !schedule.starts_with('@') {
        let detail = format!("expected exactly 5 fields, found {fields}: {schedule}");
        errors.push(FieldError::invalid(&path.field("schedule"), schedule, detail));
    }
    match text(new, "concurrencyPolicy") {
        "" | "Allow" | "Forbid" | "Replace" => {}
        other => {
            errors.push(FieldError::not_supported(
                &path.field("concurrencyPolicy"),
                other,
                ["Allow", "Forbid", "Replace"],
            ));
        }
    }
    let template_path = path.field("jobTemplate");
    let job_path = template_path.field("spec");
    job(new.pointer("/jobTemplate/spec").unwrap_or(&Value::Null), None, &job_path, errors);
}
