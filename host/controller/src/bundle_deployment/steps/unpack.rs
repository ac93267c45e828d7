//! Source and tree: a source becomes a digest and a verified tree.

use chandler_api::{BundleDeployment, Revision};
use chandler_content::Tree;

use super::super::{assessment::Unpacked, source};
use crate::{context::Context, problem::Problem};

/// Content that was fetched and verified.
pub(super) struct UnpackedContent {
    pub(super) tree: Tree,
    pub(super) facts: Unpacked,
}

/// The content could not be fetched, verified or unpacked.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct UnpackError(pub(crate) Problem);

/// What sources use. Which handles that are differs by kind of source, so the whole context is behind it, and only here.
#[derive(Clone, Copy)]
pub(super) struct SourceHandles<'a>(&'a Context);

impl<'a> SourceHandles<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        Self(context)
    }
}

/// The content that a spec describes, from the cache where it is there.
pub(super) async fn unpack(
    handles: SourceHandles<'_>,
    deployment: &BundleDeployment,
) -> Result<UnpackedContent, UnpackError> {
    let (tree, facts) = source::unpack(deployment, handles.0).await.map_err(UnpackError)?;
    Ok(UnpackedContent { tree, facts })
}

/// The content of a revision: from the cache, else from its source.
pub(super) async fn unpack_again(
    handles: SourceHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Tree, UnpackError> {
    source::unpack_again(deployment, revision, handles.0).await.map_err(UnpackError)
}
