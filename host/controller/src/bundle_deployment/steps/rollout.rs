//! Rollout: a release onto the cluster. An approved release is applied; a complete one is observed and repaired if it drifted.

use std::sync::Arc;

use chandler_api::{BundleDeployment, DriftPolicy};
use chandler_core::{ObjectKey, Release};
use chandler_decisions::{
    assessment::{ReconcileOutcome, RollingOut, RolloutFindings},
    drift::{self, DriftFound},
    gates,
    intent::{self, Route},
    problem::Problem,
    revisions::Candidate,
    spec_error::SpecError,
};
use chandler_records::{Record, RecordError};
use chandler_rollout::{Changes, Drift, DriftKind, DriftOptions, Owner, Progress, Unhealthy};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    super::{handles::RolloutHandles, subject::Subject},
    apply::{self, Applied, ApplyError},
    approve::Approved,
    certificates::{self, CertificatesError},
    observe::{self, ObserveError},
    restore::Restored,
};
use crate::events;

/// What a rollout found, and how far it got.
pub(in super::super) struct RolledOut {
    pub(in super::super) findings: RolloutFindings,
    pub(in super::super) result: Result<RolloutState, RolloutFailure>,
}

/// How far a rollout got.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum RolloutState {
    /// It waits for objects.
    RollingOut(RollingOut),
    /// Every object is applied; the list names the unhealthy ones.
    Applied(Vec<String>),
}

impl From<RolloutState> for ReconcileOutcome {
    fn from(state: RolloutState) -> Self {
        match state {
            RolloutState::RollingOut(waits) => Self::RollingOut(waits),
            RolloutState::Applied(unhealthy) => Self::Applied(unhealthy),
        }
    }
}

/// Why a rollout ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RolloutFailure {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Rolls an approved release out: applies it, or observes it if it is already complete.
pub(in super::super) async fn roll_out(
    handles: RolloutHandles<'_>,
    subject: &Subject,
    approved: &Approved,
    route: Route,
) -> RolledOut {
    let rollout = Rollout::of(handles, subject, approved.candidate(), approved.release());
    match route {
        Route::Observe => rollout.repair().await,
        Route::Advance => rollout.advance().await,
    }
}

/// Observes the release that runs, and repairs it. It was approved when its revision began.
pub(super) async fn repair(handles: RolloutHandles<'_>, subject: &Subject, running: &Restored) -> RolledOut {
    Rollout::of(handles, subject, &running.candidate, &running.release).repair().await
}

/// Looks at the health of a release without changing anything.
pub(super) async fn look(handles: RolloutHandles<'_>, subject: &Subject, running: &Restored) -> RolledOut {
    Rollout::of(handles, subject, &running.candidate, &running.release).look().await
}

/// The rollout of one release in one reconcile.
struct Rollout<'a> {
    handles: RolloutHandles<'a>,
    subject: &'a Subject,
    candidate: &'a Candidate,
    release: &'a Arc<Release>,
    findings: RolloutFindings,
}

impl<'a> Rollout<'a> {
    fn of(
        handles: RolloutHandles<'a>,
        subject: &'a Subject,
        candidate: &'a Candidate,
        release: &'a Arc<Release>,
    ) -> Self {
        Self { handles, subject, candidate, release, findings: RolloutFindings::default() }
    }

    async fn repair(mut self) -> RolledOut {
        self.reserve().await;
        let result = self.observe_and_repair().await;
        RolledOut { findings: self.findings, result }
    }

    async fn advance(mut self) -> RolledOut {
        self.reserve().await;
        let result = self.apply().await;
        RolledOut { findings: self.findings, result }
    }

    async fn look(mut self) -> RolledOut {
        self.reserve().await;
        let result = self.observe().await;
        // The user decides whether and when it changes.
        let findings = RolloutFindings { causes: self.findings.causes, ..RolloutFindings::default() };
        RolledOut { findings, result }
    }

    async fn observe(&mut self) -> Result<RolloutState, RolloutFailure> {
        let (handles, deployment) = (self.handles, &self.subject.deployment);
        let owner = self.owner()?;
        let completed = certificates::complete(handles.certificates, deployment, &owner, self.release).await?;
        let ignore = chandler_rollout::DriftPolicy::Ignore;
        let observed = observe::observe(&handles, deployment, &owner, &completed, ignore).await?;
        Ok(RolloutState::Applied(self.explained(&owner, observed.unhealthy, true).await))
    }

