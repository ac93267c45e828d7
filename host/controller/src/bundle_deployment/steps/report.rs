//! Status: writes what a reconcile found, and schedules the next one.

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleDeploymentStatus};
use chandler_core::ObjectKey;
use chandler_decisions::{
    assessment::Assessment,
    intent::{self, Clock, Next},
    redaction::{self, Redacted},
    revisions, status,
};
use chandler_runtime::{Events, status_patch};
use chandler_source::Source;
use chandler_values::Redactor;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt as _, runtime::controller::Action};

use super::super::{
    ReconcileError,
    handles::{ScheduleHandles, StatusHandles},
    subject::Subject,
};
use crate::{
    contents::{Contents, Found},
    events,
    registries::SCOUT,
};

/// Writes what a reconcile found: first the record, then the status, which is a copy for users.
#[tracing::instrument(target = "chandler::trace", name = "status", skip_all)]
pub(in super::super) async fn report(
    handles: StatusHandles<'_>,
    subject: &mut Subject,
    found: &Assessment,
    redactor: &Redactor,
) -> Result<(), ReconcileError> {
    let mut status = status::derive(&subject.deployment, found, Timestamp::now());
    describe_content(handles.contents, &subject.name(), found, &mut status);
    let status = redaction::hide(redactor, status);
    if status.history == subject.record.state().history {
        subject.record.flush().await?;
    } else {
        subject.record.write_history(&status.history).await?;
    }
    write(handles, &subject.deployment, subject.stored.as_ref(), &status).await?;
    let repaired = found.findings().flat_map(|findings| &findings.repaired);
    let repaired: Vec<String> = repaired.map(|line| redactor.text(line).into_owned()).collect();
    events::publish_done(handles.events, &subject.deployment, "DriftRepaired", "Repair", &repaired).await;
    let recreated: Vec<&ObjectKey> = found.findings().flat_map(|findings| &findings.recreated_crds).collect();
    events::publish_recreated_crds(handles.events, &subject.deployment, &recreated).await;
    let status = status.into_inner();
    subject.stored = Some(status.clone());
    subject.deployment.status = Some(status);
    Ok(())
}

/// Adds where the content is, and asks the content service to show it.
fn describe_content(contents: &Contents, name: &str, found: &Assessment, status: &mut BundleDeploymentStatus) {
    let content = match (&status.content_digest, &found.selection.unpacked) {
        (None, _) => Found::Nothing,
        (Some(_), Some(unpacked)) => Found::Content(&unpacked.content_digest),
        // The status repeats what an earlier reconcile found.
        (Some(_), None) => Found::Same,
    };
    contents.note(name, content);
    status.content_url = status.content_digest.as_ref().and_then(|_| contents.url(name));
}

/// Writes a status over the one that is stored, and publishes its Events. They are also about an announcement without an Event.
pub(in super::super) async fn write(
    handles: StatusHandles<'_>,
    deployment: &BundleDeployment,
    stored: Option<&BundleDeploymentStatus>,
    status: &Redacted,
) -> Result<(), ReconcileError> {
    let written = write_only(handles, deployment, stored, status).await?;
    let deferred = handles.announcements.take_deferred(&deployment.name_any());
    if written || deferred.is_some() {
        let announced = stored.map(|stored| stored.conditions.as_slice()).unwrap_or_default();
        let before = deferred.map(|before| events::since(&before, announced, &status.conditions));
        let old = stored.cloned().unwrap_or_default();
        let conditions = before.unwrap_or_else(|| old.conditions.clone());
        publish(handles.events, deployment, Some(&BundleDeploymentStatus { conditions, ..old }), status).await;
    }
    Ok(())
}

/// Writes a status that announces a revision. Many rollouts are complete a moment later, so the Event about their beginning comes with the
/// next status; problems have theirs now.
pub(in super::super) async fn announce(
    handles: StatusHandles<'_>,
    deployment: &BundleDeployment,
    stored: Option<&BundleDeploymentStatus>,
    status: &Redacted,
) -> Result<(), ReconcileError> {
    let before = stored.map(|stored| stored.conditions.as_slice()).unwrap_or_default();
    if events::has_problem(before, &status.conditions) {
        return write(handles, deployment, stored, status).await;
    }
    if write_only(handles, deployment, stored, status).await? {
        handles.announcements.defer(&deployment.name_any(), before);
        publish_others(handles.events, deployment, &stored.cloned().unwrap_or_default(), status).await;
    }
    Ok(())
}

