use chandler_api::Reason;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::staged;

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn candidate(release: u8, cause: Cause) -> Candidate {
    Candidate {
        cause,
        source: BundleSource::default(),
        content_digest: Digest::of(&[release]).to_string(),
        provisioner: ProvisionerInUse::default(),
        install_namespace: "n".into(),
        config: Config::Known(Map::new()),
        own_config: None,
        spec_config: None,
        values: Vec::new(),
        release: ReleaseFacts { digest: Digest::of(&[release]), objects: 1, stages: 1, version: None },
        approval: None,
    }
}

fn terms(generation: i64, second: i64) -> RevisionTerms {
    RevisionTerms {
        generation: Some(generation),
        requested: false,
        deadline: Some(Duration::from_secs(10)),
        limit: 5,
        pinned: None,
        now: at(second),
    }
}

/// One line for each revision.
fn lines(status: &BundleDeploymentStatus) -> String {
    let line = |revision: &Revision| {
        let back = revision.rollback_to.map(|number| format!(" (as {number})")).unwrap_or_default();
        let message = revision.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
        let second = |time: &Option<Time>| time.as_ref().map_or(-1, |time| time.0.as_second());
        let (start, end) = (second(&revision.start_time), second(&revision.completion_time));
        format!("{}{back} {} {start}..{end}{message}\n", revision.number, revision.outcome.as_str())
    };
    status.history.iter().map(line).collect()
}

fn deployment(status: &BundleDeploymentStatus, rollout: serde_json::Value, generation: i64) -> BundleDeployment {
    let mut deployment: BundleDeployment = serde_json::from_value(json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": "a", "generation": generation},
        "spec": {"installNamespace": "n", "provisionerClassName": "c", "rollout": rollout,
                 "source": {"type": "image", "image": {"ref": "registry.example.com/a:v1"}}},
    }))
    .unwrap();
    deployment.status = Some(status.clone());
    deployment
}

fn back(deployment: &BundleDeployment, release: u8) -> Option<(i64, i64)> {
    let (failed, good) = rollback(deployment, Digest::of(&[release]).as_str(), "n")?;
    Some((failed.number, good.number))
}

