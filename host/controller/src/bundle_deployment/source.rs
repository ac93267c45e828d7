//! The first step: a source becomes a digest and a verified tree.

use chandler_api::{BundleDeployment, BundleSource, Reason, Revision};
use chandler_content::Tree;
use chandler_core::{Content as _, Digest};
use chandler_source::{Obtained, Source, SourceError, Wanted, describe};
use kube::ResourceExt as _;

use super::{assessment::Unpacked, revisions};
use crate::{
    context::Context,
    problem::{self, Problem},
};

/// Fetches the content that the spec names, or reads it from the cache.
pub(crate) async fn unpack(deployment: &BundleDeployment, context: &Context) -> Result<(Tree, Unpacked), Problem> {
    let failed = |error: SourceError| problem::source(Reason::UnpackFailed, &error);
    let source = Source::parse(&deployment.spec.source).map_err(|error| failed(error.into()))?;
    let again = revisions::request(deployment).is_some();
    let wanted = Wanted {
        deployment: &deployment.name_any(),
        source: &source,
        resolutions: &context.memory.resolutions,
        interval: (!again).then_some(context.options.image_poll_interval),
        in_use: in_use(deployment),
    };
    let Obtained { pinned, tree } = context.sources.obtain(&wanted).await.map_err(failed)?;
    let content_digest = tree.digest().clone();
    Ok((tree, Unpacked { resolved_source: pinned, content_digest }))
}

/// Reads the content of a revision from the cache, or fetches it again from its pinned source.
pub(crate) async fn unpack_again(
    deployment: &BundleDeployment,
    revision: &Revision,
    context: &Context,
) -> Result<Tree, Problem> {
    let digest = revision.content_digest.parse::<Digest>().ok();
    if let Some(tree) = digest.and_then(|digest| context.images.store().tree(&digest)) {
        return Ok(tree);
    }
    let failed = |error: SourceError| problem::source(Reason::RevisionUnavailable, &error);
    let unavailable = |message: String| Err(Problem::lasting(Reason::RevisionUnavailable, message));
    let mut source = Source::parse(&revision.source).map_err(|error| failed(error.into()))?;
    if source.can_move() {
        return unavailable(format!("its {} is not named by a digest", describe(&revision.source)));
    }
    if let Ok(current) = Source::parse(&deployment.spec.source) {
        source = source.with_certificates_of(&current);
    }
    let wanted = Wanted {
        deployment: &deployment.name_any(),
        source: &source,
        resolutions: &context.memory.resolutions,
        interval: None,
        in_use: None,
    };
    let Obtained { tree, .. } = context.sources.obtain(&wanted).await.map_err(failed)?;
    if tree.digest().as_str() == revision.content_digest {
        return Ok(tree);
    }
    unavailable(format!("its content was {}; its source holds {} now", revision.content_digest, tree.digest()))
}

/// The source of the current revision, if it was rendered from this very specification.
fn in_use(deployment: &BundleDeployment) -> Option<&BundleSource> {
    let current = deployment.status.as_ref()?.history.last()?;
    (current.generation == deployment.metadata.generation).then_some(&current.source)
}
