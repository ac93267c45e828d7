use chandler_core::Digest;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::bundle_deployment::assessment::Unpacked;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn deployment(rollout: &serde_json::Value) -> BundleDeployment {
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

fn facts(text: &str) -> ReleaseFacts {
    ReleaseFacts { digest: Digest::of(text.as_bytes()), objects: 3, stages: 2 }
}

fn found(release: Option<ReleaseFacts>, reached: Reached) -> Assessment {
    let unpacked =
        Unpacked { resolved_source: chandler_api::BundleSource::default(), content_digest: Digest::of(b"content") };
    Assessment { unpacked: Some(unpacked), release, ..Assessment::early(reached) }
}

fn waiting(stage: usize, all_applied: bool) -> Reached {
    let waiting = (0..7).map(|number| format!("Deployment.apps n/d{number}: not available")).collect();
    Reached::RollingOut(RollingOut { stage, stages: 2, all_applied, waiting })
}

/// One line for each condition.
fn lines(status: &BundleDeploymentStatus) -> String {
    let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        let second = condition.last_transition_time.0.as_second();
        format!("{}={}/{} @{second}: {}\n", condition.type_, condition.status, condition.reason, condition.message)
    };
    status.conditions.iter().map(line).collect()
}

/// Runs passes one after the other, a second apart.
fn passes(mut deployment: BundleDeployment, passes: &[Assessment]) -> BundleDeploymentStatus {
    for (second, pass) in (1..).zip(passes) {
        deployment.status = Some(derive(&deployment, pass, at(second)));
    }
    deployment.status.unwrap()
}

#[test]
fn a_first_installation() {
    let status = passes(
        deployment(&json!(null)),
        &[
            found(Some(facts("a")), waiting(1, false)),
            found(Some(facts("a")), waiting(2, true)),
            found(Some(facts("a")), Reached::Applied(vec![])),
            found(Some(facts("a")), Reached::Applied(vec![])),
        ],
    );
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=True/InstallationSucceeded @2: every object of the release is applied
    Healthy=True/Healthy @3: BundleDeployment is healthy
    Progressing=False/Succeeded @3: desired state reached
    Ready=True/Succeeded @3: BundleDeployment is healthy
    ");
    assert_eq!(status.release.unwrap().start_time, Some(Time(at(1))));
}

