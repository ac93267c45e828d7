//! Approve: a chosen release may run, or the release that runs keeps running while the chosen one waits for approval.

use std::sync::Arc;

use chandler_api::{ApprovedChange, PendingChange, approval::LISTED_FINDINGS};
use chandler_core::{Digest, Release};
use chandler_decisions::{
    approval,
    assessment::{Selection, Unpacked},
    bundle::{self, BundleFacts},
    drift, gates, privileges,
    problem::Problem,
    revisions::{Candidate, Cause},
    spec_error::SpecError,
    updates,
};
use chandler_rollout::{Preview, RolloutError, RolloutRequest};

use super::{
    super::{handles::ApproveHandles, subject::Subject},
    certificates::{self, CertificatesError},
    choose::Chosen,
    prepare::{PrepareHandles, Update},
    restore::{self, Restored},
};
use crate::targets::Key;

/// A release that may run. Only this step makes one, and a rollout takes nothing else.
pub(in super::super) struct Approved {
    pub(super) release: Arc<Release>,
    pub(super) candidate: Candidate,
    unpacked: Option<Unpacked>,
    bundle: BundleFacts,
    described: Option<(BundleFacts, Digest)>,
    pending: Option<PendingChange>,
    rollback_problem: Option<Problem>,
}

/// A chosen release may not run now, and no other release does.
#[derive(Debug)]
pub(in super::super) struct NotApproved {
    /// What is known about it.
    pub(in super::super) selection: Selection,
    pub(in super::super) error: ApproveError,
}

/// Why a chosen release may not run now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApproveError {
    /// The change waits for approval.
    #[error("the change waits for approval")]
    Required,
    /// Its changes could not be previewed, so they cannot be approved.
    #[error(transparent)]
    Preview(#[from] PreviewError),
}

/// The changes of a release could not be previewed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreviewError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    #[error(transparent)]
    Rollout(#[from] RolloutError),
}

impl Approved {
    pub(in super::super) fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    pub(in super::super) fn release(&self) -> &Arc<Release> {
        &self.release
    }

    /// What the status reports about the release.
    pub(in super::super) fn selection(&self) -> Selection {
        Selection {
            unpacked: self.unpacked.clone(),
            provisioner: Some(self.candidate.provisioner.clone()),
            candidate: Some(self.candidate.clone()),
            bundle: Some(self.bundle.clone()),
            described: self.described.clone(),
            rollback_problem: self.rollback_problem.clone(),
            pending: self.pending.clone(),
        }
    }

    fn of(chosen: Chosen) -> Self {
        let Chosen { release, candidate, unpacked, bundle, rollback_problem, update: _ } = chosen;
        Self { release, candidate, unpacked, bundle, described: None, pending: None, rollback_problem }
    }
}

/// The release that may run: the chosen one or, while that waits for approval, the one that runs.
pub(in super::super) async fn approve(
    handles: &ApproveHandles<'_>,
    restore_handles: &PrepareHandles<'_>,
    subject: &Subject,
    chosen: Chosen,
) -> Result<Approved, Box<NotApproved>> {
    let deployment = &subject.deployment;
    let gained = gained(restore_handles, subject, &chosen).await;
    if gained.is_empty() && !approval::is_needed(deployment, &chosen.candidate, subject.target_uid()) {
        return Ok(Box::pin(with_update(handles, subject, chosen)).await);
    }
    let preview = match preview(handles, subject, &chosen.candidate, &chosen.release).await {
        Ok(preview) => preview,
        Err(error) => return Err(Box::new(NotApproved { selection: chosen.selection(), error: error.into() })),
    };
    let change = approval::digest(deployment, &chosen.candidate, &preview, subject.target_uid());
    if let Some(approval) = given(handles, subject, &change) {
        let mut approved = Approved::of(chosen);
        approved.candidate.approval = Some(approval);
        return Ok(approved);
    }
    let provisioner = updates::change(subject.history(), &chosen.candidate);
    let mut pending =
        PendingChange { provisioner: Some(provisioner), ..approval::pending(&chosen.candidate, change, &preview) };
    if !gained.is_empty() {
        pending.findings.insert(0, approval::unseen(&gained));
    }
    let pending = with_target(subject, pending);
    let required = |chosen: &Chosen, pending| {
        let described = Some((chosen.bundle.clone(), chosen.release.digest().clone()));
        let selection = Selection { described, pending: Some(pending), ..chosen.selection() };
        Box::new(NotApproved { selection, error: ApproveError::Required })
    };
    let Some(current) = approval::runs_meanwhile(subject.history()) else {
        return Err(required(&chosen, pending));
    };
    match restore::restore(restore_handles, subject, current, Cause::Waiting(current.number)).await {
        Ok(Restored { release, candidate }) => {
            let warnings = chosen.bundle.warnings.clone();
            Ok(Approved {
                bundle: BundleFacts { warnings, ..bundle::facts(&release) },
                described: Some((chosen.bundle, chosen.release.digest().clone())),
                pending: Some(pending),
                unpacked: chosen.unpacked,
                rollback_problem: chosen.rollback_problem,
                release,
                candidate,
            })
        }
        Err(error) => {
            tracing::debug!(deployment = %subject.name(), %error, "the release that runs is left alone until approval");
            Err(required(&chosen, pending))
        }
    }
}

