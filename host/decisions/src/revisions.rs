//! Which revision should run, and what the history records of each. The clock comes in as an argument.
//!
//! A revision begins when a release other than the current revision's should run. The decisions follow from the history and the
//! spec alone, so a controller that crashes at any point decides the same again.

use std::time::Duration;

use chandler_api::{
    ApprovedChange, BundleDeployment, BundleDeploymentStatus, BundleSource, OnFailure, Outcome, ProvisionerInUse,
    Revision, ValuesInUse,
    names::REQUESTED_AT_ANNOTATION,
    revision::{KEPT_CONFIG_BYTES, REVISION_MESSAGE_BYTES},
    rollout_settings::{HISTORY_LIMIT, MOST_HISTORY, ROLLBACK_DEADLINE_SECONDS},
};
use chandler_core::Digest;
use chandler_source::without_certificates;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::ResourceExt as _;
use serde_json::{Map, Value};

use super::{
    assessment::{ReleaseFacts, Selection},
    spec_error::SpecError,
    updates,
};
use crate::problem::Problem;

/// A release that should run, and its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Why this release should run.
    pub cause: Cause,
    /// The source, with tags replaced by digests.
    pub source: BundleSource,
    /// The digest of the tree.
    pub content_digest: String,
    /// The provisioner that rendered it.
    pub provisioner: ProvisionerInUse,
    /// The namespace for objects that name none.
    pub install_namespace: String,
    /// The configuration, the class's included.
    pub config: Config,
    /// The digest of the configuration without the class's; `None` if an earlier version did not record it.
    pub own_config: Option<String>,
    /// The digest of the spec's configuration and references, without the values of the objects that these name; `None` without references.
    pub spec_config: Option<String>,
    /// The objects that values of the configuration came from, in their versions.
    pub values: Vec<ValuesInUse>,
    /// The digest and the size of the release.
    pub release: ReleaseFacts,
    /// The approval of its rollout; `None` if it needs none, or no longer needs one.
    pub approval: Option<ApprovedChange>,
}

/// The configuration that a release was rendered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// All of it.
    Known(Map<String, Value>),
    /// Only its digest: it was too long to be kept, or holds values of Secrets.
    Digest(String),
}

#[cfg(test)]
impl Candidate {
    /// A candidate with this release, for tests in which the rest does not matter.
    pub fn of_release(digest: &Digest, install_namespace: &str) -> Self {
        Self {
            cause: Cause::Spec,
            source: BundleSource::default(),
            content_digest: String::new(),
            provisioner: ProvisionerInUse::default(),
            install_namespace: install_namespace.to_owned(),
            config: Config::Known(Map::new()),
            own_config: None,
            spec_config: None,
            values: Vec::new(),
            release: ReleaseFacts { digest: digest.clone(), objects: 1, stages: 1, version: None },
            approval: None,
        }
    }
}

/// Why a release should run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The spec describes it.
    Spec,
    /// The spec names the revision with this number.
    Pinned(i64),
    /// The release of the spec waits for approval; the current revision keeps running.
    Waiting(i64),
    /// The release of the spec failed.
    Failed {
        /// The revision that failed.
        failed: i64,
        /// Why it failed.
        message: String,
        /// The revision that runs again.
        to: i64,
    },
}

impl Cause {
    /// The cause of a rollback from a revision that failed to one that succeeded.
    pub fn of_rollback(failed: &Revision, good: &Revision) -> Self {
        Self::Failed {
            failed: failed.number,
            message: failed.message.clone().unwrap_or_default(),
            to: good.rollback_to.unwrap_or(good.number),
        }
    }

    /// The revision whose release runs again, if one does.
    fn rollback_to(&self) -> Option<i64> {
        match self {
            Self::Spec | Self::Waiting(_) => None,
            Self::Pinned(number) | Self::Failed { to: number, .. } => Some(*number),
        }
    }
}