    async fn observe_and_repair(&mut self) -> Result<RolloutState, RolloutFailure> {
        let (handles, deployment) = (self.handles, &self.subject.deployment);
        let owner = self.owner()?;
        let completed = certificates::complete(handles.certificates, deployment, &owner, self.release).await?;
        let mut options =
            DriftOptions { drift: drift::policy_now(deployment), complete: true, ..DriftOptions::default() };
        let observed = observe::observe(&handles, deployment, &owner, &completed, options.drift).await?;
        keep(&self.subject.record, self.release).await?;
        self.findings.health = Some(self.explained(&owner, observed.unhealthy.clone(), false).await);
        self.findings.kept.clone_from(&observed.kept);
        options.cooldown = handles.conflicts.of(&owner.name, |conflicts, now| {
            conflicts.see(&observed.drift, now);
            conflicts.paused(now)
        });
        self.note_drift(&observed.drift);
        if !drift::needs_repair(&observed, &options) {
            self.findings.renewal = completed.look_again;
            return Ok(self.settled(&owner, observed.unhealthy).await);
        }
        let seen = observed.drift;
        let missing = seen.iter().filter(|drift| drift.kind == DriftKind::Missing);
        options.missing = missing.map(|drift| drift.object.clone()).collect();
        // Paths of fields may have values of Secrets; the Event has them redacted.
        let objects: Vec<String> = seen.iter().map(|drift| drift.object.to_string()).collect();
        tracing::info!(deployment = %owner.name, ?objects, "repairing");
        // A Secret that was deleted meanwhile must not come back with the key that it had.
        let completed = certificates::complete(handles.certificates, deployment, &owner, self.release).await?;
        self.findings.renewal = completed.look_again;
        let applied = apply::apply(&handles, deployment, &owner, &completed, &mut options, &seen).await;
        let Applied { progress, refused } =
            applied.map_err(RolloutFailure::from).inspect_err(|failure| self.note_not_repaired(&seen, failure))?;
        self.note_changes(&owner, &progress, &seen).await?;
        self.note_drift(&drift::unrepaired(&seen, &options));
        apply::log(&owner, progress.changes());
        if let Some(error) = refused {
            let failure = RolloutFailure::from(error);
            let aside: Vec<Drift> = seen.into_iter().filter(|drift| options.skipped.contains(&drift.object)).collect();
            self.note_not_repaired(&aside, &failure);
            return Err(failure);
        }
        Ok(match progress {
            // A repair of a complete release is not a rollout: the repaired objects get the same grace period as other objects.
            Progress::Waiting { installed: true, waiting, .. } => self.settled(&owner, waiting).await,
            Progress::Waiting { stage, stages, installed, waiting, .. } => {
                // The grace period counts from here, for a caller that reports only on health.
                let reported = self.debounced(&waiting);
                let waiting = self.explained(&owner, waiting, reported).await;
                RolloutState::RollingOut(RollingOut { stage, stages, all_applied: installed, waiting })
            }
            Progress::Complete { .. } => self.settled(&owner, Vec::new()).await,
        })
    }

    async fn apply(&mut self) -> Result<RolloutState, RolloutFailure> {
        let (handles, deployment) = (self.handles, &self.subject.deployment);
        let owner = self.owner()?;
        let completed = certificates::complete(handles.certificates, deployment, &owner, self.release).await?;
        self.findings.renewal = completed.look_again;
        let cooldown = handles.conflicts.of(&owner.name, |conflicts, now| {
            conflicts.see(&[], now);
            conflicts.paused(now)
        });
        let mut options = DriftOptions { drift: drift::policy_now(deployment), cooldown, ..DriftOptions::default() };
        let Applied { progress, .. } =
            apply::apply(&handles, deployment, &owner, &completed, &mut options, &[]).await?;
        let changes = progress.changes();
        self.note_changes(&owner, &progress, &changes.repaired).await?;
        self.note_drift(&changes.unrepaired);
        // Drift is reported for a complete release, but a conflict may keep a release from being complete.
        let complete = progress.is_complete();
        self.findings.drift = self.findings.drift.take().filter(|drift| complete || drift.contested);
        apply::log(&owner, changes);
        Ok(match progress {
            Progress::Waiting { stage, stages, installed, waiting, .. } => {
                let waiting = self.explained(&owner, waiting, self.wants_causes()).await;
                RolloutState::RollingOut(RollingOut { stage, stages, all_applied: installed, waiting })
            }
            Progress::Complete { .. } => {
                handles.debounce.forget(&owner.name);
                RolloutState::Applied(Vec::new())
            }
        })
    }

    fn deployment(&self) -> &BundleDeployment {
        &self.subject.deployment
    }

    fn owner(&self) -> Result<Owner, SpecError> {
        self.subject.owner_as_approved(self.candidate, self.handles.accounts)
    }

    /// Waits until there is memory for the release.
    async fn reserve(&self) {
        self.handles.sizes.note(&self.subject.name(), self.release.memory());
        self.handles.slot.carry(self.release.memory()).await;
    }