/// Writes a status over the one that is stored. Returns whether they differ.
async fn write_only(
    handles: StatusHandles<'_>,
    deployment: &BundleDeployment,
    stored: Option<&BundleDeploymentStatus>,
    status: &Redacted,
) -> Result<bool, ReconcileError> {
    let StatusHandles { client, own_writes, .. } = handles;
    let api: Api<BundleDeployment> = Api::all(client.clone());
    let status: &BundleDeploymentStatus = status;
    let written = status_patch::write(&api, &deployment.name_any(), stored, status).await;
    let Some(written) = written.map_err(ReconcileError::Status)? else { return Ok(false) };
    own_writes.status(written, status);
    Ok(true)
}

/// Publishes the Events about a status that was written over the stored one.
pub(in super::super) async fn publish(
    events: &Events,
    deployment: &BundleDeployment,
    stored: Option<&BundleDeploymentStatus>,
    status: &BundleDeploymentStatus,
) {
    let old = stored.cloned().unwrap_or_default();
    events::publish(events, deployment, Some(&old.conditions), &status.conditions).await;
    publish_others(events, deployment, &old, status).await;
}

/// Publishes the Events that are not about conditions.
async fn publish_others(
    events: &Events,
    deployment: &BundleDeployment,
    old: &BundleDeploymentStatus,
    status: &BundleDeploymentStatus,
) {
    events::publish_approval(events, deployment, &old.history, &status.history).await;
    events::publish_warnings(events, deployment, "RenderedWithWarnings", &old.warnings, &status.warnings).await;
    let of = |status: &BundleDeploymentStatus| status.release.clone().unwrap_or_default().warnings;
    events::publish_warnings(events, deployment, "UpgradedWithWarnings", &of(old), &of(status)).await;
}

/// How long it is until the next reconcile without a trigger; `None` if the controller waits for a change.
pub(in super::super) fn next(
    handles: &ScheduleHandles<'_>,
    deployment: &BundleDeployment,
    found: &Assessment,
) -> Option<Duration> {
    let name = deployment.name_any();
    let status = deployment.status.clone().unwrap_or_default();
    let clock = status::clock(deployment, &status, Timestamp::now());
    // Only the next reconcile knows that the revision failed.
    if revisions::has_just_failed(deployment, &found.selection) {
        return Some(Duration::ZERO);
    }
    let next = intent::next(found, clock, &deployment.spec.source);
    // While it is being fetched, it is not known whether the registry answers.
    if !matches!(next, Next::Registry(_) | Next::Unchanged(_)) {
        handles.registries.with(|waits, _| waits.forget(&name));
    }
    match next {
        Next::Change => {
            handles.backoff.succeeded(&name);
            None
        }
        Next::After(pause) => {
            handles.backoff.succeeded(&name);
            Some(pause)
        }
        Next::Poll => {
            handles.backoff.succeeded(&name);
            // A tag that was resolved is polled without a reconcile.
            let polled = Source::parse(&deployment.spec.source)
                .is_ok_and(|source| handles.resolutions.is_polled(&name, &source));
            (!polled).then_some(handles.poll_interval)
        }
        Next::Unchanged(pause) => Some(pause),
        Next::BackOff => Some(before_deadline(clock, handles.backoff.failed(&name).max(requested(found)))),
        Next::Registry(registry) => {
            let is_scout = handles.registries.with(|waits, now| waits.failed(&registry, &name, now));
            let pause =
                if is_scout { handles.backoff.failed_at_most(&name, SCOUT) } else { handles.backoff.failed(&name) };
            Some(before_deadline(clock, pause.max(requested(found))))
        }
        Next::BackOffAtMost(longest) => Some(before_deadline(clock, handles.backoff.failed_at_most(&name, longest))),
    }
}

/// The shortest pause that a registry asked for.
fn requested(found: &Assessment) -> Duration {
    found.problem().map(|problem| problem.retry_after).unwrap_or_default()
}

/// A pause that ends a second after the deadline of the rollout, if that is earlier.
fn before_deadline(clock: Clock, pause: Duration) -> Duration {
    clock.left.map_or(pause, |left| pause.min(left + Duration::from_secs(1)))
}

/// The next reconcile: after this pause, or earlier if something of the release that runs is due.
pub(in super::super) fn action(pause: Option<Duration>, found: &Assessment) -> Action {
    pause.into_iter().chain(intent::due(found)).min().map_or_else(Action::await_change, Action::requeue)
}
