//! What kstatus reads: `Reconciling` and `Stalled`.

use serde_json::json;

use super::{
    tests::{at, deployment, facts, found, reconciles, rolling_back, waiting},
    *,
};
use crate::problem::{Problem, Refusal};

#[test]
fn stalled_is_true_while_only_the_user_can_help() {
    let stalled = |earlier: &[Assessment], last: Assessment| {
        let status = reconciles(deployment(&json!(null)), &[earlier, &[last]].concat());
        find_condition(&status.conditions, Type::Stalled)
            .map(|it| format!("{}/{}: {}", it.status, it.reason, it.message))
    };
    let refused = || found(None, ReconcileOutcome::RenderFailed(Problem::terminal(Reason::InvalidContent, "broken")));
    let installed = || found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    assert_eq!(stalled(&[], refused()).as_deref(), Some("True/InvalidContent: broken"));
    assert_eq!(
        stalled(&[refused()], Assessment::early(ReconcileOutcome::Preparing)).as_deref(),
        Some("True/InvalidContent: broken")
    );
    assert_eq!(stalled(&[refused()], installed()), None);
    assert_eq!(stalled(&[refused()], found(Some(facts("a")), waiting(1, false))), None);
    assert_eq!(stalled(&[refused()], Assessment::early(ReconcileOutcome::Suspended)), None);
    let away = ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "away"));
    assert_eq!(stalled(&[refused()], Assessment::early(away)), None);
    let rolled_back = stalled(
        &[installed(), found(Some(facts("b")), waiting(2, true))],
        rolling_back(ReconcileOutcome::Applied(vec![])),
    );
    assert!(rolled_back.is_some_and(|text| text.starts_with("True/RolledBack: revision 2 failed")));

    let mut deployment = deployment(&json!(null));
    deployment.status = Some(derive(&deployment, &refused(), at(1)));
    assert_eq!(derive(&deployment, &refused(), at(9)), deployment.status.clone().unwrap(), "it stays quiet");
    deployment.metadata.generation = Some(2);
    let next = derive(&deployment, &Assessment::early(ReconcileOutcome::Preparing), at(10));
    assert_eq!(find_condition(&next.conditions, Type::Stalled), None, "a newer spec has not failed");
}

#[test]
fn reconciling_and_stalled_are_never_true_together() {
    let of = |earlier: &[Assessment], last: Assessment| {
        let status = reconciles(deployment(&json!({"progressDeadlineSeconds": 1})), &[earlier, &[last]].concat());
        let set = [Type::Reconciling, Type::Stalled].into_iter().filter_map(|kind| {
            find_condition(&status.conditions, kind).map(|it| format!("{}={}/{}", it.type_, it.status, it.reason))
        });
        set.collect::<Vec<_>>().join(" ")
    };
    let applied = || found(Some(facts("a")), ReconcileOutcome::Applied(vec![]));
    let refused = |reason| found(Some(facts("a")), ReconcileOutcome::ApplyFailed(Problem::transient(reason, "no")));
    assert_eq!(of(&[], Assessment::early(ReconcileOutcome::Preparing)), "Reconciling=True/Unpacking");
    assert_eq!(of(&[], found(Some(facts("a")), waiting(1, false))), "Reconciling=True/RollingOut");
    assert_eq!(of(&[], applied()), "");
    assert_eq!(of(&[], Assessment::early(ReconcileOutcome::Suspended)), "");
    assert_eq!(of(&[], refused(Reason::Retrying)), "Reconciling=True/Retrying");
    assert_eq!(of(&[], refused(Reason::UnsafeCRDUpgrade)), "Stalled=True/UnsafeCRDUpgrade");
    assert_eq!(
        of(&[found(Some(facts("a")), waiting(1, false))], found(Some(facts("a")), waiting(1, false))),
        "Stalled=True/ProgressDeadlineExceeded"
    );
}

/// GitOps clients create a BundleDeployment and what it needs at the same moment, and give up when it is stalled.
#[test]
fn a_missing_requirement_stalls_only_after_a_while() {
    let missing = |reason| found(Some(facts("a")), ReconcileOutcome::ApplyFailed(Problem::transient(reason, "no")));
    let stalled = |deployment: &BundleDeployment| {
        let status = deployment.status.as_ref().unwrap();
        find_condition(&status.conditions, Type::Stalled).is_some()
    };
    let mut deployment = deployment(&json!(null));
    for (second, reason, expected) in [
        (1, Reason::ServiceAccountNotFound, false),
        (5, Reason::ServiceAccountNotFound, false),
        (12, Reason::PermissionsMissing, false),
        (13, Reason::PermissionsMissing, true),
    ] {
        deployment.status = Some(derive(&deployment, &missing(reason), at(second)));
        assert_eq!(stalled(&deployment), expected, "{second} s: {reason}");
    }
    deployment.metadata.generation = Some(2);
    deployment.status = Some(derive(&deployment, &missing(Reason::PermissionsMissing), at(20)));
    assert!(!stalled(&deployment), "the spec is new");

    let mut away = Problem::transient(Reason::UnpackFailed, "no such image");
    let unpack = |problem: &Problem| Assessment::early(ReconcileOutcome::UnpackFailed(problem.clone()));
    for (second, refused, expected) in [(40, false, false), (60, false, false), (61, true, true)] {
        away.refusal = refused.then_some(Refusal::Source);
        deployment.status = Some(derive(&deployment, &unpack(&away), at(second)));
        assert_eq!(stalled(&deployment), expected, "{second} s");
    }
}

#[test]
fn an_invalid_object_stalls_when_it_is_refused_again() {
    let refused = |refusal| {
        let problem = Problem { refusal, ..Problem::transient(Reason::ObjectRefused, "spec.replicas: Invalid value") };
        found(Some(facts("a")), ReconcileOutcome::ApplyFailed(problem))
    };
    for (refusal, tries) in [
        // Validation fails the same way every time.
        (Some(Refusal::Validation), [(1, false), (2, true), (30, true)]),
        // A webhook or a conflict may answer differently for a while.
        (None, [(1, false), (2, false), (30, true)]),
    ] {
        let mut deployment = deployment(&json!(null));
        for (second, expected) in tries {
            deployment.status = Some(derive(&deployment, &refused(refusal), at(second)));
            let conditions = &deployment.status.as_ref().unwrap().conditions;
            assert_eq!(find_condition(conditions, Type::Stalled).is_some(), expected, "{refusal:?} {second} s");
        }
        deployment.metadata.generation = Some(2);
        let status = derive(&deployment, &refused(refusal), at(31));
        assert_eq!(find_condition(&status.conditions, Type::Stalled), None, "the spec is new");
    }
}
