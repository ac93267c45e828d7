//! Derives the status from what a pass found. Pure: the clock comes in as an argument.

mod words;

use chandler_api::{
    BundleCandidate, BundleDeployment, BundleDeploymentStatus, ConditionStatus, ConditionType as Type, NewCondition,
    Outcome, PendingChange, Reason, ReleaseInUse, Revision, conditions::remove_condition, find_condition,
    set_condition,
};
use chandler_source::Source;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use self::words::{list, prefix, waiting_for, well};
use super::drift::DriftFound;
use super::{
    approval,
    assessment::{Assessment, Reached, ReleaseFacts, RollingOut},
    decide::Clock,
    revisions::{self, Candidate, Cause, Step, Terms},
    upgrade_warnings,
};
use crate::problem::Problem;

/// The status after a pass over `deployment`, from the status that it has and what the pass found.
pub(crate) fn derive(deployment: &BundleDeployment, found: &Assessment, now: Timestamp) -> BundleDeploymentStatus {
    let status = deployment.status.clone().unwrap_or_default();
    let had_release = status.release.clone();
    let mut draft = Draft { status, generation: deployment.metadata.generation, now: Time(whole_seconds(now)) };
    draft.status.observed_generation = draft.generation;
    draft.status.missing_permissions =
        found.problem().map(|found| found.missing_permissions.clone()).unwrap_or_default();
    if found.reached == Reached::Preparing {
        return draft.prepared(deployment, found);
    }
    draft.handled(deployment, found);
    draft.pending(found);
    draft.content(deployment, found);
    draft.bundle(found);
    draft.drift(found);
    let terms = Terms::of(deployment, draft.now.clone());
    let candidate = found.candidate.as_ref();
    match &found.reached {
        Reached::Suspended => draft.no(Type::Progressing, Reason::Suspended, "spec.suspend is true"),
        // Two are said elsewhere, the third by whoever sees the newer spec.
        Reached::NeedsApproval | Reached::Preparing | Reached::Superseded => {}
        Reached::Unrecorded(problem) | Reached::NoProvisioner(problem) | Reached::NotDeleted(problem) => {
            draft.blocked(problem);
        }
        Reached::NotUnpacked(problem) => draft.not_unpacked(problem),
        Reached::NotRendered(problem) => draft.failed(problem, had_release.as_ref(), None),
        Reached::NotPreviewed(problem) => {
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
        }
        // It never came to the cluster: no revision began.
        Reached::NotApplied(problem) if candidate.is_some_and(|it| revisions::begins(&draft.status.history, it)) => {
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
        }
        Reached::NotApplied(problem) => {
            let current = draft.record(candidate, Step::Refused(problem), &terms);
            draft.failed(problem, had_release.as_ref(), candidate.map(|candidate| &candidate.release));
            if current.outcome == Outcome::Failed {
                draft.too_late(&current, found, &terms);
            }
            match &found.health {
                Some(unhealthy) => draft.health(unhealthy, found.unsteady.is_some()),
                // It runs, and what keeps it from being repaired keeps it from being looked at, too.
                None if current.outcome == Outcome::Succeeded => draft.unseen(&problem.message),
                None => {}
            }
        }
        Reached::Beginning => {
            let current = draft.record(candidate, Step::Going(""), &terms);
            draft.beginning(&current, candidate);
        }
        Reached::RollingOut(rollout) => {
            let message = waiting_for(rollout);
            let current = draft.record(candidate, Step::Going(&message), &terms);
            draft.release(candidate.map(|candidate| &candidate.release), &current, found);
            draft.rolling_out(rollout, &message, candidate);
            if current.outcome == Outcome::Failed {
                draft.too_late(&current, found, &terms);
            }
        }
        Reached::Applied(unhealthy) => {
            let current = draft.record(candidate, Step::Complete, &terms);
            draft.release(candidate.map(|candidate| &candidate.release), &current, found);
            draft.applied(unhealthy, found.unsteady.is_some(), &current, candidate);
        }
        Reached::Deleting(remaining) => {
            let message = format!("deleting the objects of the release; still there: {}", list(remaining));
            draft.yes(Type::Progressing, Reason::Deleting, &message);
            draft.no(Type::Ready, Reason::Deleting, &message);
        }
    }
    if matches!(found.reached, Reached::NeedsApproval | Reached::RollingOut(_) | Reached::Applied(_)) {
        draft.needs_approval(deployment);
    }
    if let Reached::NotUnpacked(problem) | Reached::NoProvisioner(problem) = &found.reached {
        draft.installed_before(&problem.message);
    }
    draft.running(found);
    if found.reached == Reached::Suspended {
        draft.ready_while_suspended();
    }
    draft.finish(deployment)
}

