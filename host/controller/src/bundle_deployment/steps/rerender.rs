//! Renders the release of an earlier revision again, from what the history keeps of it.
//!
//! Whatever may have changed since, the digest of the release decides: a release with another digest is not that revision.

use chandler_api::{BundleDeployment, ProvisionerInUse, Revision};
use chandler_core::{Digest, Fact};

use super::{
    super::{decide::config::Config, handles::RenderHandles},
    class::{self, ClassError, ResolvedClass},
    render::{self, RenderError, RenderInput, Rendered},
    unpack::{self, SourceHandles, UnpackError},
};
use crate::provisioner_class::Classes;

/// A revision's release, with the configuration that it was rendered with.
pub(crate) struct Rerendered {
    pub(crate) rendered: Rendered,
    pub(crate) provisioner: ProvisionerInUse,
    pub(crate) config: Config,
}

/// The release of a revision cannot be rendered again.
#[derive(Debug, thiserror::Error)]
#[error("revision {revision}: {cause}")]
pub(crate) struct RerenderError {
    pub(crate) revision: i64,
    pub(crate) cause: RerenderCause,
}

/// Why the release of a revision cannot be rendered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RerenderCause {
    #[error(transparent)]
    Class(#[from] ClassError),
    #[error(
        "its configuration was too long to be kept, and is another one than that of the spec: set spec.config to what it was"
    )]
    ConfigNotKept,
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error("{0}")]
    Differs(String),
}

/// Renders the release of a revision again.
pub(super) async fn rerender(
    classes: &Classes,
    source: SourceHandles<'_>,
    handles: &RenderHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Rerendered, RerenderError> {
    let result = rerendered(classes, source, handles, deployment, revision).await;
    result.map_err(|cause| RerenderError { revision: revision.number, cause })
}

async fn rerendered(
    classes: &Classes,
    source: SourceHandles<'_>,
    handles: &RenderHandles<'_>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Rerendered, RerenderCause> {
    let ResolvedClass { class, in_use } = class::resolve(classes, &revision.provisioner.class).await?;
    let config = Config::of_revision(revision, &class.defaults, deployment.spec.config.as_ref())
        .ok_or(RerenderCause::ConfigNotKept)?;
    let tree = unpack::unpack_again(source, deployment, revision).await?;
    let (name, install_namespace) = (kube::ResourceExt::name_any(deployment), revision.install_namespace.as_str());
    let target = render::target(&name, install_namespace, handles.cluster_info).await;
    let input = RenderInput { name: &name, install_namespace, class: &class, tree, config: &config };
    let rendered = render::render(handles, input).await?;
    if rendered.release.digest().as_str() == revision.release_digest {
        return Ok(Rerendered { rendered, provisioner: in_use, config });
    }
    // Another cluster may render the same release again.
    let whole = [Fact::KubernetesVersion, Fact::ApiKinds].into_iter().collect();
    handles.refused.note(&target.name, whole, &target);
    Err(RerenderCause::Differs(difference(revision, rendered.release.digest(), class.provisioner.digest())))
}

/// Why a release has another digest: one of its inputs changed.
fn difference(revision: &Revision, rendered: &Digest, component: &Digest) -> String {
    let (was, before) = (&revision.release_digest, &revision.provisioner);
    let cause = if before.digest == component.as_str() {
        "the version or the kinds of the cluster have changed since".to_owned()
    } else {
        format!("it was made by the component {}; class {} has {component} now", before.digest, before.class)
    };
    format!("its release was {was} and comes out as {rendered}: {cause}")
}
