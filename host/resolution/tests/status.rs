//! The status of a Resolution.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use chandler_api::{BundleDeployment, DecisionSummary, LeftOut, PendingDecision, Reason, Resolution, ResolutionStatus};
use chandler_core::text::is_deceptive;
use chandler_resolution::{
    Plan, PlannedMember,
    status::{Answer, Found, Set, derive, interrupted},
};
use chandler_resolver::HeldBack;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

fn member(package: &str, path: &[&str]) -> PlannedMember {
    PlannedMember {
        package: package.to_owned(),
        bundle: format!("{package}.v1.0.0"),
        version: "1.0.0".to_owned(),
        path: path.iter().map(|version| (*version).to_owned()).collect(),
        ..PlannedMember::default()
    }
}

fn plan(members: &[PlannedMember]) -> Answer {
    Answer::Plan(Plan { members: members.to_vec(), ..Plan::default() })
}

fn deployment(ready: &str, reason: &str) -> BundleDeployment {
    let condition = |kind: &str, status: &str| -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("it is {reason}"), "observedGeneration": 1,
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = [condition("Installed", "True"), condition("Healthy", ready), condition("Ready", ready)];
    let object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "resolveset-shop", "generation": 1},
        "spec": {"installNamespace": "shop", "provisionerClassName": "core-rukpak-io-resolveset", "source": {"type": "configMaps"}},
        "status": {"conditions": conditions},
    });
    serde_json::from_value(object).unwrap()
}

fn set(observed: Option<&BundleDeployment>) -> Set<'_> {
    let members = vec![member("app", &[])];
    Set { number: 3, deployment: "resolveset-shop".to_owned(), observed, members, ..Set::default() }
}

fn lines(status: &ResolutionStatus) -> String {
    let line = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        format!("{}={}/{}: {}", it.type_, it.status, it.reason, it.message)
    };
    status.conditions.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn conditions_describe_the_answer_and_the_set() {
    let (healthy, unhealthy) = (deployment("True", "Succeeded"), deployment("False", "Unhealthy"));
    let pending = PendingDecision {
        reason: "OutsideMaintenanceWindow".to_owned(),
        message: "the next maintenance window begins at 2026-01-03T02:00:00Z".to_owned(),
        changes: vec!["change app from 1.0.0 to 1.1.0".to_owned()],
    };
    let refused =
        || Answer::Refused { message: "app is in no catalog".to_owned(), explanation: vec!["a line".to_owned()] };
    let failed = Answer::Failed { reason: Reason::CatalogsNotReady, message: "catalog ours has no index".to_owned() };
    let waiting = Plan { members: vec![member("app", &[])], waiting: vec!["app waits".to_owned()], ..Plan::default() };
    let none = Found::default;
    let cases = [
        ("nothing yet", none()),
        ("only reported", Found { answer: plan(&[member("app", &[])]), ..none() }),
        ("being created", Found { answer: plan(&[member("app", &[])]), set: Some(set(None)), ..none() }),
        ("complete", Found { answer: plan(&[member("app", &[])]), set: Some(set(Some(&healthy))), ..none() }),
        ("unhealthy", Found { answer: plan(&[member("app", &[])]), set: Some(set(Some(&unhealthy))), ..none() }),
        (
            "more steps",
            Found { answer: plan(&[member("app", &["1.0.0", "1.1.0"])]), set: Some(set(Some(&healthy))), ..none() },
        ),
        ("waits for health", Found { answer: Answer::Plan(waiting), set: Some(set(Some(&healthy))), ..none() }),
        ("pending", Found { answer: plan(&[]), set: Some(set(Some(&healthy))), pending: Some(pending), ..none() }),
        ("refused, with a set", Found { answer: refused(), set: Some(set(Some(&healthy))), ..none() }),
        ("failed", Found { answer: failed, ..none() }),
        ("suspended", Found { answer: Answer::Suspended, set: Some(set(Some(&healthy))), ..none() }),
        ("suspended before anything", Found { answer: Answer::Suspended, ..none() }),
        ("rolled back", Found { answer: Answer::RolledBack(3), set: Some(set(Some(&healthy))), ..none() }),
    ];
    let text = cases.map(|(title, found)| {
        let status = derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH);
        let resolution = Resolution { status: Some(status.clone()), ..Resolution::default() };
        assert_eq!(derive(&resolution, &found, Timestamp::now()), status, "{title}: nothing changes the second time");
        format!("# {title}\n{}", lines(&status))
    });
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn the_members_of_an_unanswered_question_stay() {
    let healthy = deployment("True", "Succeeded");
    let found = Found { answer: plan(&[member("app", &[])]), set: Some(set(Some(&healthy))), ..Found::default() };
    let status = derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH);
    assert_eq!(status.members.len(), 1);
    let resolution = Resolution { status: Some(status), ..Resolution::default() };
    let refused = Answer::Refused { message: "no".to_owned(), explanation: vec!["line".to_owned(); 60] };
    let status = derive(&resolution, &Found { answer: refused, ..Found::default() }, Timestamp::UNIX_EPOCH);
    assert_eq!((status.members.len(), status.explanation.len()), (1, 50));
    assert_eq!(status.explanation.last().map(String::as_str), Some("and 11 more"));
}

