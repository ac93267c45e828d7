//! What runs and what waits of a BundleDeployment, from its status alone. Every view takes its states and sentences from here, so that
//! no two of them disagree.

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ChangeCause, ConditionType, Outcome, Reason, Remedy, Revision,
    find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::text::joined_lines;

/// What runs and what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// The name of the BundleDeployment.
    pub name: String,
    /// What is in the cluster.
    pub running: Running,
    /// How far the current spec is.
    pub next: Next,
    /// The revision that a rollback of the user keeps.
    pub pinned: Option<i64>,
    /// The version that the spec describes, or that is being rolled out, if it is not installed.
    pub pending: Option<String>,
    /// Whether an update of the provisioner waits for approval. The release that runs matches the spec meanwhile.
    pub has_provisioner_update: bool,
    /// Whether the rollout of the change that waits for approval would be refused now.
    pub would_be_refused: bool,
}

/// What is in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Running {
    /// Nothing was rolled out so far.
    Nothing,
    /// A complete release.
    Release {
        /// Its version.
        version: String,
        /// Its health, as the controller reports it.
        health: Health,
    },
    /// A revision is being rolled out.
    RollingOut {
        /// The version that it replaces, and for a rollback the one that it is from; `None` for the first one.
        from: Option<String>,
        /// Its version.
        to: String,
    },
    /// The objects are being deleted.
    Removing {
        /// The version.
        version: String,
    },
    /// The rollout of a revision failed, and nothing took its place.
    Failed {
        /// The version before it; `None` for the first one.
        from: Option<String>,
        /// Its version.
        to: String,
        /// The health of the objects.
        health: Health,
    },
}

/// The health of what runs, as the controller reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Every object is healthy.
    Healthy,
    /// Some objects are not; the message names them.
    Unhealthy(String),
    /// The controller could not find out; the message says why.
    Unknown(String),
}

/// A [`Health`] in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HealthWord {
    /// Every object is healthy.
    Healthy,
    /// Some objects are not.
    Unhealthy,
    /// The controller could not find out.
    Unknown,
}

/// How far the current spec is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is rolled out.
    Done,
    /// The BundleDeployment is being deleted.
    Deleting {
        /// The reason of `Progressing`, if a problem keeps the objects from being deleted.
        problem: Option<String>,
        /// Whether the problem lasts until a user or an administrator fixes the cause.
        needs_action: bool,
        /// What the deletion waits for.
        message: String,
    },
    /// The controller has not observed it.
    Unobserved,
    /// The controller works on it, or waits for something that needs no decision.
    Working {
        /// The reason of `Progressing`, if it is set.
        reason: Option<String>,
        /// What it waits for.
        message: String,
    },
    /// Nothing is wrong: a user has asked for this pause, and decides when it ends.
    Waits(Decision),
    /// It is not rolled out until a user or an administrator fixes the cause.
    Blocked {
        /// The reason of `Progressing`.
        reason: String,
        /// The message of `Progressing`.
        message: String,
        /// Whether the controller still looks whether the cause is gone, so that the status may be a few seconds old.
        is_retried: bool,
    },
}

/// A decision that a rollout waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A change needs approval.
    Approve,
    /// The BundleDeployment is suspended.
    Resume,
}

impl Decision {
    /// The reason in the conditions.
    pub fn reason(self) -> Reason {
        match self {
            Self::Approve => Reason::ApprovalRequired,
            Self::Resume => Reason::Suspended,
        }
    }
}

impl Health {
    /// The health in one word.
    pub fn word(&self) -> HealthWord {
        match self {
            Self::Healthy => HealthWord::Healthy,
            Self::Unhealthy(_) => HealthWord::Unhealthy,
            Self::Unknown(_) => HealthWord::Unknown,
        }
    }
}

impl HealthWord {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }
}

impl Overview {
    /// Derives it from the spec and the status.
    pub fn of(deployment: &BundleDeployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let pending_change = status.pending_change.as_ref();
        Self {
            name: deployment.metadata.name.clone().unwrap_or_default(),
            running: running(deployment, &status),
            next: next(deployment, &status),
            pinned: deployment.spec.rollout.as_ref().and_then(|rollout| rollout.to_revision),
            pending: pending(&status),
            has_provisioner_update: pending_change.is_some_and(|it| it.cause == Some(ChangeCause::Provisioner)),
            would_be_refused: pending_change.is_some_and(|it| !it.refusals.is_empty()),
        }
    }

