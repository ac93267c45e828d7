//! The reconciler of BundleDeployments.
//!
//! There are two tracks: the release that runs, which is repaired, watched and reported, and the candidate, which is fetched, rendered,
//! checked and approved. Only a candidate that passed every check replaces the release that runs; a problem with the candidate never keeps
//! the controller from looking after the release that runs.
//!
//! One reconcile is a line of steps: `source -> tree -> class -> render -> choose -> approve -> certificates -> apply -> observe ->
//! status`. Each [step](steps) has its own output and error type, and takes the output of the step before it, so that an illegal order
//! does not compile: a rollout takes an `Approved`, which only the approval makes, out of a `Chosen`, which only the choice makes.
//! The crate [`chandler_decisions`] holds the decisions: it has no client. [`errors`] turns errors into the problem that the status
//! reports, and an [`Assessment`] is built from the outputs at the end. Revisions are read from the record that only the controller writes, never from
//! the status.

mod approvals;
mod asked_polls;
mod awaited;
mod detections;
mod errors;
mod failed_candidates;
mod failed_updates;
mod handles;
mod installer;
mod polls;
mod preflight;
mod preparer;
mod reconciler;
mod steps;
mod subject;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, BundleDeploymentStatus, Reason};
use chandler_core::Release;
use chandler_decisions::{
    account::{account, requester},
    assessment::{Assessment, ReconcileOutcome, RolloutFindings, Running, Selection},
    drift,
    intent::{self, Intent, Route},
    privileges, redaction, revisions,
    spec_error::SpecError,
    status,
};
use chandler_monitoring::Step;
use chandler_records::{PendingRevision, RecordError};
use chandler_runtime::Slot;
use chandler_source::api_message;
use futures::FutureExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::{ResourceExt as _, runtime::controller::Action};

pub(crate) use self::{
    approvals::Approvals,
    asked_polls::{AskedPolls, run as poll_asked},
    detections::Detections,
    failed_candidates::FailedCandidates,
    failed_updates::FailedUpdates,
    installer::Installer,
    polls::run as poll,
    preflight::{NotPlanned, Planned, changes},
    preparer::Preparer,
    reconciler::BundleDeployments,
    steps::{prepare::Preparations, render::RELEASES},
};
use self::{
    errors::Halted,
    steps::{
        approve::{self, Approved},
        choose, finalize, report, restored,
        rollout::{self, RolledOut},
        running, target,
    },
    subject::Subject,
};
use crate::{deployments::Guarded, targets::Key};