#[test]
fn a_history() {
    let mut status = BundleDeploymentStatus::default();
    let spec = |release| candidate(release, Cause::Spec);
    record(&mut status, &spec(1), RevisionStep::Going("a"), &terms(1, 0));
    record(&mut status, &spec(1), RevisionStep::Complete, &terms(1, 3));
    // A repair long after has no deadline.
    record(&mut status, &spec(1), RevisionStep::Going("b"), &terms(1, 99));
    record(&mut status, &spec(2), RevisionStep::Going("c"), &terms(2, 100));
    record(&mut status, &spec(3), RevisionStep::Going("d"), &terms(3, 105));
    record(&mut status, &spec(3), RevisionStep::Going("e"), &terms(3, 115));
    record(&mut status, &spec(3), RevisionStep::Going("f"), &terms(3, 120));
    let cause = Cause::Failed { failed: 3, message: String::new(), to: 1 };
    record(&mut status, &candidate(1, cause), RevisionStep::Complete, &terms(3, 121));
    insta::assert_snapshot!(lines(&status), @r"
    1 Succeeded 0..3
    2 Superseded 100..105
    3 Failed 105..115: e
    4 (as 1) Succeeded 121..121
    ");
    assert_eq!(status.revision, Some(4));
}

#[test]
fn what_failed_is_tried_again_for_another_spec_or_on_request() {
    let mut status = BundleDeploymentStatus::default();
    let spec = candidate(1, Cause::Spec);
    record(&mut status, &spec, RevisionStep::Going("a"), &terms(1, 0));
    record(&mut status, &spec, RevisionStep::Going("a"), &terms(1, 10));
    assert_eq!(status.history[0].outcome, Outcome::Failed);
    for again in [terms(2, 20), RevisionTerms { requested: true, ..terms(1, 20) }] {
        let mut status = status.clone();
        record(&mut status, &spec, RevisionStep::Going("a"), &again);
        assert_eq!(lines(&status), "1 RollingOut 20..-1\n");
    }
    // It may still come to a good end by itself.
    record(&mut status, &spec, RevisionStep::Complete, &terms(1, 30));
    assert_eq!(lines(&status), "1 Succeeded 0..30\n");
}

#[test]
fn an_approval_is_kept_and_begins_what_was_begun_without_it() {
    let mut status = BundleDeploymentStatus::default();
    let spec = candidate(1, Cause::Spec);
    record(&mut status, &spec, RevisionStep::Going("a"), &terms(1, 0));
    record(&mut status, &spec, RevisionStep::Going("a"), &terms(1, 10));
    assert_eq!(lines(&status), "1 Failed 0..10: a\n");
    let approval = ApprovedChange { change: "sha256:1".into(), approved_by: "alice".into(), terms: None };
    let approved = Candidate { approval: Some(approval.clone()), ..spec.clone() };
    record(&mut status, &approved, RevisionStep::Going("a"), &terms(1, 50));
    assert_eq!(lines(&status), "1 RollingOut 50..-1\n");
    // Later reconciles need no approval and have none; the same approval again changes nothing.
    record(&mut status, &spec, RevisionStep::Going("a"), &terms(1, 55));
    record(&mut status, &approved, RevisionStep::Complete, &terms(1, 56));
    assert_eq!(lines(&status), "1 Succeeded 50..56\n");
    assert_eq!(status.history[0].approval, Some(approval));
    record(&mut status, &candidate(2, Cause::Spec), RevisionStep::Going("b"), &terms(2, 60));
    assert_eq!(status.history[1].approval, None);
}

#[test]
fn a_terminal_problem_fails_the_revision_at_once() {
    let mut status = BundleDeploymentStatus::default();
    let transient = Problem::transient(Reason::ObjectRefused, "x");
    record(&mut status, &candidate(1, Cause::Spec), RevisionStep::Refused(&transient), &terms(1, 0));
    assert_eq!(lines(&status), "1 RollingOut 0..-1\n");
    let terminal = Problem::terminal(Reason::InvalidOutput, "y");
    record(&mut status, &candidate(1, Cause::Spec), RevisionStep::Refused(&terminal), &terms(1, 1));
    assert_eq!(lines(&status), "1 Failed 0..1: y\n");
}

#[test]
fn a_rollback_goes_to_the_last_revision_that_succeeded() {
    let mut status = BundleDeploymentStatus::default();
    let on_failure = || json!({"onFailure": "Rollback"});
    for (release, step, second) in
        [(1, RevisionStep::Complete, 0), (2, RevisionStep::Going("b"), 1), (2, RevisionStep::Going("b"), 11)]
    {
        record(&mut status, &candidate(release, Cause::Spec), step, &terms(1, second));
    }
    assert_eq!(back(&deployment(&status, on_failure(), 1), 2), Some((2, 1)));
    assert_eq!(back(&deployment(&status, on_failure(), 1), 3), None, "other content is tried");
    assert_eq!(back(&deployment(&status, on_failure(), 2), 2), None, "another spec is tried");
    assert_eq!(back(&deployment(&status, json!({}), 1), 2), None, "the default is to hold");
    let mut requested = deployment(&status, on_failure(), 1);
    requested.annotations_mut().insert(REQUESTED_AT_ANNOTATION.into(), "now".into());
    assert_eq!(back(&requested, 2), None, "the user requested it");
    requested.status.as_mut().unwrap().last_handled_reconcile_at = Some("now".into());
    assert_eq!(back(&requested, 2), Some((2, 1)), "the request was handled");
    status.history.remove(0);
    assert_eq!(back(&deployment(&status, on_failure(), 1), 2), None, "there is no revision to roll back to");
}

#[test]
fn a_pin_names_what_is_kept() {
    let mut status = BundleDeploymentStatus::default();
    let message = |status: &BundleDeploymentStatus, number: i64| {
        let deployment = deployment(status, json!({"toRevision": number}), 1);
        pinned(&deployment).map(|revision| revision.unwrap().number).map_err(|error| error.to_string())
    };
    insta::assert_snapshot!(message(&status, 7).unwrap_err(), @"spec.rollout.toRevision: status.history does not hold revision 7, but none");
    record(&mut status, &candidate(1, Cause::Spec), RevisionStep::Complete, &terms(1, 0));
    record(&mut status, &candidate(2, Cause::Spec), RevisionStep::Complete, &terms(2, 0));
    insta::assert_snapshot!(message(&status, 7).unwrap_err(), @"spec.rollout.toRevision: status.history does not hold revision 7, but 1, 2");
    assert_eq!(message(&status, 1), Ok(1));
    assert_eq!(pinned(&deployment(&status, json!({}), 1)), Ok(None));
}

#[test]
fn a_long_configuration_and_certificates_are_not_kept() {
    let mut status = BundleDeploymentStatus::default();
    let mut long = candidate(1, Cause::Spec);
    let config = json!({"a": "x".repeat(KEPT_CONFIG_BYTES)});
    long.config = Config::Known(config.as_object().cloned().unwrap());
    long.source =
        serde_json::from_value(json!({"type": "image", "image": {"ref": "a", "certificateData": "x"}})).unwrap();
    let current = record(&mut status, &long, RevisionStep::Complete, &terms(1, 0)).unwrap();
    assert!(current.config.is_none());
    assert!(current.source.image.as_ref().unwrap().certificate_data.is_none());
    let short = Candidate { config: Config::Known(Map::new()), ..long };
    let current = record(&mut status, &short, RevisionStep::Complete, &terms(1, 0)).unwrap();
    assert_eq!(current.config, Some(Map::new()), "the same release from another configuration");
    assert_eq!(status.history.len(), 1);
}

#[test]
fn revisions_that_may_run_again_or_must_not_are_kept() {
    let revision =
        |number, outcome, generation| Revision { number, outcome, generation: Some(generation), ..Revision::default() };
    let history = [
        revision(1, Outcome::Superseded, 1),
        revision(2, Outcome::Succeeded, 1),
        revision(3, Outcome::Failed, 1),
        revision(4, Outcome::Failed, 2),
        revision(5, Outcome::Superseded, 2),
        revision(6, Outcome::RollingOut, 2),
    ];
    for (limit, pinned, kept) in [
        (9, None, vec![1, 2, 3, 4, 5, 6]),
        (5, None, vec![2, 3, 4, 5, 6]),
        (4, None, vec![2, 4, 5, 6]),
        (1, None, vec![2, 4, 6]),
        (1, Some(1), vec![1, 2, 4, 6]),
    ] {
        let mut history = history.to_vec();
        shorten(&mut history, &RevisionTerms { limit, pinned, ..terms(2, 0) });
        assert_eq!(history.iter().map(|revision| revision.number).collect::<Vec<_>>(), kept, "{limit} {pinned:?}");
    }
}

/// Without the revision before it, an update of the class does not look like one, and has nothing to go back to.
#[test]
fn the_revision_that_an_update_of_the_class_replaced_is_kept() {
    let revision = |number, component: &str, content: &str| Revision {
        number,
        outcome: Outcome::Succeeded,
        provisioner: ProvisionerInUse { digest: component.into(), ..ProvisionerInUse::default() },
        content_digest: content.into(),
        completion_time: Some(at(number)),
        ..Revision::default()
    };
    let kept = |history: &[Revision]| {
        let mut history = history.to_vec();
        shorten(&mut history, &RevisionTerms { limit: 1, ..terms(1, 0) });
        history
    };
    let numbers = |history: &[Revision]| history.iter().map(|revision| revision.number).collect::<Vec<_>>();
    let updated = kept(&[revision(1, "oldest", "x"), revision(2, "old", "x"), revision(3, "new", "x")]);
    assert_eq!(numbers(&updated), [2, 3]);
    assert_eq!(staged::progress(&updated, "new", false, true, &at(3)), staged::Progress::Unhealthy);
    assert_eq!(numbers(&kept(&[revision(1, "old", "x"), revision(2, "new", "y")])), [2], "its author changed it");
    assert_eq!(numbers(&kept(&[revision(1, "old", "x"), revision(2, "old", "x")])), [2]);
}

#[test]
fn the_release_that_runs_comes_before_a_new_candidate_of_a_known_spec() {
    let status = |outcome, observed_generation| {
        let mut status = BundleDeploymentStatus::default();
        record(&mut status, &candidate(1, Cause::Spec), RevisionStep::Complete, &terms(1, 0));
        status.history[0].outcome = outcome;
        BundleDeploymentStatus { observed_generation, ..status }
    };
    for (outcome, observed, release, first) in [
        (Outcome::Succeeded, 1, 2, true),
        (Outcome::Succeeded, 1, 1, false),
        (Outcome::Succeeded, 0, 2, false),
        (Outcome::Failed, 1, 2, false),
    ] {
        let deployment = deployment(&status(outcome, Some(observed)), json!({}), 1);
        let comes_first = running_comes_first(&deployment, &candidate(release, Cause::Spec));
        assert_eq!(comes_first, first, "{outcome:?} {observed} {release}");
    }
    let mut new = deployment(&BundleDeploymentStatus::default(), json!({}), 1);
    new.status = None;
    assert!(!running_comes_first(&new, &candidate(1, Cause::Spec)));
}

#[test]
fn a_rollback_follows_at_once_when_the_release_of_the_spec_has_failed() {
    let mut status = BundleDeploymentStatus::default();
    for (release, second) in [(1, 0), (2, 1), (2, 11)] {
        let step = if release == 1 { RevisionStep::Complete } else { RevisionStep::Going("b") };
        record(&mut status, &candidate(release, Cause::Spec), step, &terms(1, second));
    }
    let failed = |cause| Selection { candidate: Some(candidate(2, cause)), ..Selection::default() };
    let unavailable = Some(Problem::terminal(Reason::RevisionUnavailable, "its content is gone"));
    for (selection, expected) in [
        (failed(Cause::Spec), true),
        (failed(Cause::Pinned(2)), false),
        (Selection { rollback_problem: unavailable, ..failed(Cause::Spec) }, false),
        (Selection { candidate: Some(candidate(1, Cause::Spec)), ..Selection::default() }, false),
        (Selection::default(), false),
    ] {
        let deployment = deployment(&status, json!({"onFailure": "Rollback"}), 1);
        assert_eq!(has_just_failed(&deployment, &selection), expected, "{selection:?}");
    }
    let deployment = deployment(&status, json!({}), 1);
    assert!(!has_just_failed(&deployment, &failed(Cause::Spec)), "the default is to hold");
}

#[test]
fn a_rollback_is_a_revision_that_runs_again() {
    let mut status = BundleDeploymentStatus::default();
    record(&mut status, &candidate(1, Cause::Spec), RevisionStep::Complete, &terms(1, 0));
    record(&mut status, &candidate(2, Cause::Spec), RevisionStep::Complete, &terms(1, 1));
    let failed = || Cause::Failed { failed: 2, message: String::new(), to: 1 };
    let is = |status: &BundleDeploymentStatus, candidate: Candidate| {
        is_rollback(&deployment(status, json!({}), 1), &candidate)
    };
    assert!(is(&status, candidate(1, failed())) && is(&status, candidate(1, Cause::Pinned(1))));
    assert!(!is(&status, candidate(2, Cause::Spec)) && !is(&status, candidate(1, Cause::Waiting(1))));
    record(&mut status, &candidate(1, failed()), RevisionStep::Complete, &terms(1, 2));
    assert!(is(&status, candidate(1, Cause::Spec)), "it has been rolled back to");
    assert!(!is(&status, candidate(2, Cause::Spec)), "another release than the one that came back");
}

#[test]
fn a_request_is_that_of_one_object_one_spec_and_one_annotation() {
    let one = deployment(&BundleDeploymentStatus::default(), json!({}), 1);
    let mut other = one.clone();
    other.metadata.uid = Some("other".into());
    let mut asked = one.clone();
    asked.annotations_mut().insert(REQUESTED_AT_ANNOTATION.into(), "now".into());
    let next = deployment(&BundleDeploymentStatus::default(), json!({}), 2);
    assert_eq!(requested(&one), requested(&one.clone()));
    for different in [&other, &asked, &next] {
        assert_ne!(requested(different), requested(&one), "{:?}", different.metadata);
    }
    asked.status.as_mut().unwrap().last_handled_reconcile_at = Some("now".into());
    assert_eq!(requested(&asked), requested(&one), "the request was handled");
}

#[test]
fn the_terms_follow_the_spec() {
    let of = |rollout: serde_json::Value| {
        let terms = RevisionTerms::of(&deployment(&BundleDeploymentStatus::default(), rollout, 7), at(3));
        (terms.deadline.map(|deadline| deadline.as_secs()), i64::try_from(terms.limit).unwrap(), terms.pinned)
    };
    let history = i64::from(HISTORY_LIMIT);
    let most = i64::from(MOST_HISTORY);
    let default_deadline = u64::try_from(ROLLBACK_DEADLINE_SECONDS).unwrap();
    for (rollout, want) in [
        (json!({}), (None, history, None)),
        (json!({"onFailure": "Rollback"}), (Some(default_deadline), history, None)),
        (json!({"onFailure": "Rollback", "progressDeadlineSeconds": 5}), (Some(5), history, None)),
        (json!({"historyLimit": 0}), (None, 1, None)),
        (json!({"historyLimit": 9999, "toRevision": 4}), (None, most, Some(4))),
    ] {
        assert_eq!(of(rollout.clone()), want, "{rollout}");
    }
    let began = Revision { start_time: Some(at(10)), ..Revision::default() };
    assert_eq!(elapsed(&began, &at(25)), Duration::from_secs(15));
    assert_eq!(elapsed(&began, &at(5)), Duration::ZERO, "the clock was set back");
    assert_eq!(elapsed(&Revision::default(), &at(25)), Duration::ZERO);
}

#[test]
fn a_long_message_ends_between_characters() {
    assert_eq!(cut("short", 9), "short");
    assert_eq!(cut("abcdef", 3), "abc");
    assert_eq!(cut("aé", 2), "a");
}

/// What happens between two reconciles, and how far the next one comes.
#[derive(Clone, Debug)]
struct Happening {
    release: u8,
    step: u8,
    new_spec: bool,
    requested: bool,
    seconds: i64,
    limit: usize,
}

fn happening() -> impl Strategy<Value = Happening> {
    (0..4u8, 0..4u8, prop::bool::weighted(0.2), prop::bool::weighted(0.1), 0..8i64, 1..6usize).prop_map(
        |(release, step, new_spec, requested, seconds, limit)| Happening {
            release,
            step,
            new_spec,
            requested,
            seconds,
            limit,
        },
    )
}

fn step(number: u8, problem: &Problem) -> RevisionStep<'_> {
    match number {
        0 => RevisionStep::Complete,
        1 => RevisionStep::Refused(problem),
        _ => RevisionStep::Going("waits"),
    }
}

