use chandler_api::{ProvisionerChange, ProvisionerInUse};
use chandler_core::Digest;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::{
    assessment::{RollingOut, Selection, Unpacked},
    problem::Problem,
    revisions::Cause,
};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn deployment(rollout: &serde_json::Value) -> BundleDeployment {
    serde_json::from_value(json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "a", "generation": 1},
        "spec": {
            "installNamespace": "n", "provisionerClassName": "c", "rollout": rollout,
            "source": {"type": "image", "image": {"ref": "registry.example.com/a:v1"}}
        }
    }))
    .unwrap()
}

pub(crate) fn facts(text: &str) -> ReleaseFacts {
    ReleaseFacts { digest: Digest::of(text.as_bytes()), objects: 3, stages: 2, version: None }
}

fn candidate(cause: Cause, release: ReleaseFacts) -> Candidate {
    Candidate {
        cause,
        source: chandler_api::BundleSource::default(),
        content_digest: Digest::of(b"content").to_string(),
        provisioner: chandler_api::ProvisionerInUse::default(),
        install_namespace: "n".into(),
        config: super::revisions::Config::Known(serde_json::Map::new()),
        own_config: None,
        spec_config: None,
        values: Vec::new(),
        release,
        approval: None,
    }
}

pub(crate) fn found(release: Option<ReleaseFacts>, outcome: ReconcileOutcome) -> Assessment {
    let unpacked = Unpacked {
        resolved_source: chandler_api::BundleSource::default(),
        content_digest: Digest::of(b"content"),
        is_verified: false,
    };
    let selection = Selection {
        unpacked: Some(unpacked),
        candidate: release.map(|release| candidate(Cause::Spec, release)),
        ..Selection::default()
    };
    Assessment::of_selection(selection, outcome)
}

pub(crate) fn waiting(stage: usize, all_applied: bool) -> ReconcileOutcome {
    let waiting = (0..7).map(|number| format!("Deployment.apps n/d{number}: not available")).collect();
    ReconcileOutcome::RollingOut(RollingOut { stage, stages: 2, all_applied, waiting })
}

/// One line for each condition but `Reconciling`, which repeats `Progressing`.
pub(crate) fn lines(status: &BundleDeploymentStatus) -> String {
    let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        let second = condition.last_transition_time.0.as_second();
        format!("{}={}/{} @{second}: {}\n", condition.type_, condition.status, condition.reason, condition.message)
    };
    let reported = status.conditions.iter().filter(|condition| condition.type_ != Type::Reconciling.as_str());
    reported.map(line).collect()
}

/// Derives the statuses of reconciles one after the other, a second apart.
pub(crate) fn reconciles(mut deployment: BundleDeployment, reconciles: &[Assessment]) -> BundleDeploymentStatus {
    for (second, reconcile) in (1..).zip(reconciles) {
        deployment.status = Some(derive(&deployment, reconcile, at(second)));
    }
    deployment.status.unwrap()
}

#[test]
fn a_first_installation() {
    let status = reconciles(
        deployment(&json!(null)),
        &[
            found(Some(facts("a")), waiting(1, false)),
            found(Some(facts("a")), waiting(2, true)),
            found(Some(facts("a")), ReconcileOutcome::Applied(vec![])),
            found(Some(facts("a")), ReconcileOutcome::Applied(vec![])),
        ],
    );
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=True/InstallationSucceeded @2: Instantiated bundle a successfully
    Healthy=True/Healthy @3: BundleDeployment is healthy
    Progressing=False/Succeeded @3: desired state outcome
    Ready=True/Succeeded @3: BundleDeployment is healthy
    ");
    assert_eq!(status.release.unwrap().start_time, Some(Time(at(1))));
}

