//! The conditions about the candidate: how far it came, and the problem that stopped it.

use std::time::Duration;

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ConditionStatus, ConditionType as Type, Reason, ReleaseInUse, Remedy,
    Revision, conditions::remove_condition, find_condition,
};
use chandler_core::text::count;
use chandler_source::Source;

use super::{
    super::{
        assessment::{Assessment, ReleaseFacts, RollingOut},
        revisions::{Candidate, Cause, RevisionTerms},
    },
    Draft,
    words::{healthy, list, prefix},
};
use crate::problem::{Problem, Refusal};

/// How long a requirement of the release may be missing until `Stalled` is set. The controller looks again several times meanwhile.
const GRACE: Duration = Duration::from_secs(10);

impl Draft {
    /// A revision is about to be rolled out; the release that runs keeps running.
    pub(crate) fn beginning(&mut self, current: &Revision, candidate: Option<&Candidate>) {
        let size = candidate.map(|candidate| {
            let ReleaseFacts { objects, stages, .. } = candidate.release;
            format!(": {} in {}", count(objects, "object"), count(stages, "stage"))
        });
        let message = format!("{}revision {}{}", prefix(candidate), current.number, size.unwrap_or_default());
        self.yes(Type::Progressing, Reason::RollingOut, &message);
        self.no(Type::Ready, Reason::RollingOut, &message);
    }

    /// The bundle of the spec is being fetched and rendered. The conditions about the same spec stay until there is an outcome: a
    /// registry that becomes slow changes no condition.
    pub(crate) fn prepared(mut self, deployment: &BundleDeployment, found: &Assessment) -> BundleDeploymentStatus {
        let before = self.condition(Type::Progressing).and_then(|condition| condition.observed_generation);
        if before != self.generation {
            let source = Source::parse(&deployment.spec.source).ok();
            let location = source.as_ref().and_then(Source::location);
            let message = format!("fetching and rendering {}", location.unwrap_or("the bundle"));
            self.no(Type::Unpacked, Reason::Unpacking, &message);
            self.yes(Type::Progressing, Reason::Unpacking, &message);
            self.no(Type::Ready, Reason::Unpacking, &message);
            remove_condition(&mut self.status.conditions, Type::Stalled);
            self.yes(Type::Reconciling, Reason::Unpacking, &message);
            self.status.candidate = None;
            self.status.pending_change = None;
            self.installed_before(&message);
        }
        self.running(found);
        self.finish(deployment)
    }

    /// Reports to kstatus whether a retry helps: `Reconciling` is True while the controller is at work or retries, `Stalled` while a
    /// user or an administrator has to act. Both repeat what `Progressing` says, are never True together, and are absent otherwise.
    /// A deadline that has passed counts, as a Deployment's does, although the rollout continues and may still succeed.
    pub(crate) fn stalled(&mut self, deployment: &BundleDeployment, found: &Assessment) {
        let Some(progressing) = self.condition(Type::Progressing) else { return };
        let is_at_work = progressing.status == ConditionStatus::True.as_str();
        let (reason, message) = (Reason::from_name(&progressing.reason), progressing.message.clone());
        let has_failed = matches!(reason, Some(Reason::RolledBack | Reason::ProgressDeadlineExceeded));
        let is_stalled =
            !is_at_work && has_failed || found.problem().is_some_and(|problem| self.needs_action(deployment, problem));
        for (kind, holds) in [(Type::Stalled, is_stalled), (Type::Reconciling, is_at_work && !is_stalled)] {
            match reason.filter(|_| holds) {
                Some(reason) => self.yes(kind, reason, &message),
                None => drop(remove_condition(&mut self.status.conditions, kind)),
            }
        }
    }