/// How far a reconcile came with the candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RevisionStep<'a> {
    /// It is not complete and healthy; the text names what it waits for.
    Going(&'a str),
    /// It could not be applied.
    Refused(&'a Problem),
    /// Every object matches the release and is healthy.
    Complete,
}

/// What the spec sets about revisions, and the time of the reconcile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RevisionTerms {
    pub(crate) generation: Option<i64>,
    /// Whether the user requested this reconcile.
    pub(crate) requested: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) limit: usize,
    pub(crate) pinned: Option<i64>,
    pub(crate) now: Time,
}

impl RevisionTerms {
    /// The terms of a BundleDeployment.
    pub(crate) fn of(deployment: &BundleDeployment, now: Time) -> Self {
        let settings = deployment.spec.rollout.as_ref();
        let limit = settings.and_then(|settings| settings.history_limit).unwrap_or(HISTORY_LIMIT);
        Self {
            generation: deployment.metadata.generation,
            requested: request(deployment).is_some(),
            deadline: deadline(deployment),
            limit: usize::try_from(limit.clamp(1, MOST_HISTORY)).unwrap_or(1),
            pinned: pin(deployment),
            now,
        }
    }
}

/// The request for a reconcile that the controller has not handled yet.
pub fn request(deployment: &BundleDeployment) -> Option<&str> {
    let asked = deployment.annotations().get(REQUESTED_AT_ANNOTATION)?.as_str();
    let handled = deployment.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_deref());
    (handled != Some(asked)).then_some(asked)
}

/// The digest of everything that the user requests of a reconcile: the object, its spec and a request by annotation.
pub fn requested(deployment: &BundleDeployment) -> Digest {
    let generation = deployment.metadata.generation.unwrap_or_default().to_string();
    let request = request(deployment).unwrap_or_default();
    let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
    Digest::of([generation.as_str(), request, uid].join(" ").as_bytes())
}

/// How long a rollout may take.
pub fn deadline(deployment: &BundleDeployment) -> Option<Duration> {
    let set = deployment.spec.rollout.as_ref().and_then(|settings| settings.progress_deadline_seconds);
    let seconds = set.or_else(|| (on_failure(deployment) == OnFailure::Rollback).then_some(ROLLBACK_DEADLINE_SECONDS));
    u64::try_from(seconds?).ok().map(Duration::from_secs)
}

/// How long the current revision has been rolled out at this time.
pub fn elapsed(revision: &Revision, now: &Time) -> Duration {
    let began = revision.start_time.as_ref();
    began.and_then(|began| Duration::try_from(now.0.duration_since(began.0)).ok()).unwrap_or_default()
}

fn on_failure(deployment: &BundleDeployment) -> OnFailure {
    deployment.spec.rollout.as_ref().and_then(|settings| settings.on_failure).unwrap_or_default()
}

fn pin(deployment: &BundleDeployment) -> Option<i64> {
    deployment.spec.rollout.as_ref()?.to_revision
}

fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The revision that the spec names instead of describing one; `None` if it names none.
pub fn pinned(deployment: &BundleDeployment) -> Result<Option<&Revision>, SpecError> {
    let Some(number) = pin(deployment) else { return Ok(None) };
    let history = history(deployment);
    let pinned = history.iter().find(|revision| revision.number == number).ok_or_else(|| {
        let kept: Vec<String> = history.iter().map(|revision| revision.number.to_string()).collect();
        SpecError::RevisionNotKept { number, kept: if kept.is_empty() { "none".to_owned() } else { kept.join(", ") } }
    });
    pinned.map(Some)
}

/// The revision of the spec that failed, and the one to roll back to; `None` if the spec's should run.
///
/// A revision that failed is not tried again for the same spec, unless the user requests it.
pub fn rollback<'a>(
    deployment: &'a BundleDeployment,
    release: &str,
    install_namespace: &str,
) -> Option<(&'a Revision, &'a Revision)> {
    if on_failure(deployment) == OnFailure::Hold || request(deployment).is_some() {
        return None;
    }
    let wanted = |revision: &&Revision| is_of(revision, release, install_namespace);
    let history = history(deployment);
    let failed = history.iter().rfind(wanted)?;
    if failed.outcome != Outcome::Failed || failed.generation != deployment.metadata.generation {
        return None;
    }
    let good = history.iter().rfind(|revision| revision.outcome == Outcome::Succeeded && !wanted(revision))?;
    Some((failed, good))
}