/// A reconcile that could not be finished. [`failure`] decides which of these the status reports.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The status could not be written.
    #[error("failed to write the status: {}", api_message(.0))]
    Status(#[source] kube::Error),
    /// The finalizers could not be written.
    #[error("failed to write the finalizers: {}", api_message(.0))]
    Finalizers(#[source] kube::Error),
    /// The record could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The API server did not answer, or another client was faster. The status reports it only after [`TRANSIENT_FAILURES`] in a
    /// row, so that one failed request does not look like an outage.
    #[error("{0}")]
    Transient(String),
}

impl ReconcileError {
    /// Whether an object was written that had changed since it was read, or was deleted.
    fn is_conflict(&self) -> bool {
        let (Self::Status(kube::Error::Api(status)) | Self::Finalizers(kube::Error::Api(status))) = self else {
            return false;
        };
        status.is_conflict() || status.is_not_found()
    }
}

/// After how many failures in a row the status reports a transient problem.
const TRANSIENT_FAILURES: u32 = 3;

/// A newer spec ended the reconcile.
struct Superseded;

/// One reconcile, as soon as it gets a slot.
async fn reconcile(name: &str, installer: &Arc<Installer>) -> Result<Action, ReconcileError> {
    let requester = installer.deployments.guarded(name).and_then(|guarded| {
        let deployment = guarded.0.as_ref().ok()?;
        Some(requester(deployment, &installer.cluster.options.accounts))
    });
    // It is gone, or the runtime reports that it cannot be decoded.
    let Some(requester) = requester else { return Ok(Action::await_change()) };
    // A cluster that answers slowly delays neither this cluster nor another one: it has one reconcile at a time, and its own slots.
    let cluster_of = |guarded: &Guarded| guarded.0.as_ref().ok().and_then(Key::of);
    let newest = || installer.deployments.guarded(name).map(|cached| installer.own_writes.newest(cached));
    let other = newest().and_then(|newest| cluster_of(&newest));
    let other = other.as_ref();
    let _turn = match other {
        Some(key) => Some(installer.targets.turn(key).await),
        None => None,
    };
    let slots = if other.is_some() { &installer.targets.slots } else { &installer.slots };
    let work = |slot: Arc<Slot>| async move {
        // The object may have changed, or gone, while the reconcile waited for the slot.
        match newest() {
            // The turn is for another cluster than the work would be.
            Some(newest) if cluster_of(&newest).as_ref() != other => Ok(Action::requeue(Duration::ZERO)),
            Some(newest) => reconcile_in_slot(&newest, &slot, installer).await,
            None => Ok(Action::await_change()),
        }
    };
    let bytes = installer.memory.sizes.of(name);
    // Rollouts in progress come before most others.
    let requester = if installer.memory.announcements.has(name) { requester.continuing() } else { requester };
    slots.within(requester, bytes, work).await.unwrap_or_else(|| Ok(Action::await_change()))
}

async fn reconcile_in_slot(
    guarded: &Arc<Guarded>,
    slot: &Slot,
    installer: &Arc<Installer>,
) -> Result<Action, ReconcileError> {
    // The runtime reports an object that cannot be decoded when the watch delivers it.
    let Ok(deployment) = &guarded.0 else { return Ok(Action::await_change()) };
    Box::pin(reconcile_deployment(deployment, slot, installer)).await
}

async fn reconcile_deployment(
    deployment: &BundleDeployment,
    slot: &Slot,
    installer: &Arc<Installer>,
) -> Result<Action, ReconcileError> {
    let name = deployment.name_any();
    let intent = intent::decide(deployment, &installer.cluster.options.foreign_class_prefixes);
    if intent == Intent::Ignore {
        return Ok(Action::await_change());
    }
    if intent != Intent::Deploy {
        installer.preparations.end(&name);
    }
    let began = installer.memory.failed.changes();
    let orphans = installer.generations.is_orphaning(deployment);
    if intent == Intent::Deploy {
        let pause = installer.memory.conflicts.cooldown(&name, revisions::requested(deployment));
        if !pause.is_zero() {
            return Ok(Action::requeue(pause));
        }
    }
    // A BundleDeployment that may not be installed needs neither a finalizer nor a record. One that may gets both with its first write.
    let installs = intent == Intent::Deploy && account(deployment, &installer.cluster.options.accounts).is_ok();
    let finalize = installer.finalize();
    let is_kept = matches!(intent, Intent::Deploy | Intent::Suspend);
    let awaits = is_kept && restored::awaits_record(&installer.restored(&installer.rollout), deployment).await;
    let record = finalize::open_record(&finalize, deployment, installs && !awaits).await?;
    let mut subject = Subject::new(deployment.clone(), record, began, installer.preparer.grants.asker(deployment))
        .with_approved_upgrades(installer.approvals.upgrades(deployment));
    let needs_target = match intent {
        Intent::Ignore | Intent::RemoveFinalizer => false,
        // Without an object nothing has to be deleted.
        Intent::TearDown => !orphans && !subject.record.state().holdings.is_empty(),
        Intent::Suspend | Intent::Deploy => true,
    };
    if needs_target {
        match target::find(installer, &subject, intent).await {
            Ok(target) => subject.target = target,
            Err(problem) => {
                let found = target::unavailable(&subject, intent, problem);
                return finish(&mut subject, &found, installer).await;
            }
        }
    }
    if is_kept {
        let found = restored::wait(&installer.restored(subject.rollout(installer)), &subject, awaits).await;
        if let Some(found) = found {
            return finish(&mut subject, &found, installer).await;
        }
    }
    let found = match intent {
        Intent::Ignore => return Ok(Action::await_change()),
        Intent::RemoveFinalizer => {
            return finalize::remove_finalizer(&finalize, &subject, finalize::Objects::Orphaned).await;
        }
        Intent::TearDown if orphans => {
            return finalize::remove_finalizer(&finalize, &subject, finalize::Objects::Orphaned).await;
        }
        Intent::TearDown => {
            match finalize::tear_down(&installer.finalize_with(subject.rollout(installer)), &subject).await {
                Some(found) => found,
                None => return finalize::remove_finalizer(&finalize, &subject, finalize::Objects::Deleted).await,
            }
        }
        Intent::Suspend => {
            let running = look_after(&subject, slot, installer).await;
            Assessment::early(ReconcileOutcome::Suspended).with_running(running)
        }
        Intent::Deploy => match Box::pin(deploy(&mut subject, slot, installer)).await {
            Ok(found) => found,
            Err(Superseded) => return Ok(Action::requeue(Duration::ZERO)),
        },
    };
    if let Err(older) = subject.record.check() {
        // Whatever was decided from this record is wrong. The next reconcile reads what an administrator made of it.
        installer.records.forget(&name);
        return Err(older.into());
    }
    finish(&mut subject, &found, installer).await
}

/// Reports what the reconcile found, and schedules the next one.
async fn finish(
    subject: &mut Subject,
    found: &Assessment,
    installer: &Arc<Installer>,
) -> Result<Action, ReconcileError> {
    let name = subject.name();
    awaited::note(subject, found, installer);
    if let (ReconcileOutcome::ApplyFailed(problem), Some(candidate)) = (&found.outcome, &found.selection.candidate)
        && (problem.terminal || problem.needs_grant || !problem.collisions.is_empty())
        && privileges::is_update_of_provisioner(subject.history(), candidate)
    {
        installer.memory.failed_updates.refused(&name, &candidate.provisioner.digest);
    }
    if let Some(problem) = found.problem() {
        let is_reported = !problem.is_api_unavailable() || installer.backoff.failures(&name) >= TRANSIENT_FAILURES;
        // The reconcile that sees the deletion reports on it.
        let is_deletion = matches!(found.outcome, ReconcileOutcome::DeletionFailed(_));
        if !is_reported || (problem.reason == Reason::Deleting && !is_deletion) {
            let redactor = installer.memory.values.redactor(&subject.deployment, subject.history());
            let message = redactor.text(&problem.message).into_owned();
            return Err(ReconcileError::Transient(message));
        }
    }
    if let Some(left) = intent::says_enough(found).then(|| installer.memory.announcements.suffices(&name)).flatten() {
        return Ok(report::action(Some(left), found));
    }
    let redactor = installer.memory.values.redactor(&subject.deployment, subject.history());
    let began = Instant::now();
    report::report(installer.report(), subject, found, &redactor).await?;
    installer.cluster.metrics.stepped(Step::Report, began.elapsed());
    if matches!(found.outcome, ReconcileOutcome::RollingOut(_)) {
        installer.memory.announcements.note(&name, began.elapsed());
    } else {
        installer.memory.announcements.forget(&name);
    }
    if let Some(left) = found.retry_in {
        return Ok(report::action(Some(left), found));
    }
    let mut pause = report::next(&installer.schedule(), &subject.deployment, found);
    if subject.is_elsewhere() {
        // Nothing there is watched.
        let interval = installer.cluster.options.targets.poll_interval;
        pause = Some(pause.map_or(interval, |pause| pause.min(interval)));
    }
    installer.memory.failed.note(&name, subject.began, revisions::requested(&subject.deployment), pause, found);
    Ok(report::action(pause, found))
}

/// Both tracks: the candidate, and the release that runs where the candidate did not come to the cluster.
async fn deploy(subject: &mut Subject, slot: &Slot, installer: &Arc<Installer>) -> Result<Assessment, Superseded> {
    subject.record.close_revision();
    let requested = revisions::requested(&subject.deployment);
    if let Some(failed) = installer.memory.failed.get(&subject.name(), &requested) {
        // Nothing that could help has changed, and the candidate is not due for another try.
        let running = look_after_unless_superseded(subject, slot, installer).await?;
        return Ok(failed.with_running(running));
    }
    match select(subject, slot, installer).await {
        Ok(approved) => {
            let first = if revisions::running_comes_first(&subject.deployment, approved.candidate()) {
                look_after_unless_superseded(subject, slot, installer).await?
            } else {
                None
            };
            bring(subject, &approved, first, slot, installer).await
        }
        Err(halted) => {
            let Halted { selection, outcome } = *halted;
            let running = look_after_unless_superseded(subject, slot, installer).await?;
            Ok(Assessment::of_selection(selection, outcome).with_running(running))
        }
    }
}

/// The release that may run: prepared, chosen and approved.
async fn select(subject: &Subject, slot: &Slot, installer: &Arc<Installer>) -> Result<Approved, Box<Halted>> {
    // Nothing is fetched for a spec that is refused for these reasons, and no revision has failed for it.
    account(&subject.deployment, &installer.cluster.options.accounts)?;
    drift::ignored_fields(&subject.deployment.spec).map_err(SpecError::from)?;
    let prepare = installer.prepare(slot);
    let metrics = &installer.cluster.metrics;
    let began = Instant::now();
    let chosen = choose::choose(&prepare, subject).await;
    metrics.stepped(Step::Choose, began.elapsed());
    let (chosen, began) = (chosen?, Instant::now());
    let approved = approve::approve(&installer.approve(subject), &prepare, subject, chosen).await;
    metrics.stepped(Step::Approve, began.elapsed());
    Ok(approved?)
}

/// Looks after the release that runs.
async fn look_after(subject: &Subject, slot: &Slot, installer: &Arc<Installer>) -> Option<Running> {
    let (prepare, rollout) = (installer.prepare(slot), installer.roll_out(subject, slot));
    Box::pin(running::look_after(&prepare, rollout, subject)).await
}

/// Looks after the release that runs, until the watch brings a newer spec.
async fn look_after_unless_superseded(
    subject: &Subject,
    slot: &Slot,
    installer: &Arc<Installer>,
) -> Result<Option<Running>, Superseded> {
    tokio::select! {
        running = look_after(subject, slot, installer) => Ok(running),
        () = installer.generations.newer_than(&subject.deployment) => Err(Superseded),
    }
}

/// Brings an approved release to the cluster, and looks after the release that runs if that does not succeed.
async fn bring(
    subject: &mut Subject,
    approved: &Approved,
    running: Option<Running>,
    slot: &Slot,
    installer: &Arc<Installer>,
) -> Result<Assessment, Superseded> {
    let candidate = approved.candidate();
    let route = intent::route(subject.history(), candidate);
    let announced = Announced::default();
    let begins = revisions::begins(subject.history(), candidate) || candidate.approval.is_some();
    let opened = if route == Route::Advance && begins {
        let opening =
            opening(subject, approved.selection(), running.clone(), approved.release(), &announced, installer);
        subject.record.open_revision(opening)
    } else {
        Ok(())
    };
    let began = Instant::now();
    let rolled_out = match opened {
        Ok(()) => tokio::select! {
            rolled_out = rollout::roll_out(installer.roll_out(subject, slot), subject, approved, route) => Ok(rolled_out),
            () = installer.generations.newer_than(&subject.deployment) => Err(Superseded),
        },
        // Nothing is written for a revision that cannot be recorded.
        Err(error) => Ok(RolledOut { findings: RolloutFindings::default(), result: Err(error.into()) }),
    };
    installer.cluster.metrics.stepped(Step::RollOut, began.elapsed());
    subject.record.close_revision();
    if let Some(status) = announced.lock().await.take() {
        // The rollout took longer than the write of the announcement, which alone says how fast the API server answers.
        installer.memory.announcements.note(&subject.name(), Duration::ZERO);
        subject.stored = Some(BundleDeploymentStatus::clone(&status));
        subject.deployment.status = Some(status);
    }
    subject.read_record();
    let RolledOut { findings, result } = rolled_out?;
    let outcome = match result {
        Ok(state) => state.into(),
        Err(failure) => {
            let persists = installer.backoff.failures(&subject.name()) >= TRANSIENT_FAILURES;
            errors::apply_failed(&failure, persists)
        }
    };
    let mut selection = approved.selection();
    if revisions::begins(subject.history(), candidate) {
        selection.described = selection.bundle.clone().map(|bundle| (bundle, candidate.release.digest.clone()));
    }
    let found = Assessment { rollout: findings, ..Assessment::of_selection(selection, outcome) };
    // Earlier findings about a release that is being replaced are out of date.
    let running = match running {
        _ if !intent::running_needs_look(&found.outcome, subject.history(), candidate) => None,
        Some(running) => Some(running),
        None => look_after_unless_superseded(subject, slot, installer).await?,
    };
    Ok(found.with_running(running))
}

/// A status that was written before the first write to the cluster.
type Announced = Arc<tokio::sync::Mutex<Option<BundleDeploymentStatus>>>;

/// What happens with the first write to the cluster: the record begins a revision, and the status announces it, so that a user who sees
/// the cluster change can see the cause.
fn opening(
    subject: &Subject,
    selection: Selection,
    running: Option<Running>,
    release: &Arc<Release>,
    announced: &Announced,
    installer: &Arc<Installer>,
) -> PendingRevision {
    let found = Assessment::of_selection(selection, ReconcileOutcome::Starting).with_running(running);
    let (deployment, stored) = (subject.deployment.clone(), subject.stored.clone());
    let status = status::derive(&deployment, &found, Timestamp::now());
    let status = redaction::hide(&installer.memory.values.redactor(&deployment, subject.history()), status);
    let history = status.history.clone();
    let (installer, announced) = (Arc::clone(installer), Arc::clone(announced));
    let announce = async move {
        match report::announce(installer.report(), &deployment, stored.as_ref(), &status).await {
            Ok(()) => *announced.lock().await = Some(status.into_inner()),
            Err(error) => {
                tracing::debug!(deployment = %deployment.name_any(), %error, "the status does not announce the revision");
            }
        }
    };
    PendingRevision { history, release: Arc::clone(release), announce: announce.boxed() }
}
