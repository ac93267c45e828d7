//! What a reconcile of a BundleDeployment does, and when the next one is.

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleSource, Outcome, Reason, Revision, names::TEARDOWN_FINALIZER};
use chandler_source::Source;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::ResourceExt as _;

use super::{
    assessment::{Assessment, ReconcileOutcome, RolloutFindings},
    revisions::{Candidate, begins, elapsed},
};
use crate::problem::Problem;

/// How soon a rollout that has just begun is checked without a watch event.
const SOON: Duration = Duration::from_secs(1);
/// How long a rollout goes without a watch event before it is checked.
const ROLLOUT_CHECK: Duration = Duration::from_secs(30);

/// How soon a preparation is checked, although its end triggers a reconcile.
const PREPARATION_CHECK: Duration = Duration::from_secs(30);

/// How often the controller checks for the custom resources that keep CRDs: it does not watch them.
const CRDS_CHECK: Duration = Duration::from_mins(5);
/// The same while a deletion waits for them.
const HELD_CHECK: Duration = Duration::from_secs(15);
/// How often the refusals of a pending change are checked again: not every cause of them is watched.
const REFUSAL_CHECK: Duration = Duration::from_mins(1);

/// The longest pause, before jitter, while a permission, an account or a namespace is missing: what a user adds is noticed within
/// ten seconds.
pub const GRANT_CHECK: Duration = Duration::from_secs(8);

/// The longest pause until the objects of a restored BundleDeployment are looked for again.
const RESTORE_CHECK: Duration = Duration::from_secs(15);

/// What a reconcile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing: it is being deleted and has no finalizer of ours, or it belongs to another provisioner.
    Ignore,
    /// Report that it is suspended, and look at the release that runs.
    Suspend,
    /// Delete the objects of the release.
    TearDown,
    /// Remove our finalizers and orphan the objects: `kubectl delete --cascade=orphan`.
    RemoveFinalizer,
    /// Fetch, render and roll out.
    Deploy,
}

/// Whether it has our finalizer.
pub fn has_finalizer(deployment: &BundleDeployment) -> bool {
    deployment.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER)
}

/// The finalizer of a deletion that leaves dependents alone (`metav1.FinalizerOrphanDependents`).
const ORPHAN: &str = "orphan";

/// What a reconcile does about this object, where classes with these prefixes belong to other provisioners. Deletion comes first: an
/// object that is being deleted is never installed again (RukPak did, and left a cached archive behind).
pub fn decide(deployment: &BundleDeployment, foreign: &[String]) -> Intent {
    let held = has_finalizer(deployment);
    let class = deployment.spec.provisioner_class_name.as_str();
    if !held && foreign.iter().any(|prefix| class.starts_with(prefix.as_str())) {
        return Intent::Ignore;
    }
    let orphans = deployment.finalizers().iter().any(|finalizer| finalizer == ORPHAN);
    match (deployment.metadata.deletion_timestamp.is_some(), held) {
        (true, true) if orphans => Intent::RemoveFinalizer,
        (true, true) => Intent::TearDown,
        // The objects that RukPak installed are not ours to delete, but its finalizers are ours to remove.
        (true, false) if !deployment.finalizers().is_empty() => Intent::TearDown,
        (true, false) => Intent::Ignore,
        (false, _) if deployment.spec.suspend => Intent::Suspend,
        (false, _) => Intent::Deploy,
    }
}

/// How a release is rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It was complete at the last reconcile: observe it.
    Observe,
    /// Apply it.
    Advance,
}

/// How a candidate is rolled out, by the revisions of the record.
pub fn route(history: &[Revision], candidate: &Candidate) -> Route {
    let succeeded = history.last().is_some_and(|current| current.outcome == Outcome::Succeeded);
    if succeeded && !begins(history, candidate) { Route::Observe } else { Route::Advance }
}

/// When a BundleDeployment is reconciled again without a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Only when something changes.
    Change,
    /// After this time.
    After(Duration),
    /// When the tag of its image is due to be resolved again.
    Poll,
    /// After this time, and the count of failures stays.
    Unchanged(Duration),
    /// Later with each failure.
    BackOff,
    /// Backs off, but for this time at most.
    BackOffAtMost(Duration),
    /// Backs off, or continues when this registry answers; one of the reconciles that wait for it asks often.
    Registry(String),
}