/// How long the rollout of a status has gone on, and how long it may.
pub(crate) fn clock(deployment: &BundleDeployment, status: &BundleDeploymentStatus, now: Timestamp) -> Clock {
    let rolling_out = status.history.last().filter(|current| current.outcome != Outcome::Succeeded);
    let elapsed = rolling_out.map(|current| revisions::elapsed(current, &Time(now))).unwrap_or_default();
    let left = revisions::deadline(deployment).filter(|_| rolling_out.is_some());
    Clock { elapsed, left: left.and_then(|deadline| deadline.checked_sub(elapsed)) }
}

/// The API server keeps whole seconds; what differs only below them would be written again and again.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

struct Draft {
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
        if let Some(unpacked) = &found.unpacked {
            self.status.resolved_source = Some(unpacked.resolved_source.clone());
            self.status.content_digest = Some(unpacked.content_digest.to_string());
            let message = format!("Successfully unpacked the {} Bundle", deployment.spec.source.kind);
            self.yes(Type::Unpacked, Reason::UnpackSuccessful, &message);
        }
        if let Some(provisioner) = &found.provisioner {
            self.status.provisioner = Some(provisioner.clone());
        }
    }

    /// The status. What came to the same in the end has not changed in between, and conditions stand in one order, whichever was set
    /// first.
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

    /// Notes what waits for approval, and since when. While nothing is done it goes on waiting.
    fn pending(&mut self, found: &Assessment) {
        if found.reached == Reached::Suspended {
            return;
        }
        let before = self.status.pending_change.take();
        self.status.pending_change = found.pending.clone().map(|pending| {
            let since = before.filter(|before| before.digest == pending.digest).and_then(|before| before.since);
            PendingChange { since: since.or_else(|| Some(self.now.clone())), ..pending }
        });
    }

    /// Says that a change waits for approval.
    fn needs_approval(&mut self, deployment: &BundleDeployment) {
        let Some(pending) = &self.status.pending_change else { return };
        let message = approval::message(deployment.metadata.name.as_deref().unwrap_or_default(), pending);
        self.no(Type::Progressing, Reason::ApprovalRequired, &message);
        self.no(Type::Ready, Reason::ApprovalRequired, &message);
    }

    /// Notes that a request for a reconcile was acted upon; one that met a passing failure is acted upon again.
    fn handled(&mut self, deployment: &BundleDeployment, found: &Assessment) {
        let passed = found.problem().is_none_or(|problem| problem.terminal || found.candidate.is_some());
        if let (Some(request), true) = (revisions::request(deployment), passed) {
            self.status.last_handled_reconcile_at = Some(request.to_owned());
        }
    }

    /// Notes in the history how far the candidate came, and gives the current revision.
    fn record(&mut self, candidate: Option<&Candidate>, step: Step<'_>, terms: &Terms) -> Revision {
        let current = candidate.and_then(|candidate| revisions::record(&mut self.status, candidate, step, terms));
        current.cloned().unwrap_or_default()
    }

    /// Notes which bundle the spec describes, where it is not the one that runs. Where it could not be rendered nobody knows.
    fn candidate(&mut self, found: &Assessment) {
        self.status.candidate = found.described.as_ref().map(|(facts, digest)| {
            let described = facts.description.clone().unwrap_or_default();
            let (name, package, version) = (described.name, described.package, described.version);
            BundleCandidate { name, package, version, release_digest: digest.to_string() }
        });
    }

    /// Notes what was odd at the last rendering, and what the bundle of the release says of itself. Where the content cannot
    /// be rendered the cause stands in the conditions, and warnings about what was rendered before would mislead.
    fn bundle(&mut self, found: &Assessment) {
        self.candidate(found);
        if let Some(bundle) = &found.bundle {
            self.status.warnings.clone_from(&bundle.warnings);
            if matches!(found.reached, Reached::RollingOut(_) | Reached::Applied(_)) {
                self.status.bundle.clone_from(&bundle.description);
            }
        } else if matches!(&found.reached, Reached::NotRendered(problem) if problem.terminal) {
            self.status.warnings.clear();
        }
    }

    /// Notes what was found about the release that runs while another one is in the way: `Healthy` and `Drifted` are about it.
    fn running(&mut self, found: &Assessment) {
        let Some(running) = &found.running else { return };
        match &running.health {
            Ok(unhealthy) => self.health(unhealthy, running.unsteady.is_some()),
            Err(message) => self.unseen(message),
        }
        if let Some(drift) = &running.drift {
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

    /// Says what is not healthy, unless what was found has not lasted: then what was said stands, for the spec as it is now.
    fn health(&mut self, unhealthy: &[String], unsteady: bool) {
        if unsteady {
            self.confirm(Type::Healthy);
        } else if unhealthy.is_empty() {
            self.yes(Type::Healthy, Reason::Healthy, "BundleDeployment is healthy");
        } else {
            self.no(Type::Healthy, Reason::Unhealthy, &list(unhealthy));
        }
    }

    /// Says that the controller could not look at what runs.
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

    /// Notes what is not as released. It is about a complete release: a new one begins without, and what was found stands
    /// while nobody can look.
    fn drift(&mut self, found: &Assessment) {
        match (&found.drift, &found.reached) {
            (Some(drift), _) => self.drifted(drift),
            (None, Reached::Applied(_) | Reached::Beginning | Reached::RollingOut(_)) => {
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
        let found = upgrade_warnings::Found {
            unsafe_upgrades: &found.warnings,
            conflicts: &found.conflicts,
            kept: &found.kept,
        };
        let warnings = upgrade_warnings::of_release(self.status.release.as_ref(), &digest, &found);
        self.status.release = Some(ReleaseInUse { digest, objects, stages, start_time, warnings });
    }

    /// A revision is about to be rolled out; what runs goes on running.
    fn beginning(&mut self, current: &Revision, candidate: Option<&Candidate>) {
        let size = candidate.map(|candidate| {
            let ReleaseFacts { objects, stages, .. } = candidate.release;
            format!(": {objects} objects in {stages} stages")
        });
        let message = format!("{}revision {}{}", prefix(candidate), current.number, size.unwrap_or_default());
        self.yes(Type::Progressing, Reason::RollingOut, &message);
        self.no(Type::Ready, Reason::RollingOut, &message);
    }

    /// The bundle of the spec is fetched and rendered, which takes its time. What was said of the same spec before stands until
    /// there is an outcome: a registry that has become slow is no news.
    fn prepared(mut self, deployment: &BundleDeployment, found: &Assessment) -> BundleDeploymentStatus {
        let before = self.condition(Type::Progressing).and_then(|condition| condition.observed_generation);
        if before != self.generation {
            let source = Source::parse(&deployment.spec.source).ok();
            let location = source.as_ref().and_then(Source::location).unwrap_or("the bundle");
            let message = format!("fetching and rendering {location}");
            self.no(Type::Unpacked, Reason::Unpacking, &message);
            self.yes(Type::Progressing, Reason::Unpacking, &message);
            self.no(Type::Ready, Reason::Unpacking, &message);
            self.status.candidate = None;
            self.status.pending_change = None;
            self.installed_before(&message);
        }
        self.running(found);
        self.finish(deployment)
    }

    /// Something is in the way: `Progressing` says whether it is tried again, `Ready` repeats the cause.
    fn blocked(&mut self, problem: &Problem) {
        if problem.terminal {
            self.no(Type::Progressing, problem.reason, &problem.message);
        } else {
            self.yes(Type::Progressing, problem.reason, &problem.message);
        }
        self.no(Type::Ready, problem.reason, &problem.message);
    }

    fn not_unpacked(&mut self, problem: &Problem) {
        self.status.resolved_source = None;
        self.status.content_digest = None;
        self.no(Type::Unpacked, Reason::UnpackFailed, &problem.message);
        self.blocked(problem);
    }

    /// The release could not be made or applied. What runs goes on running, and the reason of `Installed` says so.
    fn failed(&mut self, problem: &Problem, before: Option<&ReleaseInUse>, tried: Option<&ReleaseFacts>) {
        let reason = match before {
            None => Reason::InstallFailed,
            Some(before) if tried.is_some_and(|tried| tried.digest.as_str() == before.digest) => {
                Reason::ReconcileFailed
            }
            Some(_) => Reason::UpgradeFailed,
        };
        self.no(Type::Installed, reason, &problem.message);
        if before.is_none() {
            self.no(Type::Healthy, Reason::InstallationStatusFalse, "the first release is not installed");
        }
        self.blocked(problem);
    }

    fn rolling_out(&mut self, rollout: &RollingOut, waiting: &str, candidate: Option<&Candidate>) {
        let message = format!("{}{waiting}", prefix(candidate));
        if rollout.all_applied {
            self.installed();
        } else {
            self.no(Type::Installed, Reason::Installing, &message);
        }
        self.no(Type::Healthy, Reason::Unhealthy, &list(&rollout.waiting));
        self.yes(Type::Progressing, Reason::RollingOut, &message);
        self.no(Type::Ready, Reason::RollingOut, &message);
    }

    /// The current revision failed.
    fn too_late(&mut self, current: &Revision, found: &Assessment, terms: &Terms) {
        let limit = match terms.deadline {
            Some(deadline) if !found.problem().is_some_and(|problem| problem.terminal) => {
                format!("not complete and healthy within {} s: ", deadline.as_secs())
            }
            _ => String::new(),
        };
        let cause = current.message.as_deref().unwrap_or_default();
        let mut message =
            format!("{}revision {} failed: {limit}{cause}", prefix(found.candidate.as_ref()), current.number);
        if let Some(problem) = &found.no_way_back {
            message.push_str("; it cannot be rolled back: ");
            message.push_str(&problem.message);
        }
        let reason = match found.problem() {
            Some(problem) if problem.terminal => problem.reason,
            _ => Reason::ProgressDeadlineExceeded,
        };
        self.no(Type::Progressing, reason, &message);
        self.no(Type::Ready, reason, &message);
    }

    fn applied(&mut self, unhealthy: &[String], unsteady: bool, current: &Revision, candidate: Option<&Candidate>) {
        self.installed();
        self.health(unhealthy, unsteady);
        // Where what was found has not lasted, what was said of health stands. What was said of an earlier spec does not.
        let unhealthy = match self.condition(Type::Healthy).filter(|_| unsteady) {
            Some(healthy) if healthy.status == ConditionStatus::True.as_str() => None,
            Some(healthy) => Some(healthy.message.clone()),
            None => (!unhealthy.is_empty()).then(|| list(unhealthy)),
        };
        if let Some(Cause::Failed { failed, message, to }) = candidate.map(|candidate| &candidate.cause) {
            let message = format!(
                "revision {failed} failed: {message}; revision {to} runs again as revision {}, and revision {failed} is \
                 not tried again until the spec or the content changes",
                current.number
            );
            self.no(Type::Progressing, Reason::RolledBack, &message);
            self.no(Type::Ready, Reason::RolledBack, &message);
            return;
        }
        self.no(Type::Progressing, Reason::Succeeded, "desired state reached");
        match unhealthy {
            None => self.yes(Type::Ready, Reason::Succeeded, &well(current, candidate)),
            Some(unhealthy) => self.no(Type::Ready, Reason::Unhealthy, &unhealthy),
        }
    }

    /// What is suspended is as ready as what runs is healthy.
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

    /// What was said of the release of an earlier spec, which could not be installed, is not about this one, of which nothing
    /// came so far.
    fn installed_before(&mut self, message: &str) {
        let said = self.condition(Type::Installed).and_then(|installed| Reason::from_name(&installed.reason));
        match said {
            Some(Reason::InstallFailed) => self.no(Type::Installed, Reason::InstallFailed, message),
            Some(Reason::UpgradeFailed) => self.installed(),
            _ => {}
        }
    }

    /// Leaves a condition as it is and says that it is about this generation.
    fn confirm(&mut self, kind: Type) {
        let condition = self.status.conditions.iter_mut().find(|condition| condition.type_ == kind.as_str());
        if let Some(condition) = condition {
            condition.observed_generation = self.generation;
        }
    }

    fn installed(&mut self) {
        self.yes(Type::Installed, Reason::InstallationSucceeded, "every object of the release is applied");
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod two_tracks_tests;
