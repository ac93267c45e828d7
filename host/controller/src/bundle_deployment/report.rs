//! What a pass writes about itself, and when the next one is.

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleDeploymentStatus};
use chandler_runtime::status_patch;
use chandler_source::Source;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt as _, runtime::controller::Action};

use super::{
    ReconcileError, Subject,
    assessment::Assessment,
    decide::{self, Next},
    revisions::{self, Cause},
    status,
};
use crate::{context::Context, events};

/// Writes what a pass found: first the record, then the status, which is a copy for people.
pub(super) async fn report(subject: &mut Subject, found: &Assessment, context: &Context) -> Result<(), ReconcileError> {
    let status = status::derive(&subject.deployment, found, Timestamp::now());
    if status.history != subject.book.state().history {
        subject.book.write_history(&status.history).await?;
    }
    write(&subject.deployment, subject.stored.as_ref(), &status, context).await?;
    events::publish_done(&context.events, &subject.deployment, "DriftRepaired", "Repair", &found.repaired).await;
    subject.stored = Some(status.clone());
    subject.deployment.status = Some(status);
    Ok(())
}

/// Writes a status over the one that is stored.
pub(super) async fn write(
    deployment: &BundleDeployment,
    stored: Option<&BundleDeploymentStatus>,
    status: &BundleDeploymentStatus,
    context: &Context,
) -> Result<(), ReconcileError> {
    let api: Api<BundleDeployment> = Api::all(context.client.clone());
    let written = status_patch::write(&api, &deployment.name_any(), stored, status).await;
    if written.map_err(|source| ReconcileError::Write { what: "status", source })? {
        let old = stored.cloned().unwrap_or_default();
        let all = &context.events;
        events::publish(all, deployment, &old.conditions, &status.conditions).await;
        events::publish_approval(all, deployment, &old.history, &status.history).await;
        events::publish_warnings(all, deployment, "RenderedWithWarnings", &old.warnings, &status.warnings).await;
        let of = |status: &BundleDeploymentStatus| status.release.clone().unwrap_or_default().warnings;
        events::publish_warnings(all, deployment, "UpgradedWithWarnings", &of(&old), &of(status)).await;
    }
    Ok(())
}

/// How long it is until the candidate, or what runs, is looked at again without being asked; none where nothing is to be waited for.
pub(super) fn next(deployment: &BundleDeployment, found: &Assessment, context: &Context) -> Option<Duration> {
    let name = deployment.name_any();
    let status = deployment.status.clone().unwrap_or_default();
    let clock = status::clock(deployment, &status, Timestamp::now());
    match decide::next(found, clock, &deployment.spec.source) {
        // Only the next pass knows that the revision failed.
        _ if has_just_failed(deployment, found) => Some(Duration::ZERO),
        Next::Change => {
            context.backoff.succeeded(&name);
            None
        }
        Next::After(pause) => {
            context.backoff.succeeded(&name);
            Some(pause)
        }
        Next::Poll => {
            context.backoff.succeeded(&name);
            // What was resolved is asked for again without a look at anything else.
            let polled = Source::parse(&deployment.spec.source)
                .is_ok_and(|source| context.memory.resolutions.is_polled(&name, &source));
            (!polled).then_some(context.options.image_poll_interval)
        }
        Next::Unchanged(pause) => Some(pause),
        Next::BackOff => {
            let asked = found.problem().map(|problem| problem.retry_after).unwrap_or_default();
            let pause = context.backoff.failed(&name).max(asked);
            Some(clock.left.map_or(pause, |left| pause.min(left + Duration::from_secs(1))))
        }
    }
}

/// The next look: after this pause, or earlier where something of what runs is to be looked at.
pub(super) fn action(pause: Option<Duration>, found: &Assessment) -> Action {
    let crds = (!found.kept.is_empty()).then_some(decide::CRDS_CHECK);
    let unsteady = found.running.as_ref().and_then(|running| running.unsteady);
    let refused = found.pending.as_ref().is_some_and(|pending| !pending.refusals.is_empty());
    let refused = refused.then_some(decide::REFUSAL_CHECK);
    let again = [found.renewal, found.contest, crds, unsteady, refused].into_iter().flatten();
    pause.into_iter().chain(again).min().map_or_else(Action::await_change, Action::requeue)
}

/// Whether this pass saw what the spec describes fail, so that another release is to run.
fn has_just_failed(deployment: &BundleDeployment, found: &Assessment) -> bool {
    found.no_way_back.is_none()
        && found.candidate.as_ref().is_some_and(|candidate| {
            candidate.cause == Cause::Spec
                && revisions::way_back(deployment, candidate.release.digest.as_str(), &candidate.install_namespace)
                    .is_some()
        })
}