/// How long a rollout has taken, and how long it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Since the rollout began; zero where that is unknown.
    pub elapsed: Duration,
    /// Until its deadline; `None` if it has none or the deadline has passed.
    pub left: Option<Duration>,
}

/// When the next reconcile is.
pub fn next(found: &Assessment, clock: Clock, source: &BundleSource) -> Next {
    match &found.outcome {
        ReconcileOutcome::RollingOut(_) | ReconcileOutcome::Deleting(_) => {
            // Not every cause of waiting is watched: a kind that the API server begins to serve is not. So check often at first,
            // and less and less often.
            let pause = (clock.elapsed / 4).clamp(SOON, ROLLOUT_CHECK);
            // A second more, since the status counts whole seconds.
            let deadline = clock.left.map(|left| left + Duration::from_secs(1));
            Next::After(deadline.map_or(pause, |left| left.min(pause)))
        }
        ReconcileOutcome::Starting => Next::After(Duration::ZERO),
        ReconcileOutcome::Preparing => Next::Unchanged(PREPARATION_CHECK),
        ReconcileOutcome::ApprovalRequired => poll(source),
        // The content service triggers a reconcile for an upload.
        ReconcileOutcome::Suspended | ReconcileOutcome::UploadPending(_) => Next::Change,
        ReconcileOutcome::Applied(_) => found.rollout.debounce.map_or_else(|| poll(source), Next::After),
        ReconcileOutcome::DeletionFailed(problem) if problem.reason == Reason::CustomResourcesExist => {
            Next::After(HELD_CHECK)
        }
        _ => match found.problem() {
            Some(Problem { silent_registry: Some(registry), .. }) => Next::Registry(registry.clone()),
            // Without an account nothing is polled, nor on behalf of one that only another spec helps.
            Some(problem) if problem.reason == Reason::ServiceAccountRequired => Next::Change,
            Some(problem) if problem.reason == Reason::ServiceAccountNotGranted && problem.terminal => Next::Change,
            // The tag may move to better content.
            Some(problem) if problem.terminal => poll(source),
            Some(problem) if problem.reason == Reason::RestoreIncomplete => Next::BackOffAtMost(RESTORE_CHECK),
            Some(problem) if problem.needs_grant => Next::BackOffAtMost(GRANT_CHECK),
            _ => Next::BackOff,
        },
    }
}

/// When something of the release that runs, or of a pending change, is due, whatever the reconcile waits for.
pub fn due(found: &Assessment) -> impl Iterator<Item = Duration> {
    let crds = found.findings().any(|findings| !findings.kept.is_empty()).then_some(CRDS_CHECK);
    let running = found.running.as_ref().and_then(|running| running.findings.debounce);
    let refused = found.selection.pending.as_ref().is_some_and(|pending| !pending.refusals.is_empty());
    let refused = refused.then_some(REFUSAL_CHECK);
    let dates = found.findings().flat_map(|findings| [findings.renewal, findings.contention, findings.causes]);
    dates.chain([crds, running, refused]).flatten()
}

/// How long a rollout runs before its status reports the causes below the objects that it waits for: until then most objects just
/// take their time, and looking would only cost requests.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a rollout has waited so long that the causes are worth a look.
pub fn wants_causes(history: &[Revision], candidate: &Candidate, now: &Time) -> bool {
    let current = history.last().filter(|_| !begins(history, candidate));
    current.is_some_and(|current| elapsed(current, now) >= PATIENCE)
}

/// Whether the announcement of a revision reports this rollout for now: it waits, and found nothing else.
pub fn says_enough(found: &Assessment) -> bool {
    // What is due, and the health that the rollout waits for, do not count as findings. Every field is named: a new one does not compile before it
    // is decided whether it has to be reported.
    let RolloutFindings {
        health: _,
        renewal: _,
        contention: _,
        causes: _,
        debounce: _,
        warnings,
        kept,
        conflicts,
        recreated,
        drift,
        repaired,
        recreated_crds,
    } = &found.rollout;
    let lists = [warnings, conflicts, recreated, repaired];
    let found_nothing = lists.into_iter().all(Vec::is_empty) && kept.is_empty() && recreated_crds.is_empty();
    matches!(found.outcome, ReconcileOutcome::RollingOut(_))
        && found_nothing
        && drift.is_none()
        && found.running.is_none()
        && found.selection.pending.is_none()
}

