//! The status of the release that runs, and of conditions about an earlier spec.

use chandler_rollout::{Drift, DriftKind};
use serde_json::json;

use super::tests::{at, deployment, facts, found, lines, reconciles};
use super::*;
use crate::{
    assessment::{RolloutFindings, Running},
    problem::Problem,
};

fn installed() -> Assessment {
    let mut assessment = found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    assessment.rollout.drift = Some(DriftFound::reported(&[]));
    assessment
}

fn running(health: Result<&[&str], &str>) -> Running {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Running {
        bundle: None,
        health: health.map(texts).map_err(str::to_owned),
        not_repaired: None,
        findings: RolloutFindings::default(),
    }
}

fn with(running: Running, outcome: ReconcileOutcome) -> Assessment {
    Assessment { running: Some(running), ..Assessment::early(outcome) }
}

fn no_image() -> ReconcileOutcome {
    ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "no such image"))
}

/// Status and reason of each condition after these reconciles.
fn short(last: &[Assessment]) -> String {
    let status = reconciles(deployment(&json!(null)), &[&[installed()], last].concat());
    let kinds = status.conditions.iter().filter(|condition| !["Unpacked", "Reconciling"].contains(&&*condition.type_));
    kinds.map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect::<Vec<_>>().join(" ")
}