    /// The health of what runs; `None` if nothing runs, and while it is being replaced.
    pub fn health(&self) -> Option<&Health> {
        match &self.running {
            Running::Release { health, .. } | Running::Failed { health, .. } => Some(health),
            Running::Nothing | Running::RollingOut { .. } | Running::Removing { .. } => None,
        }
    }

    /// Whether a complete release runs and is healthy.
    pub fn runs_healthy(&self) -> bool {
        matches!(&self.running, Running::Release { health: Health::Healthy, .. })
    }

    /// Whether the current spec is rolled out and healthy.
    pub fn is_ready(&self) -> bool {
        self.next == Next::Done && self.runs_healthy()
    }

    /// Whether a change waits for a decision of a user, and nothing is wrong.
    pub fn only_waits(&self) -> bool {
        matches!(self.next, Next::Waits(_)) && self.health().is_none_or(|health| *health == Health::Healthy)
    }

    /// Whether a user or an administrator has to act before the current spec is rolled out, or before the deletion continues.
    pub fn needs_action(&self) -> bool {
        matches!(self.next, Next::Waits(_) | Next::Blocked { .. } | Next::Deleting { needs_action: true, .. })
    }

    /// A sentence about what runs.
    pub fn runs(&self) -> String {
        self.runs_with(after_colon)
    }

    /// A sentence about what waits, or about what keeps the current spec from running; `None` if nothing does.
    pub fn waits(&self) -> Option<String> {
        self.waits_with(after_colon)
    }

    /// Both sentences.
    pub fn text(&self) -> String {
        self.lines(after_colon).join("; ")
    }

    /// Both sentences without the messages of conditions, each on a line of its own.
    pub fn brief_lines(&self) -> Vec<String> {
        self.lines(|_| String::new())
    }

    fn lines(&self, message: fn(&str) -> String) -> Vec<String> {
        std::iter::once(self.runs_with(message)).chain(self.waits_with(message)).collect()
    }

    fn runs_with(&self, message: fn(&str) -> String) -> String {
        let over = |from: &Option<String>| from.as_ref().map(|from| format!(" over {from}")).unwrap_or_default();
        match &self.running {
            Running::Nothing => "nothing runs yet".to_owned(),
            Running::Release { version, health } => match health {
                Health::Healthy => format!("{version} runs and is healthy"),
                Health::Unhealthy(cause) => format!("{version} runs and is not healthy{}", message(cause)),
                Health::Unknown(cause) => format!("{version} runs, and its health is unknown{}", message(cause)),
            },
            Running::RollingOut { from, to } if from.as_ref() == Some(to) => {
                format!("a change of {to} is being rolled out")
            }
            Running::RollingOut { from, to } => format!("{to} is being rolled out{}", over(from)),
            Running::Removing { version } => format!("the objects of {version} are being deleted"),
            Running::Failed { from, to, health } => {
                let health = match health {
                    Health::Healthy => "its objects are healthy".to_owned(),
                    Health::Unhealthy(cause) => format!("its objects are not healthy{}", message(cause)),
                    Health::Unknown(cause) => format!("the health of its objects is unknown{}", message(cause)),
                };
                if from.as_ref() == Some(to) {
                    format!("a change of {to} was rolled out and failed; {health}")
                } else {
                    format!("{to} was rolled out{} and failed; {health}", over(from))
                }
            }
        }
    }

