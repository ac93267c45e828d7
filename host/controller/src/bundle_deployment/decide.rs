//! What to do about a BundleDeployment. Pure: no client, no clock.

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleSource, Outcome, Reason, Revision, names::TEARDOWN_FINALIZER};
use chandler_source::Source;
use kube::ResourceExt as _;

use super::{
    assessment::{Assessment, Reached},
    revisions::{Candidate, begins},
};

/// How soon a rollout that has just begun is looked at although nothing was seen.
const SOON: Duration = Duration::from_secs(1);
/// How long a rollout may go without anything being seen before it is looked at anyway.
const ROLLOUT_CHECK: Duration = Duration::from_secs(30);

/// How soon it is looked what became of a release that is being prepared, although its end has a look follow at once.
pub(crate) const PREPARATION_CHECK: Duration = Duration::from_secs(30);

/// How often it is looked whether the custom resources are gone that keep CRDs: nothing watches them.
pub(crate) const CRDS_CHECK: Duration = Duration::from_mins(5);
/// The same while a deletion waits for it.
const HELD_CHECK: Duration = Duration::from_secs(15);
/// How often it is looked whether what a pending change would be refused for is gone: not all of it shows in a watch.
pub(crate) const REFUSAL_CHECK: Duration = Duration::from_mins(1);

/// What a reconcile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Nothing: it is being deleted and we have nothing to do with it any more.
    Leave,
    /// Only say that it is suspended.
    Suspend,
    /// Delete what was installed.
    TearDown,
    /// Take our finalizers off and leave everything where it is: `kubectl delete --cascade=orphan`.
    LetGo,
    /// Fetch, render and roll out.
    Deploy,
}

/// Whether our finalizer is on it.
pub(crate) fn is_held(deployment: &BundleDeployment) -> bool {
    deployment.finalizers().iter().any(|finalizer| finalizer == TEARDOWN_FINALIZER)
}

/// The finalizer of a deletion that leaves dependents alone (`metav1.FinalizerOrphanDependents`).
const ORPHAN: &str = "orphan";

/// What a reconcile does about this object. Deletion comes first: what is being deleted is never installed again
/// (the predecessor did, and left a cached archive behind).
pub(crate) fn decide(deployment: &BundleDeployment) -> Intent {
    let held = is_held(deployment);
    let orphans = deployment.finalizers().iter().any(|finalizer| finalizer == ORPHAN);
    match (deployment.metadata.deletion_timestamp.is_some(), held) {
        (true, true) if orphans => Intent::LetGo,
        (true, true) => Intent::TearDown,
        // Whatever the predecessor installed is not ours to delete, but its finalizers are ours to take off.
        (true, false) if !deployment.finalizers().is_empty() => Intent::TearDown,
        (true, false) => Intent::Leave,
        (false, _) if deployment.spec.suspend => Intent::Suspend,
        (false, _) => Intent::Deploy,
    }
}

/// How a release is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// It was complete at the last pass: look whether it still is.
    Observe,
    /// Apply it.
    Advance,
}

/// How a candidate is met, by the revisions of the record.
pub(crate) fn route(history: &[Revision], candidate: &Candidate) -> Route {
    let succeeded = history.last().is_some_and(|current| current.outcome == Outcome::Succeeded);
    if succeeded && !begins(history, candidate) { Route::Observe } else { Route::Advance }
}

/// When a BundleDeployment is looked at again without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Only when something changes.
    Change,
    /// After this time.
    After(Duration),
    /// When the tag of its image is to be resolved again.
    Poll,
    /// After this time, and whatever failed before counts on.
    Unchanged(Duration),
    /// Later with each failure.
    BackOff,
}

/// How long something has been waited for, and how long it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Since the rollout began; zero where nothing is known.
    pub(crate) elapsed: Duration,
    /// Until its deadline is over; none where there is none or it is over.
    pub(crate) left: Option<Duration>,
}

/// When to look again after a pass.
pub(crate) fn next(found: &Assessment, clock: Clock, source: &BundleSource) -> Next {
    match &found.reached {
        Reached::RollingOut(_) | Reached::Deleting(_) => {
            // Not everything that is waited for shows in a watch: a kind that begins to be served does not. Often at first,
            // ever less often then.
            let pause = (clock.elapsed / 4).clamp(SOON, ROLLOUT_CHECK);
            // A second more, since the status counts whole seconds.
            let deadline = clock.left.map(|left| left + Duration::from_secs(1));
            Next::After(deadline.map_or(pause, |left| left.min(pause)))
        }
        Reached::Beginning | Reached::Superseded => Next::After(Duration::ZERO),
        Reached::Preparing => Next::Unchanged(PREPARATION_CHECK),
        Reached::NeedsApproval => poll(source),
        Reached::Suspended => Next::Change,
        Reached::Applied(_) => found.unsteady.map_or_else(|| poll(source), Next::After),
        Reached::NotDeleted(problem) if problem.reason == Reason::CustomResourcesExist => Next::After(HELD_CHECK),
        _ => match found.problem() {
            // Nothing is asked for on behalf of nobody.
            Some(problem) if problem.reason == Reason::ServiceAccountRequired => Next::Change,
            // A tag may come to stand for better content.
            Some(problem) if problem.terminal => poll(source),
            _ => Next::BackOff,
        },
    }
}

fn poll(source: &BundleSource) -> Next {
    let moves = Source::parse(source).is_ok_and(|source| source.can_move());
    if moves { Next::Poll } else { Next::Change }
}

#[cfg(test)]
mod tests {
    use chandler_core::Digest;
    use serde_json::json;

    use super::*;
    use crate::problem::Problem;

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
            (json!({"deletionTimestamp": deleted, "finalizers": [TEARDOWN_FINALIZER, "orphan"]}), false, Intent::LetGo),
            (json!({"deletionTimestamp": deleted, "finalizers": ["other"]}), false, Intent::TearDown),
            (json!({"deletionTimestamp": deleted}), false, Intent::Leave),
        ] {
            let deployment = deployment(metadata.clone(), &json!({"suspend": suspend}), &json!(null));
            assert_eq!(decide(&deployment), intent, "{metadata} {suspend}");
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
    fn what_only_a_change_mends_is_not_tried_again() {
        let source =
            |reference: &str| serde_json::from_value(json!({"type": "image", "image": {"ref": reference}})).unwrap();
        let (tag, digest) = (source("a:v1"), source("a@sha256:0"));
        let lasting = Assessment::early(Reached::NotRendered(Problem::lasting(Reason::InvalidContent, "")));
        let passing = Assessment::early(Reached::NotUnpacked(Problem::passing(Reason::UnpackFailed, "")));
        let none = Clock::default();
        let refused = Assessment::early(Reached::NotRendered(Problem::lasting(Reason::ServiceAccountRequired, "")));
        assert_eq!(next(&refused, none, &tag), Next::Change);
        assert_eq!(next(&lasting, none, &digest), Next::Change);
        assert_eq!(next(&lasting, none, &tag), Next::Poll);
        assert_eq!(next(&passing, none, &digest), Next::BackOff);
        let held = Assessment::early(Reached::NotDeleted(Problem::passing(Reason::CustomResourcesExist, "")));
        assert_eq!(next(&held, none, &digest), Next::After(HELD_CHECK));
        assert_eq!(next(&Assessment::early(Reached::Applied(vec![])), none, &digest), Next::Change);
    }

    #[test]
    fn a_rollout_is_looked_at_ever_less_often_but_at_its_deadline() {
        let waiting = Assessment::early(Reached::Deleting(vec![]));
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
}