#[test]
fn a_request_that_was_refused_changes_nothing_but_readiness() {
    let healthy = deployment("True", "Succeeded");
    let found = Found { answer: plan(&[member("app", &[])]), set: Some(set(Some(&healthy))), ..Found::default() };
    let before = derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH);
    let mut resolution = Resolution { status: Some(before.clone()), ..Resolution::default() };
    resolution.metadata.generation = Some(7);
    let status = interrupted(&resolution, Reason::Forbidden, "the policy denies it", Timestamp::UNIX_EPOCH);
    assert_eq!((&status.members, status.decision, status.observed_generation), (&before.members, Some(3), Some(7)));
    insta::assert_snapshot!(lines(&status), @r"
    Resolved=True/PackagesResolved: the decision has 1 package
    Installed=True/Succeeded: BundleDeployment resolveset-shop has 1 member
    Healthy=True/Succeeded: BundleDeployment resolveset-shop has 1 member
    Ready=False/Forbidden: the policy denies it
    Stalled=True/Forbidden: the policy denies it
    ");
    resolution.status = Some(status);
    assert_eq!(lines(&derive(&resolution, &found, Timestamp::UNIX_EPOCH)), lines(&before), "the next reconcile");
}

/// A column of a table shows one value; `members[*].bundle` was the first of them.
#[test]
fn all_bundles_are_in_one_text() {
    let bundles = |count: usize| {
        let members: Vec<PlannedMember> = (0..count).map(|number| member(&format!("p{number:02}"), &[])).collect();
        let found = Found { answer: plan(&members), ..Found::default() };
        derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH).bundles
    };
    assert_eq!(bundles(2), "p00.v1.0.0, p01.v1.0.0");
    assert!(bundles(50).ends_with("p19.v1.0.0, and 30 more"), "{}", bundles(50));
}

#[test]
fn what_is_held_back_is_reported_also_while_a_decision_waits() {
    let held_back =
        Some(HeldBack { version: "2.0.0".to_owned(), by: vec!["base 1.0.0 is installed and stays".to_owned()] });
    let planned = [PlannedMember { held_back, ..member("app", &[]) }];
    let pending = PendingDecision { reason: "OutsideMaintenanceWindow".to_owned(), ..PendingDecision::default() };
    for pending in [None, Some(pending)] {
        let found = Found { answer: plan(&planned), set: Some(set(None)), pending, ..Found::default() };
        let status = derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH);
        let held_back = status.members[0].held_back.as_ref().unwrap();
        assert_eq!((held_back.version.as_str(), held_back.explanation.len()), ("2.0.0", 1));
    }
}

#[test]
fn no_text_of_a_status_deceives_its_readers() {
    let forged = || "h2.v1\u{202e}\u{1b}[2J".to_owned();
    let member = PlannedMember {
        package: forged(),
        bundle: forged(),
        version: forged(),
        catalog: Some(forged()),
        channel: Some(forged()),
        image: forged(),
        path: vec![forged()],
        reasons: vec![forged()],
        deprecated: Some(forged()),
        held_back: Some(HeldBack { version: forged(), by: vec![forged()] }),
        ..PlannedMember::default()
    };
    let left_out = vec![LeftOut { package: forged(), reason: forged(), explanation: vec![forged()] }];
    let notes = vec![forged()];
    let planned = Plan { members: vec![member.clone()], notes: notes.clone(), waiting: notes, left_out };
    let pending = PendingDecision { reason: "ApprovalRequired".to_owned(), message: forged(), changes: vec![forged()] };
    let history = vec![DecisionSummary { number: 1, time: None, members: vec![forged()] }];
    let refused = Answer::Refused { message: forged(), explanation: vec![forged()] };
    for (answer, pending) in [(Answer::Plan(planned), None), (refused, Some(pending))] {
        let set = Set { history: history.clone(), members: vec![member.clone()], ..set(None) };
        let found = Found { answer, pending, set: Some(set), alternatives: vec![forged()], ..Found::default() };
        let status = derive(&Resolution::default(), &found, Timestamp::UNIX_EPOCH);
        assert_eq!(status.members[0].bundle, r"h2.v1\u{202E}\u{001B}[2J");
        let texts = serde_json::to_string(&status).unwrap();
        assert!(!texts.contains(is_deceptive) && !texts.contains("\\u001b"), "{texts}");
    }
}

#[test]
fn what_others_have_is_reported_with_its_state_while_a_decision_waits_and_without_a_set() {
    let elsewhere = PlannedMember { elsewhere: Some("base".to_owned()), ..member("base", &[]) };
    let plan = plan(&[member("app", &[]), elsewhere, member("new", &[])]);
    let pending = PendingDecision { reason: Reason::PreflightFailed.to_string(), ..PendingDecision::default() };
    let states = [("base".to_owned(), "Succeeded".to_owned())].into();
    let mut found = Found { answer: plan, set: Some(set(None)), states, pending: Some(pending), ..Found::default() };
    let reported = |found: &Found<'_>| {
        let members = derive(&Resolution::default(), found, Timestamp::UNIX_EPOCH).members;
        let line = |it: chandler_api::ResolvedMember| format!("{} {}", it.package, it.state.unwrap_or_default());
        members.into_iter().map(line).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(reported(&found), "app , base Succeeded");
    (found.set, found.pending) = (None, None);
    assert_eq!(reported(&found), "app , base Succeeded, new ");
}
