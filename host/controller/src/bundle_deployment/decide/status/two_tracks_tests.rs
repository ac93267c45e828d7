//! What the status says of what runs, and of what was said about an earlier spec.

use chandler_rollout::{Drift, DriftKind};
use serde_json::json;

use super::tests::{at, deployment, facts, found, lines, passes};
use super::*;
use crate::bundle_deployment::assessment::{RolloutFindings, Running};

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

/// Status and reason of each condition, after these passes.
fn short(last: &[Assessment]) -> String {
    let status = passes(deployment(&json!(null)), &[&[installed()], last].concat());
    let kinds = status.conditions.iter().filter(|condition| condition.type_ != "Unpacked");
    kinds.map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_cannot_be_looked_at_is_not_called_healthy() {
    let problem = || Problem::transient(Reason::ServiceAccountNotFound, "ServiceAccount n/deployer does not exist");
    let refused = || found(Some(facts("a")), ReconcileOutcome::ApplyFailed(problem()));
    let status = passes(deployment(&json!(null)), &[installed(), refused()]);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=True/UnpackSuccessful @1: Successfully unpacked the image Bundle
    Installed=False/ReconcileFailed @2: ServiceAccount n/deployer does not exist
    Healthy=Unknown/ObjectLookupFailure @2: ServiceAccount n/deployer does not exist
    Progressing=True/ServiceAccountNotFound @2: ServiceAccount n/deployer does not exist
    Drifted=Unknown/ObjectLookupFailure @2: ServiceAccount n/deployer does not exist
    Ready=False/ServiceAccountNotFound @2: ServiceAccount n/deployer does not exist
    ");
    // What was seen before it failed counts.
    let mut seen = refused();
    seen.rollout.health = Some(vec!["ConfigMap n/a: does not exist".into()]);
    assert!(short(std::slice::from_ref(&seen)).contains("Healthy=False/Unhealthy"), "{}", short(&[seen]));
    assert!(short(&[refused(), installed()]).contains("Healthy=True/Healthy"));
}

#[test]
fn what_is_suspended_is_as_ready_as_it_is_healthy() {
    let gone = || with(running(Ok(&["ConfigMap n/a: does not exist"])), ReconcileOutcome::Suspended);
    let well = || with(running(Ok(&[])), ReconcileOutcome::Suspended);
    let unknown = || with(running(Err("no such record")), ReconcileOutcome::Suspended);
    insta::assert_snapshot!(short(&[gone()]), @"Installed=True/InstallationSucceeded Healthy=False/Unhealthy Progressing=False/Suspended Drifted=False/AsReleased Ready=False/Unhealthy");
    assert!(short(&[unknown()]).contains("Ready=Unknown/ObjectLookupFailure"), "{}", short(&[unknown()]));
    assert!(short(&[gone(), well()]).contains("Ready=True/Succeeded"), "{}", short(&[gone(), well()]));
    // What was in the way when it was suspended is still said.
    let waits = [with(running(Ok(&[])), no_image()), well()];
    assert!(short(&waits).contains("Ready=False/UnpackFailed"), "{}", short(&waits));
}

#[test]
fn what_was_in_the_way_of_an_earlier_spec_is_not_said_of_this_one() {
    let mut weak = found(Some(facts("a")), ReconcileOutcome::Applied(vec!["ConfigMap n/a: does not exist".into()]));
    weak.rollout.debounce = Some(std::time::Duration::from_secs(9));
    let refused = || found(None, ReconcileOutcome::RenderFailed(Problem::terminal(Reason::InvalidContent, "broken")));
    // The health has not changed for long enough; the refusal is over.
    assert!(
        short(&[refused(), weak]).contains("Healthy=True/Healthy Progressing=False/Succeeded Ready=True/Succeeded")
    );
    assert!(short(&[refused()]).contains("Installed=False/UpgradeFailed"));
    assert!(short(&[refused(), with(running(Ok(&[])), no_image())]).contains("Installed=True/InstallationSucceeded"));
    let first = passes(deployment(&json!(null)), &[refused(), Assessment::early(no_image())]);
    assert!(lines(&first).contains("Installed=False/InstallFailed @1: no such image"), "{}", lines(&first));
}

#[test]
fn what_could_not_be_repaired_is_neither_installed_nor_as_released() {
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
    Drifted=True/RepairFailed @2: 1 object is not as released, and the repair failed: ConfigMap n/a does not exist
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
fn while_a_bundle_is_on_its_way_what_was_said_of_the_same_spec_stands() {
    let preparing = || with(running(Ok(&[])), ReconcileOutcome::Preparing);
    let before = passes(deployment(&json!(null)), &[installed()]);
    assert_eq!(lines(&passes(deployment(&json!(null)), &[installed(), preparing()])), lines(&before), "no news");
    let failed = || Assessment::early(no_image());
    let refused = passes(deployment(&json!(null)), &[failed()]);
    let again = passes(deployment(&json!(null)), &[failed(), Assessment::early(ReconcileOutcome::Preparing)]);
    assert_eq!(lines(&again), lines(&refused), "it is tried again");

    // A newer spec has its own state, and what runs goes on being healthy.
    let mut next = deployment(&json!(null));
    next.status = Some(before);
    next.metadata.generation = next.metadata.generation.map(|generation| generation + 1);
    let status = derive(&next, &preparing(), Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(lines(&status), @r"
    Unpacked=False/Unpacking @0: fetching and rendering registry.example.com/a:v1
    Installed=True/InstallationSucceeded @1: every object of the release is applied
    Healthy=True/Healthy @1: BundleDeployment is healthy
    Progressing=True/Unpacking @0: fetching and rendering registry.example.com/a:v1
    Drifted=False/AsReleased @1: every object is as released
    Ready=False/Unpacking @0: fetching and rendering registry.example.com/a:v1
    ");
}