    /// Whether a problem lasts until a user or an administrator acts. Requirements of a release are often created at the same moment as the
    /// BundleDeployment, so a missing one counts only after a while. An object that is invalid counts when it is refused again: an API server
    /// may judge a custom resource by the schema that was just replaced.
    fn needs_action(&self, deployment: &BundleDeployment, problem: &Problem) -> bool {
        let remedy = problem.reason.remedy();
        if problem.terminal || matches!(remedy, Remedy::User | Remedy::Administrator) {
            return true;
        }
        let before = deployment.status.as_ref();
        let ready = before.and_then(|status| find_condition(&status.conditions, Type::Ready));
        let same = ready
            .filter(|ready| ready.reason == problem.reason.as_str() && ready.observed_generation == self.generation);
        let lasts = same.is_some_and(|ready| {
            let lasted = Duration::try_from(self.now.0.duration_since(ready.last_transition_time.0));
            lasted.is_ok_and(|lasted| lasted >= GRACE)
        });
        match problem.refusal {
            Some(Refusal::Validation) => same.is_some(),
            Some(Refusal::Source) => lasts,
            None => lasts && remedy == Remedy::Requirement,
        }
    }

    /// Reports a problem: `Progressing` is True while the controller retries, `Ready` repeats the cause.
    pub(crate) fn blocked(&mut self, problem: &Problem) {
        if problem.terminal {
            self.no(Type::Progressing, problem.reason, &problem.message);
        } else {
            self.yes(Type::Progressing, problem.reason, &problem.message);
        }
        self.no(Type::Ready, problem.reason, &problem.message);
    }

    /// The files of the bundle are awaited: nothing has failed, and the rollout continues when they are uploaded.
    pub(crate) fn upload_pending(&mut self, message: &str) {
        self.status.resolved_source = None;
        self.status.content_digest = None;
        self.no(Type::Unpacked, Reason::UploadPending, message);
        self.yes(Type::Progressing, Reason::UploadPending, message);
        self.no(Type::Ready, Reason::UploadPending, message);
    }

    pub(crate) fn not_unpacked(&mut self, problem: &Problem) {
        self.status.resolved_source = None;
        self.status.content_digest = None;
        // RukPak has one reason for all that can fail here; signatures and a limit on its cache are beyond it.
        let reason = match problem.reason {
            Reason::NoMatchingSignature | Reason::ContentCacheFull => problem.reason,
            _ => Reason::UnpackFailed,
        };
        self.no(Type::Unpacked, reason, &problem.message);
        self.blocked(problem);
    }

    /// The release could not be rendered or applied. The reason of `Installed` reports whether another release keeps running.
    pub(crate) fn failed(&mut self, problem: &Problem, before: Option<&ReleaseInUse>, tried: Option<&ReleaseFacts>) {
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

    pub(crate) fn rolling_out(&mut self, rollout: &RollingOut, waiting: &str, candidate: Option<&Candidate>) {
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
    pub(crate) fn too_late(&mut self, current: &Revision, found: &Assessment, terms: &RevisionTerms) {
        let limit = match terms.deadline {
            Some(deadline) if !found.problem().is_some_and(|problem| problem.terminal) => {
                format!("not complete and healthy within {} s: ", deadline.as_secs())
            }
            _ => String::new(),
        };
        let cause = current.message.as_deref().unwrap_or_default();
        let mut message = format!("{}revision {} failed: {limit}{cause}", prefix(found.candidate()), current.number);
        if let Some(problem) = &found.selection.rollback_problem {
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

    pub(crate) fn applied(
        &mut self,
        unhealthy: &[String],
        debounced: bool,
        current: &Revision,
        candidate: Option<&Candidate>,
    ) {
        self.installed();
        self.health(unhealthy, debounced);
        // While health is debounced, `Ready` follows the reported health, not what was reported about an earlier spec.
        let unhealthy = match self.condition(Type::Healthy).filter(|_| debounced) {
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
        self.no(Type::Progressing, Reason::Succeeded, "desired state outcome");
        match unhealthy {
            None => self.yes(Type::Ready, Reason::Succeeded, &healthy(current, candidate)),
            Some(unhealthy) => self.no(Type::Ready, Reason::Unhealthy, &unhealthy),
        }
    }
}
