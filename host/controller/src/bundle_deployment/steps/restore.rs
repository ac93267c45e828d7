//! Restore: the release of an earlier revision, from the record or the cache, else rendered again from its inputs.

use std::sync::Arc;

use chandler_api::Revision;
use chandler_core::{Digest, Release};
use chandler_decisions::{
    assessment::ReleaseFacts,
    revisions::{Candidate, Cause, Config},
};
use chandler_records::{Record, RecordError};
use chandler_releases::Releases;

use super::{
    super::subject::Subject,
    prepare::{self, PreparationPanicked, PrepareHandles},
    rerender::{RerenderError, Rerendered},
};

/// The release of an earlier revision. Only this step makes one.
pub(super) struct Restored {
    pub(super) release: Arc<Release>,
    pub(super) candidate: Candidate,
}

/// The release of an earlier revision is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// It is being rendered again.
    #[error("revision {0} is fetched and rendered again")]
    Pending(i64),
    #[error(transparent)]
    Rerender(#[from] RerenderError),
    #[error(transparent)]
    Panicked(#[from] PreparationPanicked),
}

/// The release of a revision, which runs for this cause.
pub(super) async fn restore(
    handles: &PrepareHandles<'_>,
    subject: &Subject,
    revision: &Revision,
    cause: Cause,
) -> Result<Restored, RestoreError> {
    let kept = match kept(revision, &subject.record, handles.releases).await {
        Ok(kept) => kept,
        Err(error) => {
            tracing::warn!(deployment = %subject.name(), %error, "a kept release cannot be read and is rendered again");
            None
        }
    };
    if let Some(release) = kept {
        let candidate = again(revision, &release, cause);
        return Ok(Restored { release, candidate });
    }
    let rerendered = prepare::rerendered(handles, &subject.deployment, revision).await;
    let Rerendered { rendered, provisioner, config, values } =
        rerendered.ok_or(RestoreError::Pending(revision.number))???;
    let candidate =
        Candidate { provisioner, config: config.recorded(), values, ..again(revision, &rendered.release, cause) };
    Ok(Restored { release: rendered.release, candidate })
}

/// The candidate of a revision whose release runs again.
pub(super) fn again(revision: &Revision, release: &Release, cause: Cause) -> Candidate {
    Candidate {
        cause,
        source: revision.source.clone(),
        content_digest: revision.content_digest.clone(),
        provisioner: revision.provisioner.clone(),
        install_namespace: revision.install_namespace.clone(),
        config: match &revision.config {
            Some(config) => Config::Known(config.clone()),
            None => Config::Digest(revision.config_digest.clone()),
        },
        own_config: revision.own_config_digest.clone(),
        spec_config: revision.spec_config_digest.clone(),
        values: revision.values_from.clone(),
        release: ReleaseFacts::of(release),
        approval: None,
    }
}

/// The release of a revision from the record; `None` if its bytes are not kept.
pub(super) async fn kept(
    revision: &Revision,
    record: &Record,
    releases: &Releases,
) -> Result<Option<Arc<Release>>, RecordError> {
    let Ok(digest) = revision.release_digest.parse::<Digest>() else { return Ok(None) };
    if !record.keeps(&digest) {
        return Ok(None);
    }
    // The cache holds a rendered release under the digest of its inputs, and a restored one under its own digest.
    let key = Digest::of(format!("release {digest}").as_bytes());
    if let Some(release) = releases.get(&key).await {
        return Ok(Some(release));
    }
    let Some(release) = record.release(&digest).await?.map(Arc::new) else { return Ok(None) };
    releases.insert(key, Arc::clone(&release)).await;
    Ok(Some(release))
}