/// Whether the release of the spec has just failed, so that the next reconcile rolls it back.
pub fn has_just_failed(deployment: &BundleDeployment, selection: &Selection) -> bool {
    let candidate = selection.candidate.as_ref().filter(|candidate| candidate.cause == Cause::Spec);
    selection.rollback_problem.is_none()
        && candidate.is_some_and(|candidate| {
            rollback(deployment, candidate.release.digest.as_str(), &candidate.install_namespace).is_some()
        })
}

/// Whether the release that runs is looked after before a new candidate is tried: one that an earlier reconcile did not bring to the
/// cluster. The checks of the candidate compare it with the cluster, and an object that is missing there, such as a CRD that another
/// client deleted, does not make it acceptable.
pub fn running_comes_first(deployment: &BundleDeployment, candidate: &Candidate) -> bool {
    let Some(status) = &deployment.status else { return false };
    let succeeded = status.history.last().is_some_and(|current| current.outcome == Outcome::Succeeded);
    succeeded && begins(&status.history, candidate) && status.observed_generation == deployment.metadata.generation
}

fn is_of(revision: &Revision, release: &str, install_namespace: &str) -> bool {
    revision.release_digest == release && revision.install_namespace == install_namespace
}

/// Whether the candidate is a release other than the current revision's.
pub fn begins(history: &[Revision], candidate: &Candidate) -> bool {
    !history
        .last()
        .is_some_and(|current| is_of(current, candidate.release.digest.as_str(), &candidate.install_namespace))
}

/// The number of the candidate's revision: the current one's, or the next.
pub fn number(deployment: &BundleDeployment, candidate: &Candidate) -> i64 {
    let known = deployment.status.as_ref().and_then(|status| status.revision).unwrap_or_default();
    match history(deployment).last() {
        Some(current) if !begins(history(deployment), candidate) => current.number,
        current => known.max(current.map_or(0, |current| current.number)).saturating_add(1),
    }
}

/// Whether the candidate ran before a newer release and is being rolled back to, or has been.
pub fn is_rollback(deployment: &BundleDeployment, candidate: &Candidate) -> bool {
    let came_back = |current: &Revision| current.rollback_to.is_some();
    let current = history(deployment).last().filter(|_| !begins(history(deployment), candidate));
    candidate.cause.rollback_to().is_some() || current.is_some_and(came_back)
}

/// Records in the history what a reconcile did with the candidate, and returns the current revision.
pub(crate) fn record<'a>(
    status: &'a mut BundleDeploymentStatus,
    candidate: &Candidate,
    step: RevisionStep<'_>,
    terms: &RevisionTerms,
) -> Option<&'a Revision> {
    let history = &mut status.history;
    if begins(history, candidate) {
        begin(history, status.revision.unwrap_or_default(), candidate, terms);
    }
    let current = history.last_mut()?;
    let approved = candidate.approval.is_some() && current.approval != candidate.approval;
    if approved {
        // A revision that began before its approval waited until now.
        current.start_time = Some(terms.now.clone());
        current.approval.clone_from(&candidate.approval);
    }
    let again = approved || terms.requested || current.generation != terms.generation;
    if current.outcome == Outcome::Failed && again {
        (current.outcome, current.message, current.completion_time) = (Outcome::RollingOut, None, None);
        current.start_time = Some(terms.now.clone());
    }
    made_from(current, candidate, terms);
    settle(current, step, terms);
    status.revision = Some(current.number);
    shorten(history, terms);
    history.last()
}