#[test]
fn a_stage_that_is_not_the_last() {
    let status = passes(deployment(&json!(null)), &[found(Some(facts("a")), waiting(1, false))]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=False/Installing @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Healthy=False/Unhealthy @1: Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Progressing=True/RollingOut @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    Ready=False/RollingOut @1: stage 1 of 2 waits for Deployment.apps n/d0: not available; Deployment.apps n/d1: not available; Deployment.apps n/d2: not available; Deployment.apps n/d3: not available; Deployment.apps n/d4: not available; and 2 more
    ");
}

#[test]
fn what_fails_names_what_still_runs() {
    let reason = |passes_before: &[Assessment], last: Assessment| {
        let status = passes(deployment(&json!(null)), &[passes_before, &[last]].concat());
        let installed = status.conditions.iter().find(|condition| condition.type_ == "Installed").unwrap();
        installed.reason.clone()
    };
    let problem = || Problem::lasting(Reason::InvalidContent, "broken");
    let installed = found(Some(facts("a")), Reached::Applied(vec![]));
    assert_eq!(reason(&[], found(None, Reached::NotRendered(problem()))), "InstallFailed");
    assert_eq!(reason(std::slice::from_ref(&installed), found(None, Reached::NotRendered(problem()))), "UpgradeFailed");
    let same = found(Some(facts("a")), Reached::NotApplied(problem()));
    assert_eq!(reason(std::slice::from_ref(&installed), same), "ReconcileFailed");
    let other = found(Some(facts("b")), Reached::NotApplied(problem()));
    assert_eq!(reason(&[installed], other), "UpgradeFailed");
}

#[test]
fn content_that_is_gone_leaves_the_installation_alone() {
    let installed = found(Some(facts("a")), Reached::Applied(vec![]));
    let gone = Assessment::early(Reached::NotUnpacked(Problem::passing(Reason::UnpackFailed, "no such image")));
    let status = passes(deployment(&json!(null)), &[installed, gone]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=False/UnpackFailed @2: no such image
    Installed=True/InstallationSucceeded @1: every object of the release is applied
    Progressing=True/UnpackFailed @2: no such image
    Healthy=True/Healthy @1: BundleDeployment is healthy
    Ready=False/UnpackFailed @2: no such image
    ");
    assert_eq!((status.resolved_source, status.content_digest), (None, None));
}

#[test]
fn the_deadline_counts_from_the_start_of_the_release() {
    let deployment = deployment(&json!({"progressDeadlineSeconds": 2}));
    let rolling = found(Some(facts("a")), waiting(2, true));
    let late = passes(deployment.clone(), &[rolling.clone(), rolling.clone(), rolling.clone()]);
    let reasons = |status: &BundleDeploymentStatus| {
        status.conditions.iter().find(|condition| condition.type_ == "Progressing").unwrap().reason.clone()
    };
    assert_eq!(reasons(&late), "ProgressDeadlineExceeded");
    let superseded = passes(deployment, &[rolling.clone(), rolling, found(Some(facts("b")), waiting(2, true))]);
    assert_eq!(reasons(&superseded), "RollingOut");
}

#[test]
fn a_pass_that_finds_the_same_changes_nothing() {
    let mut deployment = deployment(&json!(null));
    let pass = found(Some(facts("a")), Reached::Applied(vec!["Job.batch n/j: failed".into()]));
    deployment.status = Some(derive(&deployment, &pass, at(1)));
    assert_eq!(derive(&deployment, &pass, at(99)), deployment.status.unwrap());
}

#[test]
fn the_bundle_is_that_of_the_release_and_its_warnings_are_those_of_the_last_rendering() {
    use crate::bundle_deployment::bundle::BundleFacts;

    let with = |version: &str, warned: &[&str], reached| {
        let description = chandler_api::BundleDescription {
            version: Some(version.into()),
            ..chandler_api::BundleDescription::default()
        };
        let warning = |code: &&str| chandler_api::BundleWarning {
            code: (*code).to_owned(),
            ..chandler_api::BundleWarning::default()
        };
        let bundle = BundleFacts { description: Some(description), warnings: warned.iter().map(warning).collect() };
        Assessment { bundle: Some(bundle), ..found(Some(facts(version)), reached) }
    };
    let installed = with("1.0.0", &["Old"], Reached::Applied(vec![]));
    let refused = with("2.0.0", &["New"], Reached::NotApplied(Problem::lasting(Reason::ObjectRefused, "no")));
    let broken = |problem| found(None, Reached::NotRendered(problem));
    let told = |last: Assessment| {
        let status = passes(deployment(&json!(null)), &[installed.clone(), last]);
        let codes: Vec<String> = status.warnings.into_iter().map(|warning| warning.code).collect();
        (status.bundle.and_then(|bundle| bundle.version).unwrap_or_default(), codes.join(" "))
    };
    let is = |version: &str, codes: &str| (version.to_owned(), codes.to_owned());
    assert_eq!(told(installed.clone()), is("1.0.0", "Old"));
    assert_eq!(told(refused), is("1.0.0", "New"), "the old release still runs");
    assert_eq!(told(with("2.0.0", &[], waiting(1, false))), is("2.0.0", ""));
    assert_eq!(told(broken(Problem::lasting(Reason::InvalidContent, "broken"))), is("1.0.0", ""));
    assert_eq!(told(broken(Problem::passing(Reason::InternalError, "later"))), is("1.0.0", "Old"));
}