    /// Records the revision, and notes what was written. A revision that writes nothing begins, too.
    async fn note_changes(&mut self, owner: &Owner, progress: &Progress, seen: &[Drift]) -> Result<(), RolloutFailure> {
        let record = &self.subject.record;
        record.begin_revision().await?;
        keep(record, self.release).await?;
        let changes: &Changes = progress.changes();
        self.findings.warnings.clone_from(&changes.warnings);
        self.findings.kept.clone_from(&changes.kept);
        let recreated = |object: &ObjectKey| {
            format!("{object} was deleted to be created again, because the release changes an immutable field")
        };
        self.findings.recreated = changes.recreated.iter().map(recreated).collect();
        self.findings.conflicts = changes.conflicts.iter().map(ToString::to_string).collect();
        events::publish_adoption(self.handles.events, &self.subject.deployment, &changes.adopted).await;
        self.handles.metrics.repaired(true, drift::repaired(seen, changes).count());
        let news: Vec<&Drift> = self.handles.conflicts.of(&owner.name, |conflicts, now| {
            drift::repaired(seen, changes).filter(|drift| conflicts.repaired(drift, now)).collect()
        });
        self.findings.repaired = news.iter().map(ToString::to_string).collect();
        let recreated = news.iter().filter(|drift| drift::is_deleted_crd(drift));
        self.findings.recreated_crds = recreated.map(|drift| drift.object.clone()).collect();
        Ok(())
    }

    /// Notes the objects that could not be repaired, unless the next reconcile is likely to repair them.
    fn note_not_repaired(&mut self, drift: &[Drift], failure: &RolloutFailure) {
        self.handles.metrics.repaired(false, drift.len());
        let ignored = drift::policy(self.deployment()) == DriftPolicy::Ignore;
        if !drift.is_empty() && !ignored && !Problem::from(failure).is_api_unavailable() {
            self.findings.drift = Some(DriftFound::not_repaired(drift));
        }
    }

    /// Notes the objects of a complete release that differ from it and are not repaired, if the spec wants a report about them.
    fn note_drift(&mut self, drift: &[Drift]) {
        let deployment = &self.subject.deployment;
        let (contested, next) = self
            .handles
            .conflicts
            .of(&self.subject.name(), |conflicts, now| (conflicts.contested(), conflicts.next_check(now)));
        self.findings.contention = next;
        self.findings.drift = match drift::policy(deployment) {
            DriftPolicy::Repair => Some(DriftFound::contested(&contested)),
            DriftPolicy::Report => Some(DriftFound::reported(drift)),
            DriftPolicy::Ignore => None,
        };
    }

    /// The health of a release that was complete before, with causes if it is reported now.
    async fn settled(&mut self, owner: &Owner, unhealthy: Vec<Unhealthy>) -> RolloutState {
        let reported = self.debounced(&unhealthy);
        RolloutState::Applied(self.explained(owner, unhealthy, reported).await)
    }

    /// Debounces the health of a release that was complete before. Returns whether it is reported now.
    fn debounced(&mut self, unhealthy: &[Unhealthy]) -> bool {
        let (debounce, name) = (self.handles.debounce, self.subject.name());
        let deployment = &self.subject.deployment;
        if gates::reports_a_rollout(deployment) {
            // The controller stopped before it could report that the rollout was complete, or the watch is late: the reported
            // health is out of date, so the new one is reported at once.
            debounce.forget(&name);
            return true;
        }
        let decision = gates::weigh(deployment, unhealthy, debounce.since(&name), debounce.now());
        debounce.note(&name, decision.next.differs_since);
        self.findings.debounce = decision.recheck_after;
        decision.recheck_after.is_none()
    }

    /// Whether the status will report this rollout, and it has waited long enough to be worth a look at the causes.
    fn wants_causes(&self) -> bool {
        let now = Time(Timestamp::now());
        self.handles.announcements.suffices(&self.subject.name()).is_none()
            && intent::wants_causes(self.subject.history(), self.candidate, &now)
    }

    /// The unhealthy objects as lines of the status, with their causes below them as far as they are known. With `look`, the causes are
    /// looked for.
    async fn explained(&mut self, owner: &Owner, mut unhealthy: Vec<Unhealthy>, look: bool) -> Vec<String> {
        if !unhealthy.is_empty() {
            let rollout = self.handles.rollout;
            self.findings.causes = rollout.explain(owner, self.release.digest(), &mut unhealthy, look).await;
        }
        unhealthy.iter().map(line).collect()
    }
}

/// Keeps the bytes of a release in the record, which outlives the cache and the registry.
async fn keep(record: &Record, release: &Release) -> Result<(), RecordError> {
    if record.keeps(release.digest()) {
        return Ok(());
    }
    record.keep_release(release).await
}

/// An unhealthy object, as a line of the status.
pub(super) fn line(unhealthy: &Unhealthy) -> String {
    format!("{}: {}", unhealthy.object, unhealthy.health)
}