fn begin(history: &mut Vec<Revision>, known: i64, candidate: &Candidate, terms: &RevisionTerms) {
    let mut last = known;
    if let Some(current) = history.last_mut() {
        if current.outcome == Outcome::RollingOut {
            current.outcome = Outcome::Superseded;
            current.completion_time = Some(terms.now.clone());
        }
        last = last.max(current.number);
    }
    history.push(Revision {
        number: last.saturating_add(1),
        rollback_to: candidate.cause.rollback_to(),
        start_time: Some(terms.now.clone()),
        ..Revision::default()
    });
}

/// The same release may have other inputs than before, and can then be rendered again from these only.
fn made_from(current: &mut Revision, candidate: &Candidate, terms: &RevisionTerms) {
    current.generation = terms.generation;
    current.source = without_certificates(&candidate.source);
    current.content_digest.clone_from(&candidate.content_digest);
    current.provisioner = candidate.provisioner.clone();
    current.install_namespace.clone_from(&candidate.install_namespace);
    (current.config_digest, current.config) = match &candidate.config {
        Config::Known(config) => {
            let text = Value::Object(config.clone()).to_string();
            let kept = (text.len() <= KEPT_CONFIG_BYTES).then(|| config.clone());
            (Digest::of(text.as_bytes()).to_string(), kept)
        }
        Config::Digest(digest) => (digest.clone(), None),
    };
    current.own_config_digest.clone_from(&candidate.own_config);
    current.spec_config_digest.clone_from(&candidate.spec_config);
    current.values_from.clone_from(&candidate.values);
    current.version.clone_from(&candidate.release.version);
    current.release_digest = candidate.release.digest.to_string();
}

fn settle(current: &mut Revision, step: RevisionStep<'_>, terms: &RevisionTerms) {
    let late = terms.deadline.is_some_and(|deadline| elapsed(current, &terms.now) >= deadline);
    let failure = match step {
        RevisionStep::Going(waiting) if late => Some(waiting),
        RevisionStep::Refused(problem) if late || problem.terminal => Some(problem.message.as_str()),
        RevisionStep::Going(_) | RevisionStep::Refused(_) => None,
        RevisionStep::Complete => {
            if current.outcome != Outcome::Succeeded {
                (current.outcome, current.message) = (Outcome::Succeeded, None);
                current.completion_time = Some(terms.now.clone());
            }
            return;
        }
    };
    // A revision that succeeded once has no deadline while it is repaired; one that failed keeps its first cause.
    if let (Some(message), Outcome::RollingOut) = (failure, current.outcome) {
        current.outcome = Outcome::Failed;
        current.message = Some(cut(message, REVISION_MESSAGE_BYTES));
        current.completion_time = Some(terms.now.clone());
    }
}

/// Drops the oldest revisions beyond the limit, but none that may run again or must not run again, nor the one that an update of the class
/// replaced: an update that goes back runs it again.
fn shorten(history: &mut Vec<Revision>, terms: &RevisionTerms) {
    let replaced = |revision: &Revision| {
        let is_update = |last: &Revision| updates::is_of_class(revision, last);
        revision.outcome == Outcome::Succeeded && history.last().is_some_and(is_update)
    };
    let newest = |wanted: &dyn Fn(&Revision) -> bool| history.iter().rfind(|revision| wanted(revision));
    let kept: Vec<i64> = [
        history.last(),
        newest(&|revision| revision.outcome == Outcome::Succeeded),
        newest(&|revision| revision.outcome == Outcome::Failed && revision.generation == terms.generation),
        newest(&|revision| Some(revision.number) == terms.pinned),
        newest(&replaced),
    ]
    .into_iter()
    .flatten()
    .map(|revision| revision.number)
    .collect();
    let mut surplus = history.len().saturating_sub(terms.limit);
    history.retain(|revision| {
        let goes = surplus > 0 && !kept.contains(&revision.number);
        surplus -= usize::from(goes);
        !goes
    });
}

fn cut(message: &str, bytes: usize) -> String {
    let message = chandler_core::text::printable(message);
    let mut end = message.len().min(bytes);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
