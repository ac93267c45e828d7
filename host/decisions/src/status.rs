//! Derives the status from what a reconcile found. The clock comes in as an argument.

mod candidate;
mod words;

use chandler_api::{
    BundleCandidate, BundleDeployment, BundleDeploymentStatus, ChangeCause, ConditionStatus, ConditionType as Type,
    NewCondition, Outcome, PendingChange, Reason, ReleaseInUse, Revision,
    conditions::{remove_condition, whole_seconds},
    find_condition, set_condition,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use self::words::{list, waiting_for};
use super::{
    approval,
    assessment::{Assessment, ReconcileOutcome, ReleaseFacts},
    drift::DriftFound,
    intent::Clock,
    revisions::{self, Candidate, RevisionStep, RevisionTerms},
    upgrade_warnings::{self, RolloutWarnings},
};
use crate::problem::Problem;

/// The status after a reconcile of `deployment`, from the status that it has and what the reconcile found.
pub fn derive(deployment: &BundleDeployment, found: &Assessment, now: Timestamp) -> BundleDeploymentStatus {
    let status = deployment.status.clone().unwrap_or_default();
    let had_release = status.release.clone();
    let name = deployment.metadata.name.clone().unwrap_or_default();
    let mut draft = Draft { name, status, generation: deployment.metadata.generation, now: whole_seconds(now) };
    draft.status.observed_generation = draft.generation;
    draft.status.missing_permissions =
        found.problem().map(|found| found.missing_permissions.clone()).unwrap_or_default();
    if found.outcome == ReconcileOutcome::Preparing {
        return draft.prepared(deployment, found);
    }
    draft.handled(deployment, found);
    draft.pending(found);
    draft.content(deployment, found);
    draft.bundle(found);
    draft.drift(found);
    let terms = RevisionTerms::of(deployment, draft.now.clone());
    let candidate = found.candidate();
    match &found.outcome {
        ReconcileOutcome::Suspended => draft.no(Type::Progressing, Reason::Suspended, "spec.suspend is true"),
        // `needs_approval` and `prepared` report these.
        ReconcileOutcome::ApprovalRequired | ReconcileOutcome::Preparing => {}
        ReconcileOutcome::FinalizersNotWritten(problem)
        | ReconcileOutcome::RecordUnavailable(problem)
        | ReconcileOutcome::RestoreIncomplete(problem)
        | ReconcileOutcome::TargetUnavailable(problem)
        | ReconcileOutcome::ProvisionerUnavailable(problem)
        | ReconcileOutcome::DeletionFailed(problem) => draft.blocked(problem),
        ReconcileOutcome::UploadPending(message) => draft.upload_pending(message),
        ReconcileOutcome::UnpackFailed(problem) => draft.not_unpacked(problem),
        ReconcileOutcome::RenderFailed(problem) => draft.failed(problem, had_release.as_ref(), None),
        ReconcileOutcome::PreviewFailed(problem) => {
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
        }
        // No object was written: no revision began.
        ReconcileOutcome::ApplyFailed(problem)
            if candidate.is_some_and(|it| revisions::begins(&draft.status.history, it)) =>
        {
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
        }
        ReconcileOutcome::ApplyFailed(problem) => {
            let current = draft.record(candidate, RevisionStep::Refused(problem), &terms);
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
            if current.outcome == Outcome::Failed {
                draft.too_late(&current, found, &terms);
            }
            match &found.rollout.health {
                Some(unhealthy) => draft.health(unhealthy, found.rollout.debounce.is_some()),
                // It runs, and the problem that prevents the repair prevents the observation, too.
                None if current.outcome == Outcome::Succeeded => draft.unseen(&problem.message),
                None => {}
            }
        }
        ReconcileOutcome::Starting => {
            let current = draft.record(candidate, RevisionStep::Going(""), &terms);
            draft.beginning(&current, candidate);
        }
        ReconcileOutcome::RollingOut(rollout) => {
            let message = waiting_for(rollout);
            let current = draft.record(candidate, RevisionStep::Going(&message), &terms);
            draft.release(candidate.map(|candidate| &candidate.release), &current, found);
            draft.rolling_out(rollout, &message, candidate);
            if current.outcome == Outcome::Failed {
                draft.too_late(&current, found, &terms);
            }
        }
        ReconcileOutcome::Applied(unhealthy) => {
            let current = draft.record(candidate, RevisionStep::Complete, &terms);
            draft.release(candidate.map(|candidate| &candidate.release), &current, found);
            draft.applied(unhealthy, found.rollout.debounce.is_some(), &current, candidate);
        }
        ReconcileOutcome::Deleting(remaining) => {
            let message = format!("deleting the objects of the release; still there: {}", list(remaining));
            draft.yes(Type::Progressing, Reason::Deleting, &message);
            draft.no(Type::Ready, Reason::Deleting, &message);
        }
    }
    if matches!(
        found.outcome,
        ReconcileOutcome::ApprovalRequired | ReconcileOutcome::RollingOut(_) | ReconcileOutcome::Applied(_)
    ) {
        draft.needs_approval(deployment);
    }
    match &found.outcome {
        ReconcileOutcome::UnpackFailed(Problem { message, .. })
        | ReconcileOutcome::ProvisionerUnavailable(Problem { message, .. })
        | ReconcileOutcome::UploadPending(message) => draft.installed_before(message),
        _ => {}
    }
    draft.running(found);
    if found.outcome == ReconcileOutcome::Suspended {
        draft.ready_while_suspended();
    }
    draft.stalled(deployment, found);
    draft.finish(deployment)
}

/// How long the rollout of a status has taken, and how long it may take.
pub fn clock(deployment: &BundleDeployment, status: &BundleDeploymentStatus, now: Timestamp) -> Clock {
    let rolling_out = status.history.last().filter(|current| current.outcome != Outcome::Succeeded);
    let elapsed = rolling_out.map(|current| revisions::elapsed(current, &Time(now))).unwrap_or_default();
    let left = revisions::deadline(deployment).filter(|_| rolling_out.is_some());
    Clock { elapsed, left: left.and_then(|deadline| deadline.checked_sub(elapsed)) }
}

struct Draft {
    name: String,
    status: BundleDeploymentStatus,
    generation: Option<i64>,
    now: Time,
}

impl Draft {
    fn yes(&mut self, kind: Type, reason: Reason, message: &str) {
        self.set(NewCondition::is_true(kind, reason, message));
    }

    fn no(&mut self, kind: Type, reason: Reason, message: &str) {
        self.set(NewCondition::is_false(kind, reason, message));
    }

    fn set(&mut self, condition: NewCondition) {
        set_condition(&mut self.status.conditions, condition, self.generation, self.now.clone());
    }

    fn content(&mut self, deployment: &BundleDeployment, found: &Assessment) {
        if let Some(unpacked) = &found.selection.unpacked {
            self.status.resolved_source = Some(unpacked.resolved_source.clone());
            self.status.content_digest = Some(unpacked.content_digest.to_string());
            let signed = if unpacked.is_verified { ", signed as required" } else { "" };
            let message = format!("Successfully unpacked the {} Bundle{signed}", deployment.spec.source.kind);
            self.yes(Type::Unpacked, Reason::UnpackSuccessful, &message);
        }
        if let Some(provisioner) = &found.selection.provisioner {
            self.status.provisioner = Some(provisioner.clone());
        }
    }

    /// The status. A condition that ends with the status that it had keeps its transition time, and the order of the conditions does not
    /// depend on which was set first.
    fn finish(mut self, deployment: &BundleDeployment) -> BundleDeploymentStatus {
        let place = |condition: &Condition| Type::from_name(&condition.type_).map_or((1, None), |kind| (0, Some(kind)));
        self.status.conditions.sort_by_key(place);
        let before = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        for condition in &mut self.status.conditions {
            let same = before.iter().find(|old| old.type_ == condition.type_ && old.status == condition.status);
            if let Some(old) = same {
                condition.last_transition_time = old.last_transition_time.clone();
            }
        }
        self.status
    }

    /// Notes the change that waits for approval, and since when. It keeps waiting while the BundleDeployment is suspended.
    fn pending(&mut self, found: &Assessment) {
        if found.outcome == ReconcileOutcome::Suspended {
            return;
        }
        let before = self.status.pending_change.take();
        self.status.pending_change = found.selection.pending.clone().map(|pending| {
            let since = before.filter(|before| before.digest == pending.digest).and_then(|before| before.since);
            PendingChange { since: since.or_else(|| Some(self.now.clone())), ..pending }
        });
    }

    /// Reports that a change waits for approval. While an update of the provisioner waits, what is installed matches the spec.
    fn needs_approval(&mut self, deployment: &BundleDeployment) {
        let Some(pending) = &self.status.pending_change else { return };
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        if pending.cause == Some(ChangeCause::Provisioner) {
            let update = approval::update_message(name, pending);
            let ready = self.condition(Type::Ready).filter(|ready| ready.status == ConditionStatus::True.as_str());
            if let Some(message) = ready.map(|ready| format!("{}; {update}", ready.message)) {
                self.yes(Type::Ready, Reason::Succeeded, &message);
            }
            return;
        }
        let message = approval::message(name, pending);
        self.no(Type::Progressing, Reason::ApprovalRequired, &message);
        self.no(Type::Ready, Reason::ApprovalRequired, &message);
    }

    /// Notes that a request for a reconcile was handled; one that met a transient problem is handled again.
    fn handled(&mut self, deployment: &BundleDeployment, found: &Assessment) {
        let handled = found.problem().is_none_or(|problem| problem.terminal || found.candidate().is_some());
        if let (Some(request), true) = (revisions::request(deployment), handled) {
            self.status.last_handled_reconcile_at = Some(request.to_owned());
        }
    }

    /// Records in the history how far the candidate came, and returns the current revision.
    fn record(&mut self, candidate: Option<&Candidate>, step: RevisionStep<'_>, terms: &RevisionTerms) -> Revision {
        let current = candidate.and_then(|candidate| revisions::record(&mut self.status, candidate, step, terms));
        current.cloned().unwrap_or_default()
    }

    /// Notes which bundle the spec describes, where it is not the one that runs. Unknown where it could not be rendered.
    fn candidate(&mut self, found: &Assessment) {
        self.status.candidate = found.selection.described.as_ref().map(|(facts, digest)| {
            let described = facts.description.clone().unwrap_or_default();
            let (name, package, version) = (described.name, described.package, described.version);
            BundleCandidate { name, package, version, release_digest: digest.to_string() }
        });
    }

    /// Notes the warnings of the last rendering, and the description of the bundle of the release. Where the content cannot be rendered
    /// the conditions have the cause, and warnings about an earlier rendering would mislead.
    fn bundle(&mut self, found: &Assessment) {
        self.candidate(found);
        if let Some(bundle) = &found.selection.bundle {
            self.status.warnings.clone_from(&bundle.warnings);
            if matches!(found.outcome, ReconcileOutcome::RollingOut(_) | ReconcileOutcome::Applied(_)) {
                self.status.bundle.clone_from(&bundle.description);
            }
        } else if matches!(&found.outcome, ReconcileOutcome::RenderFailed(problem) if problem.terminal) {
            self.status.warnings.clear();
        }
    }

    /// Notes what was found about the release that runs while the candidate is another one: `Healthy` and `Drifted` are about it.
    fn running(&mut self, found: &Assessment) {
        let Some(running) = &found.running else { return };
        match &running.health {
            Ok(unhealthy) => self.health(unhealthy, running.findings.debounce.is_some()),
            Err(message) => self.unseen(message),
        }
        if let Some(drift) = &running.findings.drift {
            self.drifted(drift);
        }
        let installed = self.condition(Type::Installed).and_then(|installed| Reason::from_name(&installed.reason));
        match (&running.not_repaired, installed) {
            (Some(message), Some(Reason::InstallationSucceeded | Reason::ReconcileFailed)) => {
                self.no(Type::Installed, Reason::ReconcileFailed, message);
            }
            (None, Some(Reason::ReconcileFailed)) if running.health.is_ok() => self.installed(),
            _ => {}
        }
        if let Some(bundle) = &running.bundle {
            self.status.bundle.clone_from(&bundle.description);
        }
    }

    /// Reports the health. While it is debounced, the reported health stays and is confirmed for the current spec.
    fn health(&mut self, unhealthy: &[String], debounced: bool) {
        if debounced {
            self.confirm(Type::Healthy);
        } else if unhealthy.is_empty() {
            self.yes(Type::Healthy, Reason::Healthy, "BundleDeployment is healthy");
        } else {
            self.no(Type::Healthy, Reason::Unhealthy, &list(unhealthy));
        }
    }

    /// Reports that the controller could not observe the release that runs.
    fn unseen(&mut self, message: &str) {
        self.unknown(Type::Healthy, message);
        if self.condition(Type::Drifted).is_some() {
            self.unknown(Type::Drifted, message);
        }
    }

    fn condition(&self, kind: Type) -> Option<&Condition> {
        find_condition(&self.status.conditions, kind)
    }

    fn unknown(&mut self, kind: Type, message: &str) {
        self.set(NewCondition::is_unknown(kind, Reason::ObjectLookupFailure, message));
    }

    fn drifted(&mut self, drift: &DriftFound) {
        let (reason, message) = drift.summary(list);
        self.status.drift = (drift.drifted.total > 0).then(|| drift.drifted.clone());
        match reason {
            Reason::AsReleased => self.no(Type::Drifted, reason, &message),
            _ => self.yes(Type::Drifted, reason, &message),
        }
    }

    /// Notes the drift. It is about a complete release: a new one begins without it, and the reported drift stays while the controller
    /// cannot observe.
    fn drift(&mut self, found: &Assessment) {
        match (&found.rollout.drift, &found.outcome) {
            (Some(drift), _) => self.drifted(drift),
            (None, ReconcileOutcome::Applied(_) | ReconcileOutcome::Starting | ReconcileOutcome::RollingOut(_)) => {
                self.status.drift = None;
                remove_condition(&mut self.status.conditions, Type::Drifted);
            }
            _ => {}
        }
    }

    /// Notes the release.
    fn release(&mut self, facts: Option<&ReleaseFacts>, current: &Revision, found: &Assessment) {
        let Some(facts) = facts else { return };
        let digest = facts.digest.to_string();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (objects, stages) = (count(facts.objects), count(facts.stages));
        let start_time = current.start_time.clone();
        let found = RolloutWarnings {
            unsafe_upgrades: &found.rollout.warnings,
            conflicts: &found.rollout.conflicts,
            recreated: &found.rollout.recreated,
            kept: &found.rollout.kept,
        };
        let warnings = upgrade_warnings::of_release(self.status.release.as_ref(), &digest, &found);
        self.status.release = Some(ReleaseInUse { digest, objects, stages, start_time, warnings });
    }

    /// While a BundleDeployment is suspended, `Ready` follows `Healthy`.
    fn ready_while_suspended(&mut self) {
        let Some(healthy) = self.condition(Type::Healthy).cloned() else { return };
        let was_ready = self.condition(Type::Ready).is_some_and(|ready| {
            [Reason::Succeeded, Reason::Unhealthy, Reason::ObjectLookupFailure]
                .map(Reason::as_str)
                .contains(&&*ready.reason)
        });
        match (healthy.status.as_str(), was_ready) {
            (_, false) => {}
            ("True", true) => self.yes(Type::Ready, Reason::Succeeded, &healthy.message),
            ("False", true) => self.no(Type::Ready, Reason::Unhealthy, &healthy.message),
            (_, true) => self.unknown(Type::Ready, &healthy.message),
        }
    }

    /// `Installed` may report a release of an earlier spec that could not be installed. The current spec has none so far.
    fn installed_before(&mut self, message: &str) {
        let reported = self.condition(Type::Installed).and_then(|installed| Reason::from_name(&installed.reason));
        match reported {
            Some(Reason::InstallFailed) => self.no(Type::Installed, Reason::InstallFailed, message),
            Some(Reason::UpgradeFailed) => self.installed(),
            _ => {}
        }
    }

    /// Leaves a condition as it is and sets its generation.
    fn confirm(&mut self, kind: Type) {
        let condition = self.status.conditions.iter_mut().find(|condition| condition.type_ == kind.as_str());
        if let Some(condition) = condition {
            condition.observed_generation = self.generation;
        }
    }

    /// The message is rukpak's, which scripts match.
    fn installed(&mut self) {
        let message = format!("Instantiated bundle {} successfully", self.name);
        self.yes(Type::Installed, Reason::InstallationSucceeded, &message);
    }
}

#[cfg(test)]
mod kstatus_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod two_tracks_tests;
