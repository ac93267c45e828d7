//! Derives the status from what a pass found. Pure: the clock comes in as an argument.

use std::time::Duration;

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ConditionType as Type, NewCondition, Reason, ReleaseInUse, set_condition,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    assessment::{Assessment, Reached, ReleaseFacts, RollingOut},
    decide::Clock,
};
use crate::problem::Problem;

/// How many objects a message names before it only counts.
const NAMED: usize = 5;

/// The status after a pass over `deployment`, from the status that it has and what the pass found.
pub(crate) fn derive(deployment: &BundleDeployment, found: &Assessment, now: Timestamp) -> BundleDeploymentStatus {
    let status = deployment.status.clone().unwrap_or_default();
    let had_release = status.release.clone();
    let mut draft = Draft { status, generation: deployment.metadata.generation, now: Time(whole_seconds(now)) };
    draft.status.observed_generation = draft.generation;
    draft.content(deployment, found);
    draft.bundle(found);
    match &found.reached {
        Reached::Suspended => draft.no(Type::Progressing, Reason::Suspended, "spec.suspend is true"),
        Reached::NoProvisioner(problem) | Reached::NotDeleted(problem) => draft.blocked(problem),
        Reached::NotUnpacked(problem) => draft.not_unpacked(problem),
        Reached::NotRendered(problem) => draft.failed(problem, had_release.as_ref(), None),
        Reached::NotApplied(problem) => draft.failed(problem, had_release.as_ref(), found.release.as_ref()),
        Reached::RollingOut(rollout) => {
            draft.release(found.release.as_ref());
            draft.rolling_out(rollout, deadline(deployment));
        }
        Reached::Applied(unhealthy) => {
            draft.release(found.release.as_ref());
            draft.applied(unhealthy);
        }
        Reached::Deleting(remaining) => {
            let message = format!("deleting the objects of the release; still there: {}", list(remaining));
            draft.yes(Type::Progressing, Reason::Deleting, &message);
            draft.no(Type::Ready, Reason::Deleting, &message);
        }
    }
    draft.status
}

/// How long the rollout of a status has gone on, and how long it may.
pub(crate) fn clock(deployment: &BundleDeployment, status: &BundleDeploymentStatus, now: Timestamp) -> Clock {
    let began = status.release.as_ref().and_then(|release| release.start_time.as_ref());
    let elapsed = began.map(|began| Duration::try_from(now.duration_since(began.0)).unwrap_or_default());
    let elapsed = elapsed.unwrap_or_default();
    Clock { elapsed, left: deadline(deployment).and_then(|deadline| deadline.checked_sub(elapsed)) }
}

fn deadline(deployment: &BundleDeployment) -> Option<Duration> {
    let seconds = deployment.spec.rollout.as_ref()?.progress_deadline_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
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

    /// Notes what was odd at the last rendering, and what the bundle of the release says of itself. Where the content cannot
    /// be rendered the cause stands in the conditions, and warnings about what was rendered before would mislead.
    fn bundle(&mut self, found: &Assessment) {
        if let Some(bundle) = &found.bundle {
            self.status.warnings.clone_from(&bundle.warnings);
            if matches!(found.reached, Reached::RollingOut(_) | Reached::Applied(_)) {
                self.status.bundle.clone_from(&bundle.description);
            }
        } else if matches!(&found.reached, Reached::NotRendered(problem) if problem.terminal) {
            self.status.warnings.clear();
        }
    }

    /// Notes the release. The clock of its rollout starts when it becomes another one.
    fn release(&mut self, facts: Option<&ReleaseFacts>) {
        let Some(facts) = facts else { return };
        let digest = facts.digest.to_string();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let start_time = match self.status.release.take() {
            Some(old) if old.digest == digest => old.start_time,
            _ => Some(self.now.clone()),
        };
        let (objects, stages) = (count(facts.objects), count(facts.stages));
        self.status.release = Some(ReleaseInUse { digest, objects, stages, start_time });
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
            self.no(Type::Healthy, Reason::InstallationStatusFalse, "Installed condition is false");
        }
        self.blocked(problem);
    }

    fn rolling_out(&mut self, rollout: &RollingOut, deadline: Option<Duration>) {
        let RollingOut { stage, stages, all_applied, waiting } = rollout;
        let message = format!("stage {stage} of {stages} waits for {}", list(waiting));
        if *all_applied {
            self.installed();
        } else {
            self.no(Type::Installed, Reason::Installing, &message);
        }
        self.no(Type::Healthy, Reason::Unhealthy, &list(waiting));
        if let Some(deadline) = deadline.filter(|deadline| self.is_over(*deadline)) {
            let message = format!("not complete and healthy within {} s: {message}", deadline.as_secs());
            self.no(Type::Progressing, Reason::ProgressDeadlineExceeded, &message);
            self.no(Type::Ready, Reason::ProgressDeadlineExceeded, &message);
        } else {
            self.yes(Type::Progressing, Reason::RollingOut, &message);
            self.no(Type::Ready, Reason::RollingOut, &message);
        }
    }

    fn is_over(&self, deadline: Duration) -> bool {
        let began = self.status.release.as_ref().and_then(|release| release.start_time.as_ref());
        began.is_some_and(|began| {
            Duration::try_from(self.now.0.duration_since(began.0)).is_ok_and(|elapsed| elapsed >= deadline)
        })
    }

    fn applied(&mut self, unhealthy: &[String]) {
        self.installed();
        self.no(Type::Progressing, Reason::Succeeded, "desired state reached");
        if unhealthy.is_empty() {
            self.yes(Type::Healthy, Reason::Healthy, "BundleDeployment is healthy");
            self.yes(Type::Ready, Reason::Succeeded, "BundleDeployment is healthy");
        } else {
            self.no(Type::Healthy, Reason::Unhealthy, &list(unhealthy));
            self.no(Type::Ready, Reason::Unhealthy, &list(unhealthy));
        }
    }

    fn installed(&mut self) {
        self.yes(Type::Installed, Reason::InstallationSucceeded, "every object of the release is applied");
    }
}

/// The first few, and how many more.
fn list(items: &[String]) -> String {
    let named = items.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

#[cfg(test)]
mod tests;
