//! Source and tree: a source becomes a digest and a verified tree.

use std::time::{Duration, Instant};

use chandler_api::{BundleDeployment, BundleSource, Reason, Revision};
use chandler_content::{ContentError, Store, Tree};
use chandler_core::{Content as _, Digest};
use chandler_decisions::{assessment::Unpacked, problem::Problem, revisions};
use chandler_monitoring::{Metrics, Step};
use chandler_source::{Grantee, Obtained, Resolutions, Source, SourceError, Sources, Wanted, describe};
use kube::ResourceExt as _;

use super::super::{polls::sources_for, preparer::Preparer};
use crate::{growth::Growth, monitoring::note_fetch, problem};

/// Content that was fetched and verified.
pub(super) struct UnpackedContent {
    pub(super) tree: Tree,
    pub(super) facts: Unpacked,
}

/// The content could not be fetched, verified or unpacked.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct UnpackError(pub(crate) Problem);

/// What fetching content uses.
pub(super) struct SourceHandles<'a> {
    sources: Sources,
    store: &'a Store,
    resolutions: &'a Resolutions,
    poll_interval: Duration,
    metrics: &'a Metrics,
    growth: &'a Growth,
    /// The budget of the cache in bytes.
    budget: u64,
    /// Whether files can be uploaded.
    serves_content: bool,
}

impl<'a> SourceHandles<'a> {
    pub(super) fn of(preparer: &'a Preparer, deployment: &BundleDeployment) -> Self {
        let Preparer { components, memory, cluster, .. } = preparer;
        let options = &cluster.options;
        Self {
            sources: sources_for(deployment, preparer),
            store: components.images.store(),
            resolutions: &memory.resolutions,
            poll_interval: options.image_poll_interval,
            metrics: &cluster.metrics,
            growth: &memory.growth,
            budget: options.unused_content_bytes(),
            serves_content: options.content.is_some(),
        }
    }
}

impl SourceHandles<'_> {
    /// Why the content of the spec is not available. An upload is awaited only where it is possible.
    fn problem(&self, error: &SourceError) -> Problem {
        let problem = problem::unpack(error);
        if problem.reason != Reason::UploadPending || self.serves_content {
            return problem;
        }
        let message =
            format!("{}; the controller has no content service: start it with --content-address", problem.message);
        Problem { reason: Reason::UnpackFailed, message, ..problem }
    }
}

/// Fetches the content that the spec names, or reads it from the cache.
#[tracing::instrument(target = "chandler::trace", name = "source", skip_all)]
pub(super) async fn unpack(
    handles: &SourceHandles<'_>,
    deployment: &BundleDeployment,
) -> Result<UnpackedContent, UnpackError> {
    let failed = |error: SourceError| UnpackError(handles.problem(&error));
    let source = Source::parse(&deployment.spec.source).map_err(|error| failed(error.into()))?;
    if matches!(source, Source::Upload(_)) {
        forget_earlier_upload(handles, deployment).await.map_err(|error| failed(error.into()))?;
    }
    let again = revisions::request(deployment).is_some();
    let wanted = Wanted {
        grantee: Grantee::BundleDeployment(&deployment.name_any()),
        source: &source,
        resolutions: handles.resolutions,
        interval: (!again).then_some(handles.poll_interval),
        in_use: in_use(deployment),
    };
    let Obtained { pinned, tree, is_verified } =
        obtain(handles, deployment, &deployment.spec.source, &wanted).await.map_err(failed)?;
    let content_digest = tree.digest().clone();
    Ok(UnpackedContent { tree, facts: Unpacked { resolved_source: pinned, content_digest, is_verified } })
}

/// Obtains the content of a source, and measures that.
async fn obtain(
    handles: &SourceHandles<'_>,
    deployment: &BundleDeployment,
    source: &BundleSource,
    wanted: &Wanted<'_>,
) -> Result<Obtained, SourceError> {
    let began = Instant::now();
    let obtained =
        handles.sources.obtain(wanted).await.map_err(|failed| {
            if was_uploaded(deployment, source) { failed.error.after_an_upload() } else { failed.error }
        });
    // Nothing is fetched while an upload is awaited.
    if !obtained.as_ref().is_err_and(SourceError::is_pending) {
        note_fetch(handles.metrics, source, began, obtained.as_ref().err().map(SourceError::reason));
    }
    handles.metrics.stepped(Step::Fetch, began.elapsed());
    let obtained = obtained?;
    handles.growth.add(obtained.tree.digest(), obtained.tree.total_bytes(), handles.budget);
    Ok(obtained)
}

/// Whether a revision was rendered from the upload that this source names: then the files were there, and got lost.
fn was_uploaded(deployment: &BundleDeployment, source: &BundleSource) -> bool {
    let Some(wanted) = &source.upload else { return false };
    let history = deployment.status.iter().flat_map(|status| &status.history);
    let mut uploads = history.filter_map(|revision| revision.source.upload.as_ref());
    uploads.any(|upload| wanted.digest.is_none() || wanted.digest == upload.digest)
}

/// Forgets what was uploaded for an earlier BundleDeployment of the same name.
async fn forget_earlier_upload(handles: &SourceHandles<'_>, deployment: &BundleDeployment) -> Result<(), ContentError> {
    let (store, name, uid) = (handles.store.clone(), deployment.name_any(), deployment.uid().unwrap_or_default());
    let forgotten = tokio::task::spawn_blocking(move || store.retain_upload_of(&name, &uid)).await;
    Ok(forgotten.unwrap_or(Ok(()))?)
}

/// Reads the content of a revision from the cache, or fetches it again from its pinned source.
pub(super) async fn unpack_again(
    handles: &SourceHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Tree, UnpackError> {
    let failed = |error: SourceError| UnpackError(problem::source(Reason::RevisionUnavailable, &error));
    let unavailable = |message: String| Err(UnpackError(Problem::terminal(Reason::RevisionUnavailable, message)));
    let digest = revision.content_digest.parse::<Digest>().ok();
    let stored = || digest.and_then(|digest| handles.store.tree(&digest));
    let mut source = match Source::parse(&revision.source) {
        Ok(source) => source,
        Err(error) => return stored().ok_or_else(|| failed(error.into())),
    };
    if let Ok(current) = Source::parse(&deployment.spec.source) {
        source = source.with_certificates_of(&current);
    }
    // Content that was installed under another policy, or without one, must satisfy the current policy.
    if !handles.sources.is_verified(&source)
        && let Some(tree) = stored()
    {
        return Ok(tree);
    }
    if source.can_move() {
        return unavailable(format!("its {} is not named by a digest", describe(&revision.source)));
    }
    let wanted = Wanted {
        grantee: Grantee::BundleDeployment(&deployment.name_any()),
        source: &source,
        resolutions: handles.resolutions,
        interval: None,
        in_use: None,
    };
    let Obtained { tree, .. } = obtain(handles, deployment, &revision.source, &wanted).await.map_err(failed)?;
    if tree.digest().as_str() == revision.content_digest {
        return Ok(tree);
    }
    unavailable(format!("its content was {}; its source holds {} now", revision.content_digest, tree.digest()))
}

/// The source of the current revision, if it was rendered from this exact specification.
fn in_use(deployment: &BundleDeployment) -> Option<&BundleSource> {
    let current = deployment.status.as_ref()?.history.last()?;
    (current.generation == deployment.metadata.generation).then_some(&current.source)
}