#[test]
fn unobservable_health_is_unknown() {
    let problem = || Problem::transient(Reason::ServiceAccountNotFound, "ServiceAccount n/deployer does not exist");
    let refused = || found(Some(facts("a")), ReconcileOutcome::ApplyFailed(problem()));
    let status = reconciles(deployment(&json!(null)), &[installed(), refused()]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=False/ReconcileFailed @2: ServiceAccount n/deployer does not exist
    Healthy=Unknown/ObjectLookupFailure @2: ServiceAccount n/deployer does not exist
    Progressing=True/ServiceAccountNotFound @2: ServiceAccount n/deployer does not exist
    Drifted=Unknown/ObjectLookupFailure @2: ServiceAccount n/deployer does not exist
    Ready=False/ServiceAccountNotFound @2: ServiceAccount n/deployer does not exist
    ");
    // The health that was observed before the failure counts.
    let mut seen = refused();
    seen.rollout.health = Some(vec!["ConfigMap n/a: does not exist".into()]);
    assert!(short(std::slice::from_ref(&seen)).contains("Healthy=False/Unhealthy"), "{}", short(&[seen]));
    assert!(short(&[refused(), installed()]).contains("Healthy=True/Healthy"));
}

#[test]
fn ready_follows_healthy_while_suspended() {
    let gone = || with(running(Ok(&["ConfigMap n/a: does not exist"])), ReconcileOutcome::Suspended);
    let healthy = || with(running(Ok(&[])), ReconcileOutcome::Suspended);
    let unknown = || with(running(Err("no such record")), ReconcileOutcome::Suspended);
    insta::assert_snapshot!(short(&[gone()]), @"Installed=True/InstallationSucceeded Healthy=False/Unhealthy Progressing=False/Suspended Drifted=False/AsReleased Ready=False/Unhealthy");
    assert!(short(&[unknown()]).contains("Ready=Unknown/ObjectLookupFailure"), "{}", short(&[unknown()]));
    assert!(short(&[gone(), healthy()]).contains("Ready=True/Succeeded"), "{}", short(&[gone(), healthy()]));
    // The problem of the candidate at the suspension is still reported.
    let waits = [with(running(Ok(&[])), no_image()), healthy()];
    assert!(short(&waits).contains("Ready=False/UnpackFailed"), "{}", short(&waits));
}

#[test]
fn conditions_about_an_earlier_spec_are_replaced() {
    let mut weak = found(Some(facts("a")), ReconcileOutcome::Applied(vec!["ConfigMap n/a: does not exist".into()]));
    weak.rollout.debounce = Some(std::time::Duration::from_secs(9));
    let refused = || found(None, ReconcileOutcome::RenderFailed(Problem::terminal(Reason::InvalidContent, "broken")));
    // The health is still debounced; the refusal is over.
    assert!(
        short(&[refused(), weak]).contains("Healthy=True/Healthy Progressing=False/Succeeded Ready=True/Succeeded")
    );
    assert!(short(&[refused()]).contains("Installed=False/UpgradeFailed"));
    assert!(short(&[refused(), with(running(Ok(&[])), no_image())]).contains("Installed=True/InstallationSucceeded"));
    let first = reconciles(deployment(&json!(null)), &[refused(), Assessment::early(no_image())]);
    assert!(lines(&first).contains("Installed=False/InstallFailed @1: no such image"), "{}", lines(&first));
}

#[test]
fn a_failed_repair_shows_in_installed_and_drifted() {
    let missing = Drift {
        object: chandler_core::ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: "a".into(),
        },
        kind: DriftKind::Missing,
    };
    let drifted = |drift| RolloutFindings { drift: Some(drift), ..RolloutFindings::default() };
    let broken = || Running {
        findings: drifted(DriftFound::not_repaired(std::slice::from_ref(&missing))),
        not_repaired: Some("the namespace n does not exist".into()),
        ..running(Ok(&["ConfigMap n/a: does not exist"]))
    };
    let mut deployment = deployment(&json!(null));
    deployment.status = Some(derive(&deployment, &installed(), at(1)));
    deployment.status = Some(derive(&deployment, &with(broken(), no_image()), at(2)));
    insta::assert_snapshot!(lines(deployment.status.as_ref().unwrap()), @r"
    Unpacked=False/UnpackFailed @2: no such image
    Installed=False/ReconcileFailed @2: the namespace n does not exist
    Healthy=False/Unhealthy @2: ConfigMap n/a: does not exist
    Progressing=True/UnpackFailed @2: no such image
    Drifted=True/RepairFailed @2: 1 object is different from the release, and the repair failed: ConfigMap n/a does not exist
    Ready=False/UnpackFailed @2: no such image
    ");
    let repaired = Running { findings: drifted(DriftFound::reported(&[])), ..running(Ok(&[])) };
    let again = short(&[with(broken(), no_image()), with(repaired, no_image())]);
    assert!(
        again.starts_with("Installed=True/InstallationSucceeded Healthy=True/Healthy Progressing=True/UnpackFailed Drifted=False/AsReleased"),
        "{again}"
    );
}

#[test]
fn conditions_of_the_same_spec_stay_while_a_bundle_is_prepared() {
    let preparing = || with(running(Ok(&[])), ReconcileOutcome::Preparing);
    let before = reconciles(deployment(&json!(null)), &[installed()]);
    assert_eq!(
        lines(&reconciles(deployment(&json!(null)), &[installed(), preparing()])),
        lines(&before),
        "nothing changed"
    );
    let failed = || Assessment::early(no_image());
    let refused = reconciles(deployment(&json!(null)), &[failed()]);
    let again = reconciles(deployment(&json!(null)), &[failed(), Assessment::early(ReconcileOutcome::Preparing)]);
    assert_eq!(lines(&again), lines(&refused), "it is tried again");

    // A newer spec has conditions of its own, and the release that runs stays healthy.
    let mut next = deployment(&json!(null));
    next.status = Some(before);
    next.metadata.generation = next.metadata.generation.map(|generation| generation + 1);
    let status = derive(&next, &preparing(), Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=False/Unpacking @0: fetching and rendering registry.example.com/a:v1
    Installed=True/InstallationSucceeded @1: Instantiated bundle a successfully
    Healthy=True/Healthy @1: BundleDeployment is healthy
    Progressing=True/Unpacking @0: fetching and rendering registry.example.com/a:v1
    Drifted=False/AsReleased @1: every object matches the release
    Ready=False/Unpacking @0: fetching and rendering registry.example.com/a:v1
    ");
}