#[test]
fn a_stage_that_is_not_the_last() {
    let status = reconciles(deployment(&json!(null)), &[found(Some(facts("a")), waiting(1, false))]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=False/Installing @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Healthy=False/Unhealthy @1: Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Progressing=True/RollingOut @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Ready=False/RollingOut @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    ");
}

#[test]
fn the_reason_of_installed_names_the_release_that_runs() {
    let reason = |earlier: &[Assessment], last: Assessment| {
        let status = reconciles(deployment(&json!(null)), &[earlier, &[last]].concat());
        let installed = status.conditions.iter().find(|condition| condition.type_ == "Installed").unwrap();
        installed.reason.clone()
    };
    let problem = || Problem::terminal(Reason::InvalidContent, "broken");
    let installed = found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    assert_eq!(reason(&[], found(None, ReconcileOutcome::RenderFailed(problem()))), "InstallFailed");
    assert_eq!(
        reason(std::slice::from_ref(&installed), found(None, ReconcileOutcome::RenderFailed(problem()))),
        "UpgradeFailed"
    );
    let same = found(Some(facts("a")), ReconcileOutcome::ApplyFailed(problem()));
    assert_eq!(reason(std::slice::from_ref(&installed), same), "ReconcileFailed");
    let other = found(Some(facts("b")), ReconcileOutcome::ApplyFailed(problem()));
    assert_eq!(reason(&[installed], other), "UpgradeFailed");
}

#[test]
fn missing_content_does_not_change_installed() {
    let installed = found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    let gone =
        Assessment::early(ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "no such image")));
    let status = reconciles(deployment(&json!(null)), &[installed, gone]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=False/UnpackFailed @2: no such image
    Installed=True/InstallationSucceeded @1: Instantiated bundle a successfully
    Healthy=True/Healthy @1: BundleDeployment is healthy
    Progressing=True/UnpackFailed @2: no such image
    Ready=False/UnpackFailed @2: no such image
    ");
    assert_eq!((status.resolved_source, status.content_digest), (None, None));
}

#[test]
fn a_pending_upload_is_a_pause_and_never_stalls() {
    let awaited = || Assessment::early(ReconcileOutcome::UploadPending("its files have not been uploaded yet".into()));
    let mut deployment = deployment(&json!(null));
    for second in [1, 100, 10_000] {
        deployment.status = Some(derive(&deployment, &awaited(), at(second)));
    }
    let status = deployment.status.clone().unwrap();
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=False/UploadPending @1: its files have not been uploaded yet
    Progressing=True/UploadPending @1: its files have not been uploaded yet
    Ready=False/UploadPending @1: its files have not been uploaded yet
    ");
    assert_eq!(find_condition(&status.conditions, Type::Stalled), None);
    assert!(find_condition(&status.conditions, Type::Reconciling).is_some_and(|it| it.reason == "UploadPending"));

    // What runs keeps running while the next files are awaited.
    let installed = found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    let status = reconciles(self::deployment(&json!(null)), &[installed, awaited()]);
    assert!(find_condition(&status.conditions, Type::Installed).is_some_and(|it| it.status == "True"));
    assert_eq!((status.resolved_source, status.content_digest), (None, None));
}

#[test]
fn the_deadline_counts_from_the_start_of_the_release() {
    let deployment = deployment(&json!({"progressDeadlineSeconds": 2}));
    let rolling = found(Some(facts("a")), waiting(2, true));
    let late = reconciles(deployment.clone(), &[rolling.clone(), rolling.clone(), rolling.clone()]);
    let reasons = |status: &BundleDeploymentStatus| {
        status.conditions.iter().find(|condition| condition.type_ == "Progressing").unwrap().reason.clone()
    };
    assert_eq!(reasons(&late), "ProgressDeadlineExceeded");
    let superseded = reconciles(deployment, &[rolling.clone(), rolling, found(Some(facts("b")), waiting(2, true))]);
    assert_eq!(reasons(&superseded), "RollingOut");
}

