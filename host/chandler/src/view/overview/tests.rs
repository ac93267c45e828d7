use chandler_api::{ChangeCause, PendingChange};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;
use crate::view::situations::agreement::agree;

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn revision(number: usize, outcome: &str, version: &str) -> Value {
    json!({"number": number, "outcome": outcome, "version": version, "contentDigest": "sha256:1", "configDigest": "",
        "installNamespace": "n", "provisioner": {"class": "c", "digest": ""}, "releaseDigest": "sha256:2",
        "source": {"type": "image"}})
}

fn deployment(spec: &Value, status: &Value) -> BundleDeployment {
    let mut object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "harbour", "generation": 1},
        "spec": {"installNamespace": "n", "source": {"type": "image", "image": {"ref": "example.com/harbour:v1"}}},
        "status": {"observedGeneration": 1},
    });
    for (part, values) in [("spec", spec), ("status", status)] {
        object[part].as_object_mut().unwrap().extend(values.as_object().cloned().unwrap_or_default());
    }
    serde_json::from_value(object).unwrap()
}

/// A release that runs, and what the controller reports about the next one.
fn over_healthy(progressing: (&str, &str), candidate: Option<&str>) -> Value {
    let (status, reason) = progressing;
    let candidate = candidate.map(|version| json!({"version": version, "releaseDigest": "sha256:3"}));
    json!({"history": [revision(1, "Succeeded", "0.1.0")], "candidate": candidate, "conditions": [
        condition("Installed", "True", "InstallationSucceeded", ""),
        condition("Healthy", "True", "Healthy", "BundleDeployment is healthy"),
        condition("Progressing", status, reason, "the message"),
        condition("Ready", "False", reason, "the message"),
    ]})
}