/// What is added to the release without a decision of its author: by an update of the provisioner, by the configuration of the class, or by
/// a component that renders more than before. If the previous release is unavailable, everything counts as added.
async fn gained(handles: &PrepareHandles<'_>, subject: &Subject, chosen: &Chosen) -> Vec<String> {
    let Some(current) = privileges::decided(subject.history(), &chosen.candidate) else { return Vec::new() };
    if privileges::gained(None, &chosen.release).is_empty() {
        return Vec::new();
    }
    let before = restore::restore(handles, subject, current, Cause::Waiting(current.number)).await;
    let before = before.inspect_err(|error| {
        tracing::debug!(deployment = %subject.name(), %error, "the release that its author decided about is unavailable");
    });
    let before = before.ok().map(|restored| restored.release);
    privileges::gained(before.as_deref(), &chosen.release)
}

/// The release that runs, with the update of its provisioner that waits for approval; or the update, once that is approved.
async fn with_update(handles: &ApproveHandles<'_>, subject: &Subject, mut chosen: Chosen) -> Approved {
    let due = |_: &Update| updates::is_due(subject.history(), &chosen.candidate);
    let Some(Update { release, candidate }) = chosen.update.take().filter(due) else { return Approved::of(chosen) };
    let deployment = &subject.deployment;
    let preview = match preview(handles, subject, &candidate, &release).await {
        Ok(preview) => preview,
        Err(error) => {
            tracing::debug!(deployment = %subject.name(), %error, "an update of the provisioner cannot be previewed");
            // What the last preview found stays in the status. It approves nothing.
            let pending = subject.stored.as_ref().and_then(|stored| stored.pending_change.clone());
            let pending = pending.filter(|pending| pending.cause == updates::cause(true));
            return Approved { pending, ..Approved::of(chosen) };
        }
    };
    let change = approval::update_digest(deployment, &candidate, &preview, subject.target_uid());
    if let Some(approval) = given(handles, subject, &change) {
        let bundle = BundleFacts { warnings: chosen.bundle.warnings.clone(), ..bundle::facts(&release) };
        let candidate = Candidate { approval: Some(approval), ..candidate };
        return Approved { release, candidate, bundle, ..Approved::of(chosen) };
    }
    let pending = PendingChange {
        cause: updates::cause(true),
        provisioner: Some(updates::change(subject.history(), &candidate)),
        ..approval::pending(&candidate, change, &preview)
    };
    Approved { pending: Some(with_target(subject, pending)), ..Approved::of(chosen) }
}

/// A change that waits, with the name of the other cluster that it is for, and no more findings than are listed.
fn with_target(subject: &Subject, mut pending: PendingChange) -> PendingChange {
    if let (Some(key), Some(uid)) = (Key::of(&subject.deployment), subject.target_uid()) {
        pending.findings.insert(0, approval::elsewhere(&key.secret(), uid));
    }
    pending.findings.truncate(LISTED_FINDINGS);
    pending
}

/// The approval of a change on the terms of the current spec, if someone gave it.
fn given(handles: &ApproveHandles<'_>, subject: &Subject, change: &str) -> Option<ApprovedChange> {
    let deployment = &subject.deployment;
    let approved_by = handles.approvals.of(deployment, change)?.spec.approved_by;
    let terms = Some(approval::terms(deployment, subject.target_uid()));
    Some(ApprovedChange { change: change.to_owned(), approved_by, terms })
}

/// What the candidate would change.
async fn preview(
    handles: &ApproveHandles<'_>,
    subject: &Subject,
    candidate: &Candidate,
    release: &Arc<Release>,
) -> Result<Preview, PreviewError> {
    let deployment = &subject.deployment;
    let owner = subject.owner(candidate, handles.accounts)?;
    let completed = certificates::complete(handles.certificates, deployment, &owner, release).await?;
    let (rules, drift) = (gates::rules(deployment), drift::policy_now(deployment));
    let request = RolloutRequest::new(&owner, &completed.release).rules(&rules).drift(drift);
    Ok(handles.certificates.rollout.preview(&request).await?)
}