#[test]
fn a_problem_that_outlasts_the_deadline_is_reported_as_too_late() {
    let deployment = || deployment(&json!({"progressDeadlineSeconds": 1}));
    let starting = || found(Some(facts("a")), ReconcileOutcome::Starting);
    let refused = |problem| found(Some(facts("a")), ReconcileOutcome::ApplyFailed(problem));
    let ready = |problem: Problem| {
        let status = reconciles(deployment(), &[starting(), refused(problem)]);
        lines(&status).lines().find(|line| line.starts_with("Ready=")).unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!(ready(Problem::transient(Reason::Forbidden, "no")), @"Ready=False/ProgressDeadlineExceeded @1: revision 1 failed: not complete and healthy within 1 s: no");
    insta::assert_snapshot!(ready(Problem::terminal(Reason::InvalidOutput, "no")), @"Ready=False/InvalidOutput @1: revision 1 failed: no");
}

#[test]
fn only_objects_that_differ_are_listed() {
    use chandler_rollout::{Drift, DriftKind};

    let object = chandler_core::ObjectKey {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    let observed = |drift: &[Drift]| {
        let mut assessment = found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
        assessment.rollout.drift = Some(DriftFound::reported(drift));
        assessment
    };
    let listed =
        |reconcile: Assessment| reconciles(deployment(&json!(null)), &[reconcile]).drift.map(|drift| drift.total);
    assert_eq!(listed(observed(&[])), None);
    assert_eq!(listed(observed(&[Drift { object, kind: DriftKind::Missing }])), Some(1));
}

#[test]
fn a_pass_that_finds_the_same_changes_nothing() {
    let mut deployment = deployment(&json!(null));
    let reconcile = found(Some(facts("a")), ReconcileOutcome::Applied(vec!["Job.batch n/j: failed".into()]));
    deployment.status = Some(derive(&deployment, &reconcile, at(1)));
    assert_eq!(derive(&deployment, &reconcile, at(99)), deployment.status.unwrap());
}

pub(crate) fn rolling_back(outcome: ReconcileOutcome) -> Assessment {
    let cause = Cause::Failed { failed: 2, message: "stage 1 of 1 waits for b".into(), to: 1 };
    let mut assessment = found(None, outcome);
    assessment.selection.candidate = Some(candidate(cause, facts("a")));
    assessment
}

#[test]
fn the_clock_of_a_rollout_runs_until_it_succeeds() {
    let deployment = deployment(&json!({"progressDeadlineSeconds": 10}));
    let starting = found(Some(facts("a")), ReconcileOutcome::Starting);
    let begun = derive(&deployment, &starting, at(1));
    let seconds = std::time::Duration::from_secs;
    assert_eq!(clock(&deployment, &begun, at(4)), Clock { elapsed: seconds(3), left: Some(seconds(7)) });
    assert_eq!(clock(&deployment, &begun, at(20)), Clock { elapsed: seconds(19), left: None });
    let done = derive(&deployment, &found(Some(facts("a")), ReconcileOutcome::Applied(vec![])), at(5));
    assert_eq!(clock(&deployment, &done, at(20)), Clock::default());
    assert_eq!(clock(&deployment, &BundleDeploymentStatus::default(), at(20)), Clock::default());
}

#[test]
fn a_rollback_names_the_failed_revision_and_the_one_that_runs() {
    let rollout = json!({"progressDeadlineSeconds": 1, "onFailure": "Rollback"});
    let status = reconciles(
        deployment(&rollout),
        &[
            found(Some(facts("a")), ReconcileOutcome::Applied(vec![])),
            found(Some(facts("b")), ReconcileOutcome::Starting),
            found(Some(facts("b")), waiting(2, true)),
        ],
    );
    let ready = |status: &BundleDeploymentStatus| {
        lines(status)
            .lines()
            .filter(|line| line.starts_with("Ready") || line.starts_with("Progressing"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(ready(&status), @r"
    Progressing=False/ProgressDeadlineExceeded @3: revision 2 failed: not complete and healthy within 1 s: stage 2 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Ready=False/ProgressDeadlineExceeded @2: revision 2 failed: not complete and healthy within 1 s: stage 2 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    ");
    let mut deployment = deployment(&rollout);
    deployment.status = Some(status);
    deployment.status = Some(derive(&deployment, &rolling_back(ReconcileOutcome::Starting), at(4)));
    insta::assert_snapshot!(ready(deployment.status.as_ref().unwrap()), @r"
    Progressing=True/RollingOut @4: rolling back to revision 1, since revision 2 failed: revision 3: 3 objects in 2 stages
    Ready=False/RollingOut @2: rolling back to revision 1, since revision 2 failed: revision 3: 3 objects in 2 stages
    ");
    deployment.status = Some(derive(&deployment, &rolling_back(waiting(1, false)), at(4)));
    insta::assert_snapshot!(ready(deployment.status.as_ref().unwrap()), @r"
    Progressing=True/RollingOut @4: rolling back to revision 1, since revision 2 failed: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Ready=False/RollingOut @2: rolling back to revision 1, since revision 2 failed: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    ");
    deployment.status = Some(derive(&deployment, &rolling_back(ReconcileOutcome::Applied(vec![])), at(6)));
    insta::assert_snapshot!(ready(deployment.status.as_ref().unwrap()), @r"
    Progressing=False/RolledBack @6: revision 2 failed: stage 1 of 1 waits for b; revision 1 runs again as revision 3, and revision 2 is not tried again until the spec or the content changes
    Ready=False/RolledBack @2: revision 2 failed: stage 1 of 1 waits for b; revision 1 runs again as revision 3, and revision 2 is not tried again until the spec or the content changes
    ");
    let numbers: Vec<i64> = deployment.status.unwrap().history.iter().map(|revision| revision.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn a_failed_rollback_names_its_cause() {
    let mut late = found(Some(facts("b")), waiting(2, true));
    let problem = Problem::terminal(Reason::RevisionUnavailable, "revision 1: its content is gone");
    late.selection.rollback_problem = Some(problem);
    let status = reconciles(deployment(&json!({"progressDeadlineSeconds": 1})), &[late.clone(), late]);
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert!(
        ready.message.ends_with("; it cannot be rolled back: revision 1: its content is gone"),
        "{}",
        ready.message
    );
}

#[test]
fn a_finalizer_that_cannot_be_written_is_reported() {
    let problem = Problem::transient(Reason::Forbidden, "failed to write the finalizers: no");
    let status =
        reconciles(deployment(&json!(null)), &[Assessment::early(ReconcileOutcome::FinalizersNotWritten(problem))]);
    insta::assert_snapshot!(lines(&status), @r"
    Progressing=True/Forbidden @1: failed to write the finalizers: no
    Ready=False/Forbidden @1: failed to write the finalizers: no
    ");
}

#[test]
fn a_request_that_met_a_transient_problem_is_handled_again() {
    let mut deployment = deployment(&json!(null));
    deployment.metadata.annotations =
        Some([(chandler_api::names::REQUESTED_AT_ANNOTATION.to_owned(), "now".to_owned())].into());
    let handled = |reconcile: &Assessment| derive(&deployment, reconcile, at(1)).last_handled_reconcile_at;
    let away = Assessment::early(ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "away")));
    assert_eq!(handled(&away), None);
    assert_eq!(handled(&found(Some(facts("a")), ReconcileOutcome::Applied(vec![]))).as_deref(), Some("now"));
}

#[test]
fn a_failed_revision_and_a_pending_change_write_nothing_again() {
    let mut deployment = deployment(&json!({"progressDeadlineSeconds": 1}));
    let late = found(Some(facts("b")), waiting(2, true));
    for second in 1..4 {
        deployment.status = Some(derive(&deployment, &late, at(second)));
    }
    assert_eq!(derive(&deployment, &late, at(99)), deployment.status.clone().unwrap());
    let pending = PendingChange { digest: "sha256:0".into(), created: 1, ..PendingChange::default() };
    let mut waits = found(Some(facts("b")), ReconcileOutcome::Applied(vec![]));
    waits.selection.pending = Some(pending);
    deployment.status = Some(derive(&deployment, &waits, at(100)));
    let status = deployment.status.clone().unwrap();
    insta::assert_snapshot!(lines(&status).lines().last().unwrap(), @"Ready=False/ApprovalRequired @1: a change waits for approval: 1 to create, 0 to change, 0 to remove; `chandler diff a` shows it, `chandler approve a` approves it");
    assert_eq!(status.pending_change.as_ref().and_then(|pending| pending.since.clone()), Some(Time(at(100))));
    assert_eq!(derive(&deployment, &waits, at(200)), status);
    let granted = found(Some(facts("c")), ReconcileOutcome::Applied(vec![]));
    assert_eq!(derive(&deployment, &granted, at(300)).pending_change, None);
}

/// What is installed matches the spec, so that an update of a class makes nothing unready in the same second.
#[test]
fn an_update_of_the_provisioner_that_waits_leaves_the_bundle_deployment_ready() {
    let mut deployment = deployment(&json!(null));
    let provisioner = |version: &str| ProvisionerInUse {
        class: "helm".into(),
        version: Some(version.into()),
        digest: format!("sha256:{version}"),
        ..ProvisionerInUse::default()
    };
    let change = ProvisionerChange { installed: Some(provisioner("1.0.0")), new: provisioner("1.1.0") };
    let pending = PendingChange {
        cause: Some(ChangeCause::Provisioner),
        provisioner: Some(change),
        created: 1,
        ..PendingChange::default()
    };
    let outcome = |unhealthy: &[&str]| {
        let unhealthy = unhealthy.iter().map(|object| (*object).to_owned()).collect();
        let mut found = found(Some(facts("a")), ReconcileOutcome::Applied(unhealthy));
        found.selection.pending = Some(pending.clone());
        found
    };
    deployment.status = Some(derive(&deployment, &outcome(&[]), at(1)));
    let status = deployment.status.clone().unwrap();
    insta::assert_snapshot!(lines(&status).lines().last().unwrap(), @"Ready=True/Succeeded @1: BundleDeployment is healthy; an update of provisioner class helm from 1.0.0 (sha256:1.0.0) to 1.1.0 (sha256:1.1.0) waits for approval: `chandler approve a` shows and approves it");
    assert_eq!(derive(&deployment, &outcome(&[]), at(2)), status, "it writes nothing again");
    let unhealthy = derive(&deployment, &outcome(&["Deployment.apps n/a: not available"]), at(3));
    assert!(lines(&unhealthy).contains("Ready=False/Unhealthy"), "{}", lines(&unhealthy));
}

#[test]
fn a_failed_preview_begins_no_revision() {
    let problem = || Problem::transient(Reason::PermissionsMissing, "it may not read");
    let mut deployment = deployment(&json!(null));
    let status = derive(&deployment, &found(Some(facts("a")), ReconcileOutcome::PreviewFailed(problem())), at(1));
    assert_eq!((status.history.as_slice(), status.revision, status.release.clone()), (&[][..], None, None));
    assert!(lines(&status).contains("Ready=False/PermissionsMissing @1: it may not read"), "{}", lines(&status));

    deployment.status = Some(derive(&deployment, &found(Some(facts("a")), ReconcileOutcome::Applied(vec![])), at(2)));
    let before = deployment.status.clone().unwrap();
    let status = derive(&deployment, &found(Some(facts("b")), ReconcileOutcome::PreviewFailed(problem())), at(3));
    assert_eq!((status.history, status.revision, status.release), (before.history, before.revision, before.release));
}

#[test]
fn a_release_that_was_refused_before_the_first_write_begins_no_revision() {
    let refused = |text: &str| {
        let problem = Problem::terminal(Reason::ObjectCollision, "ConfigMap n/a already exists");
        found(Some(facts(text)), ReconcileOutcome::ApplyFailed(problem))
    };
    let mut deployment = deployment(&json!(null));
    let status = derive(&deployment, &refused("a"), at(1));
    assert_eq!((status.history.as_slice(), status.revision), (&[][..], None));
    assert!(lines(&status).contains("Installed=False/InstallFailed @1: ConfigMap n/a already exists"));

    deployment.status = Some(derive(&deployment, &found(Some(facts("a")), ReconcileOutcome::Applied(vec![])), at(2)));
    let before = deployment.status.clone().unwrap();
    let status = derive(&deployment, &refused("b"), at(3));
    assert_eq!((status.history, status.revision), (before.history, before.revision));
}

#[test]
fn the_bundle_is_that_of_the_release_and_its_warnings_are_those_of_the_last_rendering() {
    use crate::bundle::BundleFacts;

    let with = |version: &str, warned: &[&str], outcome| {
        let description = chandler_api::BundleDescription {
            version: Some(version.into()),
            ..chandler_api::BundleDescription::default()
        };
        let warning = |code: &&str| chandler_api::BundleWarning {
            code: (*code).to_owned(),
            ..chandler_api::BundleWarning::default()
        };
        let bundle = BundleFacts { description: Some(description), warnings: warned.iter().map(warning).collect() };
        let mut assessment = found(Some(facts(version)), outcome);
        assessment.selection.bundle = Some(bundle);
        assessment
    };
    let installed = with("1.0.0", &["Old"], ReconcileOutcome::Applied(vec![]));
    let refused =
        with("2.0.0", &["New"], ReconcileOutcome::ApplyFailed(Problem::terminal(Reason::ObjectRefused, "no")));
    let broken = |problem| found(None, ReconcileOutcome::RenderFailed(problem));
    let reported = |last: Assessment| {
        let status = reconciles(deployment(&json!(null)), &[installed.clone(), last]);
        let codes: Vec<String> = status.warnings.into_iter().map(|warning| warning.code).collect();
        (status.bundle.and_then(|bundle| bundle.version).unwrap_or_default(), codes.join(" "))
    };
    let is = |version: &str, codes: &str| (version.to_owned(), codes.to_owned());
    assert_eq!(reported(installed.clone()), is("1.0.0", "Old"));
    assert_eq!(reported(refused), is("1.0.0", "New"), "the old release still runs");
    assert_eq!(reported(with("2.0.0", &[], waiting(1, false))), is("2.0.0", ""));
    assert_eq!(reported(broken(Problem::terminal(Reason::InvalidContent, "broken"))), is("1.0.0", ""));
    assert_eq!(reported(broken(Problem::transient(Reason::InternalError, "later"))), is("1.0.0", "Old"));
}

#[test]
fn health_that_has_not_lasted_is_not_reported() {
    let mut deployment = deployment(&json!(null));
    let healthy = found(Some(facts("r")), ReconcileOutcome::Applied(vec![]));
    deployment.status = Some(derive(&deployment, &healthy, at(1)));
    let before = deployment.status.clone().unwrap();
    let mut weak = found(Some(facts("r")), ReconcileOutcome::Applied(vec!["Pod n/p: runs but is not ready".into()]));
    weak.rollout.debounce = Some(std::time::Duration::from_secs(9));
    assert_eq!(derive(&deployment, &weak, at(5)), before, "nothing is written");

    // The reported health holds for a newer spec, too.
    deployment.metadata.generation = Some(2);
    let confirmed = derive(&deployment, &weak, at(6));
    for kind in ["Healthy", "Progressing", "Ready"] {
        let condition = confirmed.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
        assert_eq!((condition.observed_generation, condition.last_transition_time.0), (Some(2), at(1)), "{kind}");
    }
    weak.rollout.debounce = None;
    let reported = derive(&deployment, &weak, at(40));
    let ready = reported.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.last_transition_time.0), ("False", at(40)));
}