proptest! {
    #[test]
    fn numbers_rise_by_one_and_the_history_is_bounded(happenings in prop::collection::vec(happening(), 1..60)) {
        let mut status = BundleDeploymentStatus::default();
        let (mut generation, mut second) = (1, 0);
        let problem = Problem::transient(Reason::ObjectRefused, "no");
        for happening in happenings {
            generation += i64::from(happening.new_spec);
            second += happening.seconds;
            let terms = RevisionTerms { requested: happening.requested, limit: happening.limit, ..terms(generation, second) };
            let candidate = candidate(happening.release, Cause::Spec);
            let before = status.clone();
            let begins = begins(&before.history, &candidate);
            record(&mut status, &candidate, step(happening.step, &problem), &terms);

            prop_assert_eq!(status.revision.unwrap(), before.revision.unwrap_or_default() + i64::from(begins));
            prop_assert!(status.history.is_sorted_by(|a, b| a.number < b.number));
            prop_assert_eq!(status.history.last().map(|revision| revision.number), status.revision);
            prop_assert!(status.history.len() <= happening.limit.max(4), "{}", lines(&status));
            let (last, earlier) = status.history.split_last().unwrap();
            prop_assert!(earlier.iter().all(|revision| revision.outcome != Outcome::RollingOut));
            prop_assert_eq!(last.completion_time.is_none(), last.outcome == Outcome::RollingOut);

            // A reconcile that is repeated, after a crash or because nothing has changed, changes nothing.
            let once = status.clone();
            let repeated = RevisionTerms { requested: false, ..terms };
            record(&mut status, &candidate, step(happening.step, &problem), &repeated);
            prop_assert_eq!(&status, &once);
        }
    }

    /// The controller as a whole: the spec describes releases of which only the even ones ever become healthy.
    #[test]
    fn a_failing_release_is_tried_once_for_each_spec(
        specs in prop::collection::vec(0..4u8, 1..12), passes in 4..20i64, limit in 1..6usize
    ) {
        let mut status = BundleDeploymentStatus::default();
        let mut second = 0;
        for (generation, wanted) in (1..).zip(specs) {
            let began = status.revision.unwrap_or_default();
            for _ in 0..passes {
                second += 5;
                let deployment = deployment(&status, json!({"onFailure": "Rollback"}), generation);
                let back = rollback(&deployment, Digest::of(&[wanted]).as_str(), "n");
                let release = |revision: &Revision| (0..4).find(|it| Digest::of(&[*it]).as_str() == revision.release_digest);
                let (release, cause) = match back {
                    Some((failed, good)) => {
                        prop_assert_eq!(good.outcome, Outcome::Succeeded);
                        let cause = Cause::Failed { failed: failed.number, message: String::new(), to: good.number };
                        (release(good).unwrap(), cause)
                    }
                    None => (wanted, Cause::Spec),
                };
                let step = if release % 2 == 0 { RevisionStep::Complete } else { RevisionStep::Going("waits") };
                record(&mut status, &candidate(release, cause), step, &RevisionTerms { limit, ..terms(generation, second) });
            }
            let begun = status.revision.unwrap_or_default() - began;
            prop_assert!(begun <= 2, "tried and rolled back, {begun} revisions: {}", lines(&status));
            let runs = status.history.last().unwrap();
            let good_ever = status.history.iter().any(|revision| revision.outcome == Outcome::Succeeded);
            prop_assert_eq!(runs.outcome == Outcome::Succeeded, good_ever || wanted % 2 == 0, "{}", lines(&status));
        }
    }
}
