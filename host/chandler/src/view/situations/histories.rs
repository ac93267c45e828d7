//! Random histories of a BundleDeployment: after each reconcile, the views agree with each other, and with what the reconcile found.

use chandler_api::{BundleDeployment, ConditionType, Outcome, find_condition};
use chandler_decisions::{
    assessment::{Assessment, ReconcileOutcome},
    revisions::{self, Cause},
};
use proptest::{prelude::*, sample::select, test_runner::TestCaseError};
use serde_json::json;

use super::{
    super::overview::{Health, Next, Overview},
    agreement::agree,
    harbour::{Harbour, candidate, found, needs_approval, not_fetched, not_rendered, refused, running, waiting},
    problems as because,
};

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The spec names another version.
    Version(&'static str),
    Suspend(bool),
    /// A rollback of the user; its end.
    Pin(Option<i64>),
    Manual(bool),
    Deadline(i64),
    Delete,
    Wait(i64),
    /// A reconcile, which finds this if the spec permits it.
    Reconcile(Finding),
}

#[derive(Clone, Copy, Debug)]
enum Finding {
    Preparing,
    Unreachable,
    NotFound,
    Invalid,
    PermissionsMissing,
    Collision,
    UnsafeCrds,
    Starting,
    RollingOut,
    Healthy,
    Unhealthy,
}

const UNHEALTHY: &str = "Deployment.apps harbour-system/pilot: 0 of 1 replica is available";

fn step() -> impl Strategy<Value = Step> {
    let findings = select(vec![
        Finding::Preparing,
        Finding::Unreachable,
        Finding::NotFound,
        Finding::Invalid,
        Finding::PermissionsMissing,
        Finding::Collision,
        Finding::UnsafeCrds,
        Finding::Starting,
        Finding::RollingOut,
        Finding::Healthy,
        Finding::Unhealthy,
    ]);
    prop_oneof![
        12 => findings.prop_map(Step::Reconcile),
        2 => select(vec!["0.1.0", "0.2.0", "0.3.0"]).prop_map(Step::Version),
        1 => any::<bool>().prop_map(Step::Suspend),
        1 => prop::option::of(1..4_i64).prop_map(Step::Pin),
        1 => any::<bool>().prop_map(Step::Manual),
        1 => (1..30_i64).prop_map(Step::Deadline),
        1 => Just(Step::Delete),
        2 => (1..40_i64).prop_map(Step::Wait),
    ]
}

fn taken(harbour: Harbour, step: Step) -> Harbour {
    let rollout = |field: &str, value: serde_json::Value| {
        let mut rollout = serde_json::to_value(&harbour.deployment.spec.rollout).unwrap();
        if rollout.is_null() {
            rollout = json!({});
        }
        rollout[field] = value;
        json!({ "rollout": rollout })
    };
    match step {
        Step::Version(version) => harbour.upgraded(version),
        Step::Suspend(suspend) => harbour.edited(&json!({ "suspend": suspend })),
        Step::Pin(number) => {
            let spec = rollout("toRevision", json!(number));
            harbour.edited(&spec)
        }
        Step::Manual(manual) => harbour.edited(&json!({"approval": manual.then_some("Manual")})),
        Step::Deadline(seconds) => {
            let spec = rollout("progressDeadlineSeconds", json!(seconds));
            harbour.edited(&spec)
        }
        Step::Delete => harbour.deleted(),
        Step::Wait(seconds) => harbour.after(seconds),
        Step::Reconcile(finding) => {
            let found = finds(&harbour.deployment, finding);
            harbour.reconciled(&found)
        }
    }
}