#[test]
fn what_runs_and_what_waits_are_two_sentences() {
    let text = |spec: Value, status: Value| Overview::of(&deployment(&spec, &status)).text();
    let rolling = |outcome: &str, progressing: (&str, &str)| {
        json!({"history": [revision(1, "Succeeded", "0.1.0"), revision(2, outcome, "0.2.0")], "conditions": [
            condition("Healthy", "False", "Unhealthy", "Deployment n/a: 0 of 1 available"),
            condition("Progressing", progressing.0, progressing.1, "stage 1 of 1 waits for Deployment n/a"),
            condition("Ready", "False", progressing.1, ""),
        ]})
    };
    // Only the configuration is another.
    let same = |outcome: &str, progressing: (&str, &str)| {
        let mut status = rolling(outcome, progressing);
        status["history"][1]["version"] = json!("0.1.0");
        status
    };
    let ready = json!({"history": [revision(3, "Succeeded", "0.1.0")], "conditions": [condition("Ready", "True", "Succeeded", "")]});
    let lines = [
        text(json!({}), json!({"conditions": []})),
        text(json!({}), ready.clone()),
        text(json!({}), over_healthy(("False", "ApprovalRequired"), Some("0.2.0"))),
        text(json!({}), over_healthy(("False", "ApprovalRequired"), Some("0.1.0"))),
        text(json!({}), over_healthy(("False", "UnsafeCRDUpgrade"), Some("0.2.0"))),
        text(json!({}), over_healthy(("True", "PermissionsMissing"), Some("0.2.0"))),
        text(json!({"suspend": true}), ready.clone()),
        text(json!({"rollout": {"toRevision": 1}}), ready),
        text(json!({}), rolling("RollingOut", ("True", "RollingOut"))),
        text(json!({}), same("RollingOut", ("True", "RollingOut"))),
        text(json!({}), same("Failed", ("False", "ProgressDeadlineExceeded"))),
        text(json!({}), rolling("Failed", ("False", "ProgressDeadlineExceeded"))),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    nothing runs yet; it waits for the controller
    0.1.0 runs and is healthy
    0.1.0 runs and is healthy; 0.2.0 waits for your approval: `chandler approve harbour`
    0.1.0 runs and is healthy; a change of 0.1.0 waits for your approval: `chandler approve harbour`
    0.1.0 runs and is healthy; 0.2.0 needs action: UnsafeCRDUpgrade: the message
    0.1.0 runs and is healthy; 0.2.0 cannot be rolled out yet (PermissionsMissing): the message
    0.1.0 runs and is healthy; it is suspended, and no newer spec is rolled out: `chandler resume harbour` continues
    0.1.0 runs and is healthy; pinned to revision 1 by your rollback; `chandler rollback harbour --cancel` ends it
    0.2.0 is being rolled out over 0.1.0; the controller is working (RollingOut): Deployment n/a: 0 of 1 available
    a change of 0.1.0 is being rolled out; the controller is working (RollingOut): Deployment n/a: 0 of 1 available
    a change of 0.1.0 was rolled out and failed; its objects are not healthy: Deployment n/a: 0 of 1 available; a change of 0.1.0 needs action: ProgressDeadlineExceeded: stage 1 of 1 waits for Deployment n/a
    0.2.0 was rolled out over 0.1.0 and failed; its objects are not healthy: Deployment n/a: 0 of 1 available; 0.2.0 needs action: ProgressDeadlineExceeded: stage 1 of 1 waits for Deployment n/a
    ");
}

#[test]
fn an_update_of_the_provisioner_waits_while_the_release_is_ready() {
    let mut deployment = deployment(
        &json!({}),
        &json!({"history": [revision(1, "Succeeded", "0.1.0")], "conditions": [condition("Ready", "True", "Succeeded", "")]}),
    );
    let update = PendingChange { cause: Some(ChangeCause::Provisioner), ..PendingChange::default() };
    deployment.status.as_mut().unwrap().pending_change = Some(update);
    let overview = Overview::of(&deployment);
    assert!(overview.is_ready() && !overview.needs_action());
    insta::assert_snapshot!(overview.text(), @"0.1.0 runs and is healthy; an update of its provisioner waits for your approval: `chandler approve harbour`");
}

prop_compose! {
    fn conditions()(
        present in prop::collection::vec(any::<bool>(), 7),
        statuses in prop::collection::vec(select(vec!["True", "False", "Unknown"]), 7),
        reasons in prop::collection::vec(select(Reason::ALL.to_vec()), 7),
    ) -> Vec<Value> {
        let kinds = ["Unpacked", "Installed", "Healthy", "Progressing", "Drifted", "Ready", "Stalled"];
        let all = kinds.into_iter().zip(present).zip(statuses).zip(reasons);
        let shown = all.filter(|(((_, present), _), _)| *present);
        shown.map(|(((kind, _), status), reason)| condition(kind, status, reason.as_str(), &format!("about {kind}"))).collect()
    }
}

prop_compose! {
    fn any_deployment()(
        conditions in conditions(),
        outcomes in prop::collection::vec(select(vec!["RollingOut", "Succeeded", "Failed", "Superseded"]), 0..5),
        candidate in prop::option::of(select(vec!["0.1.0", "0.9.0"])),
        suspend in any::<bool>(),
        waits in any::<bool>(),
        generation in 1..3_i64,
        pinned in prop::option::of(1..4_i64),
        is_observed in any::<bool>(),
    ) -> BundleDeployment {
        let history = outcomes.iter().enumerate();
        let history: Vec<Value> =
            history.map(|(index, outcome)| revision(index + 1, outcome, &format!("0.{}.0", index + 1))).collect();
        let candidate = candidate.map(|version| json!({"version": version, "releaseDigest": "sha256:3"}));
        let mut conditions = conditions;
        if waits {
            conditions.retain(|it| !["Progressing", "Ready"].contains(&it["type"].as_str().unwrap()));
            conditions.push(condition("Progressing", "False", "ApprovalRequired", "a change waits"));
            conditions.push(condition("Ready", "False", "ApprovalRequired", "a change waits"));
        }
        let spec = json!({"suspend": suspend, "rollout": {"toRevision": pinned}});
        let status = json!({"history": history, "candidate": candidate, "conditions": conditions});
        let mut deployment = deployment(&spec, &status);
        deployment.metadata.generation = Some(if is_observed { 1 } else { generation });
        deployment
    }
}

proptest! {
    #[test]
    fn no_view_contradicts_another(deployment in any_deployment()) {
        agree(&deployment)?;
    }
}
