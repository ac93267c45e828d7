//! Choose: the release that should run. It is the spec's release, the release of a revision that the spec names or, after the spec's
//! release failed, the last one that succeeded.

use std::sync::Arc;

use chandler_api::{BundleDeployment, BundleWarning};
use chandler_core::{Digest, Release};
use chandler_decisions::{
    assessment::{Selection, Unpacked},
    bundle::{self, BundleFacts},
    problem::Problem,
    revisions::{self, Candidate, Cause},
    spec_error::SpecError,
};

use super::{
    super::subject::Subject,
    prepare::{self, PrepareFailure, PrepareHandles, Prepared, Update},
    restore::{self, RestoreError, Restored},
};

/// The release that should run, whether or not it may. Only this step makes one.
pub(in super::super) struct Chosen {
    pub(super) release: Arc<Release>,
    pub(super) candidate: Candidate,
    pub(super) unpacked: Option<Unpacked>,
    pub(super) bundle: BundleFacts,
    /// The update of the provisioner, which may run instead once it is approved.
    pub(super) update: Option<Update>,
    pub(super) rollback_problem: Option<Problem>,
}

/// Why no release could be chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChooseError {
    /// The release is being prepared.
    #[error("the release is being prepared")]
    Pending,
    #[error("{}", .0.error)]
    Prepare(Box<PrepareFailure>),
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The revision that the spec names is unavailable.
    #[error("{error}")]
    Restore { error: RestoreError, unpacked: Option<Box<Unpacked>> },
}

impl Chosen {
    fn new(release: Arc<Release>, candidate: Candidate, unpacked: Option<Unpacked>, about: &[BundleWarning]) -> Self {
        let bundle = bundle::facts_with(&release, about);
        Self { release, candidate, unpacked, bundle, update: None, rollback_problem: None }
    }

    /// What the status reports if a later step fails.
    pub(super) fn selection(&self) -> Selection {
        Selection {
            unpacked: self.unpacked.clone(),
            provisioner: Some(self.candidate.provisioner.clone()),
            candidate: Some(self.candidate.clone()),
            bundle: Some(self.bundle.clone()),
            rollback_problem: self.rollback_problem.clone(),
            ..Selection::default()
        }
    }
}

/// Chooses the release that should run.
pub(in super::super) async fn choose(handles: &PrepareHandles<'_>, subject: &Subject) -> Result<Chosen, ChooseError> {
    let deployment = &subject.deployment;
    if let Some(revision) = revisions::pinned(deployment)? {
        let unpacked = revision.content_digest.parse().ok().map(|content_digest: Digest| Unpacked {
            resolved_source: revision.source.clone(),
            content_digest,
            is_verified: false,
        });
        return match restore::restore(handles, subject, revision, Cause::Pinned(revision.number)).await {
            Ok(Restored { release, candidate }) => Ok(Chosen::new(release, candidate, unpacked, &[])),
            Err(RestoreError::Pending(_)) => Err(ChooseError::Pending),
            Err(error) => Err(ChooseError::Restore { error, unpacked: unpacked.map(Box::new) }),
        };
    }
    let prepared = prepare::described(handles, deployment).await.ok_or(ChooseError::Pending)?;
    let prepared = prepared.map_err(ChooseError::Prepare)?;
    match rollback(deployment, &prepared) {
        None => {
            let Prepared { release, made, candidate, unpacked, warnings, update, .. } = prepared;
            if let (Some(made), None) = (&made, &update) {
                handles.in_use.keep_only(&subject.name(), made);
            }
            Ok(Chosen { update, ..Chosen::new(release, candidate, Some(unpacked), &warnings) })
        }
        Some((good, cause)) => {
            let restored = restore::restore(handles, subject, good, cause).await;
            let Prepared { release, candidate, unpacked, warnings, .. } = prepared;
            match restored {
                Ok(Restored { release, candidate }) => Ok(Chosen::new(release, candidate, Some(unpacked), &warnings)),
                Err(RestoreError::Pending(_)) => Err(ChooseError::Pending),
                // The failed revision is retried: that is better than nothing.
                Err(error) => Ok(Chosen {
                    rollback_problem: Some(Problem::from(&error)),
                    ..Chosen::new(release, candidate, Some(unpacked), &warnings)
                }),
            }
        }
    }
}

/// The revision to roll back to if the release of the spec failed.
fn rollback<'a>(deployment: &'a BundleDeployment, prepared: &Prepared) -> Option<(&'a chandler_api::Revision, Cause)> {
    let namespace = &deployment.spec.install_namespace;
    let (failed, good) = revisions::rollback(deployment, prepared.release.digest().as_str(), namespace)?;
    Some((good, Cause::of_rollback(failed, good)))
}