    fn waits_with(&self, message: fn(&str) -> String) -> Option<String> {
        let name = &self.name;
        let waits = match &self.next {
            Next::Done => {
                let update = format!("an update of its provisioner waits for your approval: `chandler approve {name}`");
                self.has_provisioner_update.then_some(update)
            }
            Next::Deleting { problem: None, message: cause, .. } => {
                Some(format!("it is being deleted{}", message(cause)))
            }
            Next::Deleting { problem: Some(reason), needs_action: true, message: cause } => {
                Some(format!("its deletion needs action: {reason}{}", message(cause)))
            }
            Next::Deleting { problem: Some(reason), needs_action: false, message: cause } => {
                Some(format!("it is being deleted, and the controller retries ({reason}){}", message(cause)))
            }
            Next::Unobserved => Some("the controller has not observed the current spec yet".to_owned()),
            Next::Working { reason: None, message: cause } => Some(format!("it waits for {cause}")),
            Next::Working { reason: Some(reason), message: cause } => Some(self.works(reason, &message(cause))),
            Next::Waits(Decision::Approve) if self.would_be_refused => Some(format!(
                "{} waits for your approval, and its rollout would be refused now: `chandler diff {name}` shows why",
                self.change()
            )),
            Next::Waits(Decision::Approve) => {
                Some(format!("{} waits for your approval: `chandler approve {name}`", self.change()))
            }
            Next::Waits(Decision::Resume) => {
                let stays = if self.running == Running::Nothing { "nothing" } else { "no newer spec" };
                Some(format!("it is suspended, and {stays} is rolled out: `chandler resume {name}` continues"))
            }
            Next::Blocked { reason, message: cause, .. } if reason == Reason::RolledBack.as_str() => Some(format!(
                "{} failed and was rolled back; `chandler reconcile {name}` tries it again{}",
                self.change(),
                message(cause)
            )),
            Next::Blocked { reason, message: cause, .. } => {
                Some(format!("{} needs action: {reason}{}", self.change(), message(cause)))
            }
        };
        let both: Vec<String> = [waits, self.pinned_text()].into_iter().flatten().collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    /// A sentence about a rollout that is not complete, which the controller continues or tries again.
    fn works(&self, reason: &str, message: &str) -> String {
        let reason_of = Reason::from_name(reason);
        if reason_of == Some(Reason::UploadPending) {
            return format!("it waits for an upload of its files: `chandler upgrade {} DIR --upload`", self.name);
        }
        match reason_of.map(Reason::remedy) {
            // The controller looks again, and nothing changes until the cause is gone.
            Some(Remedy::Requirement | Remedy::User | Remedy::Administrator) => {
                format!("{} cannot be rolled out yet ({reason}){message}", self.change())
            }
            Some(Remedy::TimeOrAction) => format!("the controller retries ({reason}){message}"),
            _ => format!("the controller is working ({reason}){message}"),
        }
    }

    /// A sentence about a rollback of the user that keeps a revision; `None` if there is none.
    pub fn pinned_text(&self) -> Option<String> {
        let (number, name) = (self.pinned?, &self.name);
        Some(format!("pinned to revision {number} by your rollback; `chandler rollback {name} --cancel` ends it"))
    }

    /// What the current spec would bring.
    fn change(&self) -> String {
        let installed = match &self.running {
            Running::Release { version, .. } => Some(version),
            Running::RollingOut { from, .. } | Running::Failed { from, .. } => from.as_ref(),
            Running::Nothing | Running::Removing { .. } => None,
        };
        match &self.pending {
            Some(pending) if Some(pending) != installed => pending.clone(),
            Some(pending) => format!("a change of {pending}"),
            None => "the current spec".to_owned(),
        }
    }
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", joined_lines(message)) }
}

fn running(deployment: &BundleDeployment, status: &BundleDeploymentStatus) -> Running {
    let condition = |kind| find_condition(&status.conditions, kind);
    let is_true = |kind| condition(kind).is_some_and(|condition| condition.status == "True");
    let (current, before) = match status.history.split_last() {
        Some((current, before)) => (Some(current), before),
        None => (None, <&[Revision]>::default()),
    };
    // Statuses of RukPak have no history.
    let described = || status.bundle.as_ref().and_then(|bundle| bundle.version.clone());
    let version = || current.map(version).or_else(described).unwrap_or_else(|| "the release".to_owned());
    let is_deleting = |it: &Condition| it.reason == Reason::Deleting.as_str();
    if deployment.metadata.deletion_timestamp.is_some()
        && condition(ConditionType::Progressing).is_some_and(is_deleting)
    {
        return if current.is_none() { Running::Nothing } else { Running::Removing { version: version() } };
    }
    if is_true(ConditionType::Ready) {
        return Running::Release { version: version(), health: Health::Healthy };
    }
    let health = match condition(ConditionType::Healthy) {
        Some(healthy) if healthy.status == "True" => Health::Healthy,
        Some(healthy) if healthy.status == "False" => Health::Unhealthy(healthy.message.clone()),
        Some(healthy) => Health::Unknown(healthy.message.clone()),
        None => Health::Unknown(String::new()),
    };
    let is_rollback = current.is_some_and(|current| current.rollback_to.is_some());
    let from = || {
        let replaced = before.iter().rfind(|revision| is_rollback || revision.outcome == Outcome::Succeeded);
        replaced.map(self::version)
    };
    match current.map(|current| current.outcome) {
        None if !is_true(ConditionType::Installed) => Running::Nothing,
        None | Some(Outcome::Succeeded) => Running::Release { version: version(), health },
        Some(Outcome::RollingOut | Outcome::Superseded) => Running::RollingOut { from: from(), to: version() },
        Some(Outcome::Failed) => Running::Failed { from: from(), to: version(), health },
    }
}

fn next(deployment: &BundleDeployment, status: &BundleDeploymentStatus) -> Next {
    let condition = |kind| find_condition(&status.conditions, kind);
    let is_observed = status.observed_generation >= deployment.metadata.generation;
    let progressing = condition(ConditionType::Progressing);
    if deployment.metadata.deletion_timestamp.is_some() {
        // Until the controller has observed the deletion, the conditions describe what was before.
        let progressing = progressing.filter(|_| is_observed);
        let message = progressing.map(|it| it.message.clone()).unwrap_or_default();
        let problem = progressing.map(|it| it.reason.clone()).filter(|reason| reason != Reason::Deleting.as_str());
        let stalled = condition(ConditionType::Stalled).is_some_and(|stalled| stalled.status == "True");
        return Next::Deleting { needs_action: problem.is_some() && stalled, problem, message };
    }
    if deployment.spec.suspend {
        return Next::Waits(Decision::Resume);
    }
    if deployment.status.is_none() || !is_observed {
        return Next::Unobserved;
    }
    let ready = condition(ConditionType::Ready);
    if ready.is_some_and(|ready| ready.status == "True") {
        return Next::Done;
    }
    let Some(progressing) = progressing else {
        return Next::Working {
            reason: None,
            message: waiting_for(status).unwrap_or_else(|| "the controller".to_owned()),
        };
    };
    let stalled = condition(ConditionType::Stalled).is_some_and(|stalled| stalled.status == "True");
    let is_retried = progressing.status == "True";
    if progressing.reason == Reason::Succeeded.as_str() && !stalled {
        return Next::Done;
    }
    match Reason::from_name(&progressing.reason).filter(|_| !is_retried) {
        Some(Reason::ApprovalRequired) => return Next::Waits(Decision::Approve),
        // The suspension has ended, and the controller has not noticed it yet.
        Some(Reason::Suspended) => return Next::Unobserved,
        _ => {}
    }
    let (reason, message) = (progressing.reason.clone(), progressing.message.clone());
    if !is_retried || stalled {
        return Next::Blocked { reason, message, is_retried };
    }
    let message = waiting_for(status).unwrap_or(message);
    let message = if message.is_empty() { "the controller".to_owned() } else { message };
    Next::Working { reason: Some(reason), message }
}

/// The message of the first condition that does not hold. Each waits for the ones before it.
fn waiting_for(status: &BundleDeploymentStatus) -> Option<String> {
    let in_order =
        [ConditionType::Unpacked, ConditionType::Installed, ConditionType::Healthy, ConditionType::Progressing];
    let found = in_order.into_iter().filter_map(|kind| find_condition(&status.conditions, kind));
    let is_unmet = |condition: &&Condition| condition.status != "True" && !condition.message.is_empty();
    found.into_iter().find(is_unmet).map(|condition| condition.message.clone())
}

/// The version that is not installed yet: of a candidate that is not a revision, or of the current revision.
fn pending(status: &BundleDeploymentStatus) -> Option<String> {
    if let Some(candidate) = &status.candidate {
        return candidate.version.clone().or_else(|| Some(shortened(&candidate.release_digest)));
    }
    let current = status.history.last()?;
    if matches!(current.outcome, Outcome::RollingOut | Outcome::Failed) {
        return Some(version(current));
    }
    // The controller rolled back to an earlier release: the spec describes the one that failed.
    let progressing = find_condition(&status.conditions, ConditionType::Progressing)?;
    let failed = status.history.iter().rfind(|revision| revision.outcome == Outcome::Failed)?;
    (progressing.reason == Reason::RolledBack.as_str()).then(|| version(failed))
}

/// The version of a revision; of a bundle without one, the digest of its content, or the number of the revision if that is unknown.
pub fn version(revision: &Revision) -> String {
    match &revision.version {
        Some(version) => version.clone(),
        None if revision.content_digest.is_empty() => format!("revision {}", revision.number),
        None => shortened(&revision.content_digest),
    }
}

fn shortened(digest: &str) -> String {
    const DIGITS: usize = "sha256:".len() + 7;
    digest.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests;