/// Whether the release that runs must be looked after beside a rollout that ended like this: it is another one than the candidate.
pub fn running_needs_look(outcome: &ReconcileOutcome, history: &[Revision], candidate: &Candidate) -> bool {
    matches!(outcome, ReconcileOutcome::ApplyFailed(_)) && begins(history, candidate)
}

fn poll(source: &BundleSource) -> Next {
    let moves = Source::parse(source).is_ok_and(|source| source.can_move());
    if moves { Next::Poll } else { Next::Change }
}

#[cfg(test)]
mod tests {
    use chandler_api::PendingChange;
    use chandler_core::Digest;
    use chandler_permissions::Account;
    use chandler_rollout::{PermissionsMissing, RolloutError};
    use serde_json::json;

    use super::*;
    use crate::assessment::{RollingOut, RolloutFindings, Running};

    #[test]
    fn causes_are_worth_a_look_when_a_rollout_has_waited() {
        let candidate = Candidate::of_release(&Digest::of(b"a"), "n");
        let at = |second: i64| Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap());
        let current = Revision {
            release_digest: Digest::of(b"a").to_string(),
            install_namespace: "n".to_owned(),
            start_time: Some(at(100)),
            outcome: Outcome::RollingOut,
            ..Revision::default()
        };
        let wants = |history: &[Revision], second| wants_causes(history, &candidate, &at(second));
        let another = Revision { install_namespace: "another".to_owned(), ..current.clone() };
        let current = [current];
        assert_eq!((wants(&current, 104), wants(&current, 105)), (false, true));
        assert_eq!((wants(&[], 200), wants(&[another], 200)), (false, false), "it begins");
        let mut found = Assessment::early(ReconcileOutcome::Suspended);
        found.rollout.causes = Some(Duration::from_secs(10));
        assert_eq!(due(&found).min(), Some(Duration::from_secs(10)));
    }

    fn deployment(
        metadata: serde_json::Value,
        spec: &serde_json::Value,
        status: &serde_json::Value,
    ) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": metadata,
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
            "status": status,
        });
        json_patch_merge(&mut object["spec"], spec);
        serde_json::from_value(object).unwrap()
    }

    fn json_patch_merge(target: &mut serde_json::Value, patch: &serde_json::Value) {
        for (key, value) in patch.as_object().unwrap() {
            target[key] = value.clone();
        }
    }

    #[test]
    fn deletion_comes_before_everything() {
        let deleted = "2026-01-01T00:00:00Z";
        for (metadata, suspend, intent) in [
            (json!({}), false, Intent::Deploy),
            (json!({}), true, Intent::Suspend),
            (json!({"deletionTimestamp": deleted, "finalizers": [TEARDOWN_FINALIZER]}), true, Intent::TearDown),
            (
                json!({"deletionTimestamp": deleted, "finalizers": [TEARDOWN_FINALIZER, "orphan"]}),
                false,
                Intent::RemoveFinalizer,
            ),
            (json!({"deletionTimestamp": deleted, "finalizers": ["other"]}), false, Intent::TearDown),
            (json!({"deletionTimestamp": deleted}), false, Intent::Ignore),
        ] {
            let deployment = deployment(metadata.clone(), &json!({"suspend": suspend}), &json!(null));
            assert_eq!(decide(&deployment, &[]), intent, "{metadata} {suspend}");
        }
    }

    #[test]
    fn a_deployment_of_another_provisioner_is_left_alone_unless_it_is_held() {
        let foreign = ["other-".to_owned(), "c-".to_owned()];
        for (class, metadata, intent) in [
            ("c", json!({}), Intent::Deploy),
            ("c-1", json!({}), Intent::Ignore),
            ("c-1", json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other"]}), Intent::Ignore),
            ("c-1", json!({"finalizers": [TEARDOWN_FINALIZER]}), Intent::Deploy),
            // The class is detected among ours.
            ("", json!({}), Intent::Deploy),
        ] {
            let deployment = deployment(metadata.clone(), &json!({"provisionerClassName": class}), &json!(null));
            assert_eq!(decide(&deployment, &foreign), intent, "{class} {metadata}");
        }
    }

    #[test]
    fn only_a_revision_that_was_complete_is_observed() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let revision = |digest: &Digest, outcome| Revision {
            release_digest: digest.to_string(),
            install_namespace: "n".into(),
            outcome,
            ..Revision::default()
        };
        let candidate = Candidate::of_release(&a, "n");
        for (history, expected) in [
            (vec![], Route::Advance),
            (vec![revision(&a, Outcome::Succeeded)], Route::Observe),
            (vec![revision(&a, Outcome::RollingOut)], Route::Advance),
            (vec![revision(&a, Outcome::Failed)], Route::Advance),
            (vec![revision(&a, Outcome::Succeeded), revision(&b, Outcome::Succeeded)], Route::Advance),
        ] {
            assert_eq!(route(&history, &candidate), expected, "{history:?}");
        }
    }

    #[test]
    fn a_terminal_problem_is_not_retried() {
        let source =
            |reference: &str| serde_json::from_value(json!({"type": "image", "image": {"ref": reference}})).unwrap();
        let (tag, digest) = (source("a:v1"), source("a@sha256:0"));
        let terminal = Assessment::early(ReconcileOutcome::RenderFailed(Problem::terminal(Reason::InvalidContent, "")));
        let transient = Assessment::early(ReconcileOutcome::UnpackFailed(Problem::transient(Reason::UnpackFailed, "")));
        let none = Clock::default();
        let refused =
            Assessment::early(ReconcileOutcome::RenderFailed(Problem::terminal(Reason::ServiceAccountRequired, "")));
        assert_eq!(next(&refused, none, &tag), Next::Change);
        assert_eq!(next(&terminal, none, &digest), Next::Change);
        assert_eq!(next(&terminal, none, &tag), Next::Poll);
        assert_eq!(next(&transient, none, &digest), Next::BackOff);
        let held =
            Assessment::early(ReconcileOutcome::DeletionFailed(Problem::transient(Reason::CustomResourcesExist, "")));
        assert_eq!(next(&held, none, &digest), Next::After(HELD_CHECK));
        assert_eq!(next(&Assessment::early(ReconcileOutcome::Applied(vec![])), none, &digest), Next::Change);
    }

    #[test]
    fn what_a_user_grants_is_noticed_within_ten_seconds() {
        let account = Account { namespace: "n".into(), name: "a".into() };
        let source = BundleSource::default();
        let next = |problem: Problem, outcome: fn(Problem) -> ReconcileOutcome| {
            next(&Assessment::early(outcome(problem)), Clock::default(), &source)
        };
        let missing = |error: RolloutError| Problem::from(&error);
        for outcome in
            [ReconcileOutcome::ApplyFailed, ReconcileOutcome::PreviewFailed, ReconcileOutcome::DeletionFailed]
        {
            for error in [
                RolloutError::ServiceAccountNotFound(account.clone()),
                RolloutError::NamespacesNotFound(vec!["n".into()]),
                RolloutError::PermissionsMissing(Box::new(PermissionsMissing {
                    owner: "a".into(),
                    account: Some(account.clone()),
                    missing: chandler_permissions::Missing::default(),
                    not_yet: std::collections::BTreeSet::default(),
                })),
            ] {
                let Next::BackOffAtMost(longest) = next(missing(error), outcome) else { panic!("it is polled") };
                let backoff = chandler_runtime::Backoff::<std::hash::RandomState>::default();
                let pauses: Vec<Duration> = (0..100).map(|_| backoff.failed_at_most("a", longest)).collect();
                assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(10)), "{pauses:?}");
            }
        }
        // Whatever else fails is retried less and less often.
        let unknown = missing(RolloutError::UnknownKinds(Vec::new()));
        assert_eq!(next(unknown, ReconcileOutcome::ApplyFailed), Next::BackOff);
    }

    #[test]
    fn a_reconcile_that_waits_for_a_registry_begins_when_it_answers() {
        let registry = "registry.example.com".to_owned();
        let silent_registry = Some(registry.clone());
        let problem = Problem { silent_registry, ..Problem::transient(Reason::UnpackFailed, "away") };
        for outcome in [ReconcileOutcome::UnpackFailed, ReconcileOutcome::RenderFailed] {
            let found = Assessment::early(outcome(problem.clone()));
            assert_eq!(next(&found, Clock::default(), &BundleSource::default()), Next::Registry(registry.clone()));
        }
    }

    #[test]
    fn only_a_rollout_that_waits_and_found_nothing_else_is_announced_enough() {
        let waiting = RollingOut { stage: 1, stages: 1, all_applied: false, waiting: vec!["a: not ready".into()] };
        let waits = Assessment::early(ReconcileOutcome::RollingOut(waiting));
        assert!(says_enough(&waits));
        let warned = RolloutFindings { warnings: vec!["unsafe".into()], ..RolloutFindings::default() };
        assert!(!says_enough(&Assessment { rollout: warned, ..waits }));
        assert!(!says_enough(&Assessment::early(ReconcileOutcome::Applied(vec![]))));
    }

    #[test]
    fn a_rollout_is_checked_less_and_less_often_but_at_its_deadline() {
        let waiting = Assessment::early(ReconcileOutcome::Deleting(vec![]));
        let source = BundleSource::default();
        let pause = |elapsed, left: Option<u64>| {
            let clock = Clock { elapsed: Duration::from_secs(elapsed), left: left.map(Duration::from_secs) };
            next(&waiting, clock, &source)
        };
        let seconds = |seconds| Next::After(Duration::from_secs(seconds));
        assert_eq!(pause(0, None), seconds(1));
        assert_eq!(pause(40, None), seconds(10));
        assert_eq!(pause(4000, None), seconds(30));
        assert_eq!(pause(4000, Some(2)), seconds(3));
    }

    #[test]
    fn what_comes_next_follows_the_outcome() {
        let tag: BundleSource = serde_json::from_value(json!({"type": "image", "image": {"ref": "a:v1"}})).unwrap();
        let after = |found: &Assessment| next(found, Clock::default(), &tag);
        for (outcome, want) in [
            (ReconcileOutcome::Starting, Next::After(Duration::ZERO)),
            (ReconcileOutcome::Preparing, Next::Unchanged(PREPARATION_CHECK)),
            (ReconcileOutcome::ApprovalRequired, Next::Poll),
            (ReconcileOutcome::Suspended, Next::Change),
            (ReconcileOutcome::UploadPending(String::new()), Next::Change),
            (ReconcileOutcome::Applied(vec![]), Next::Poll),
            (ReconcileOutcome::DeletionFailed(Problem::transient(Reason::ObjectRefused, "")), Next::BackOff),
        ] {
            let found = Assessment::early(outcome);
            assert_eq!(after(&found), want, "{:?}", found.outcome);
        }
        let mut weak = Assessment::early(ReconcileOutcome::Applied(vec![]));
        weak.rollout.debounce = Some(Duration::from_secs(9));
        assert_eq!(after(&weak), Next::After(Duration::from_secs(9)));
    }

    #[test]
    fn what_is_due_does_not_wait_for_the_rollout() {
        let due = |found: &Assessment| due(found).collect::<Vec<_>>();
        let mut found = Assessment::early(ReconcileOutcome::ApprovalRequired);
        assert!(due(&found).is_empty());
        found.selection.pending = Some(PendingChange::default());
        assert!(due(&found).is_empty(), "a change that is not refused");
        found.selection.pending = Some(PendingChange { refusals: vec!["no".into()], ..PendingChange::default() });
        assert_eq!(due(&found), [REFUSAL_CHECK]);
        found.selection.pending = None;
        let crd = crate::upgrade_warnings::tests::crd();
        let seconds = Duration::from_secs;
        found.rollout = RolloutFindings { renewal: Some(seconds(7)), kept: vec![crd], ..RolloutFindings::default() };
        assert_eq!(due(&found), [seconds(7), CRDS_CHECK]);
        let findings =
            RolloutFindings { contention: Some(seconds(5)), debounce: Some(seconds(6)), ..RolloutFindings::default() };
        let running = Running { bundle: None, health: Ok(vec![]), not_repaired: None, findings };
        let found = Assessment::early(ReconcileOutcome::Suspended).with_running(Some(running));
        assert_eq!(due(&found), [seconds(5), seconds(6)]);
    }

    #[test]
    fn the_running_release_is_looked_after_beside_another_one_that_failed() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let history = [Revision {
            release_digest: a.to_string(),
            install_namespace: "n".into(),
            outcome: Outcome::Succeeded,
            ..Revision::default()
        }];
        let refused = ReconcileOutcome::ApplyFailed(Problem::terminal(Reason::ObjectRefused, "no"));
        for (outcome, digest, expected) in
            [(&refused, &b, true), (&refused, &a, false), (&ReconcileOutcome::Starting, &b, false)]
        {
            let candidate = Candidate::of_release(digest, "n");
            assert_eq!(running_needs_look(outcome, &history, &candidate), expected, "{outcome:?}");
        }
    }
}