/// What a reconcile of this spec finds.
fn finds(deployment: &BundleDeployment, finding: Finding) -> Assessment {
    let history = deployment.status.as_ref().map(|status| status.history.clone()).unwrap_or_default();
    let version_of = |number: Option<i64>| {
        let revision = history.iter().find(|revision| Some(revision.number) == number)?;
        revision.version.clone()
    };
    let is_sick = matches!(finding, Finding::Unhealthy);
    let unhealthy: &[&str] = if is_sick { &[UNHEALTHY] } else { &[] };
    let current = history.last();
    let runs = current.and_then(|current| Some(running(current.version.as_deref()?, unhealthy)));
    if deployment.metadata.deletion_timestamp.is_some() {
        let outcome = match finding {
            Finding::PermissionsMissing => ReconcileOutcome::DeletionFailed(because::permissions_missing()),
            Finding::Collision => ReconcileOutcome::DeletionFailed(because::custom_resources_exist()),
            _ => ReconcileOutcome::Deleting(vec!["Deployment.apps harbour-system/pilot".into()]),
        };
        return Assessment::early(outcome);
    }
    if deployment.spec.suspend {
        return Assessment::early(ReconcileOutcome::Suspended).with_running(runs);
    }
    let pinned = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.to_revision);
    let spec = deployment.spec.source.image.as_ref().map(|image| image.reference.clone()).unwrap_or_default();
    let spec = spec.rsplit_once(":v").map(|(_, version)| version.to_owned()).unwrap_or_default();
    let (version, cause) = match (pinned, version_of(pinned)) {
        (Some(number), Some(version)) => (version, Cause::Pinned(number)),
        (Some(_), None) => {
            let problem = chandler_decisions::problem::Problem::terminal(
                chandler_api::Reason::RevisionUnavailable,
                "spec.rollout.toRevision: the history has no such revision",
            );
            return Assessment::early(ReconcileOutcome::RenderFailed(problem)).with_running(runs);
        }
        (None, _) => (spec, Cause::Spec),
    };
    let candidate = candidate(&version, cause.clone());
    let begins = revisions::begins(&history, &candidate);
    let complete = current.filter(|current| current.outcome == Outcome::Succeeded);
    if cause == Cause::Spec && chandler_decisions::approval::is_needed(deployment, &candidate, None) {
        let runs = complete.and_then(|current| current.version.as_deref());
        return needs_approval(&version, chandler_api::PendingChange::default(), runs);
    }
    let refuse = |problem| {
        if begins {
            refused(&version, problem, runs.clone())
        } else {
            found(&version, cause.clone(), ReconcileOutcome::ApplyFailed(problem))
        }
    };
    match finding {
        Finding::Preparing => Assessment::early(ReconcileOutcome::Preparing).with_running(runs),
        Finding::Unreachable => not_fetched(because::registry_unreachable(&version), runs),
        Finding::NotFound => not_fetched(because::image_not_found(), runs),
        Finding::Invalid => not_rendered(&version, because::invalid_bundle(), runs),
        Finding::PermissionsMissing => refuse(because::permissions_missing()),
        Finding::Collision => refuse(because::collision()),
        Finding::UnsafeCrds => refuse(because::unsafe_crd_upgrade()),
        Finding::Starting if begins => found(&version, cause, ReconcileOutcome::Starting),
        // A complete release is observed and not rolled out again.
        Finding::RollingOut | Finding::Unhealthy if begins || complete.is_none() => {
            found(&version, cause, waiting(2, &[UNHEALTHY]))
        }
        Finding::Unhealthy => found(&version, cause, ReconcileOutcome::Applied(vec![UNHEALTHY.into()])),
        Finding::Starting | Finding::RollingOut | Finding::Healthy => {
            found(&version, cause, ReconcileOutcome::Applied(Vec::new()))
        }
    }
}

/// What the status of a reconcile says is what the reconcile found.
fn is_true(deployment: &BundleDeployment, found: &Assessment) -> Result<(), TestCaseError> {
    let overview = Overview::of(deployment);
    let status = deployment.status.clone().unwrap_or_default();
    let complete = status.history.last().filter(|current| current.outcome == Outcome::Succeeded);
    let observed = match (&found.outcome, &found.running) {
        (ReconcileOutcome::Applied(unhealthy), _) => Some(unhealthy.clone()),
        (_, Some(running)) => running.health.clone().ok(),
        _ => None,
    };
    if let (Some(unhealthy), Some(_)) = (observed, complete) {
        let expected = if unhealthy.is_empty() { Health::Healthy } else { Health::Unhealthy(unhealthy.join("; ")) };
        prop_assert_eq!(overview.health(), Some(&expected));
    }
    let stalled = find_condition(&status.conditions, ConditionType::Stalled).is_some_and(|it| it.status == "True");
    let is_blocked = matches!(overview.next, Next::Blocked { .. } | Next::Deleting { needs_action: true, .. });
    prop_assert_eq!(is_blocked, stalled, "{}", overview.text());
    Ok(())
}

proptest! {
    #[test]
    fn no_view_contradicts_another_at_any_point_of_a_history(steps in prop::collection::vec(step(), 1..25)) {
        let mut harbour = Harbour::new(&json!({}));
        for step in steps {
            let found = match step {
                Step::Reconcile(finding) => Some(finds(&harbour.deployment, finding)),
                _ => None,
            };
            harbour = taken(harbour, step);
            agree(&harbour.deployment)?;
            if let Some(found) = found {
                is_true(&harbour.deployment, &found)?;
            }
        }
    }
}
