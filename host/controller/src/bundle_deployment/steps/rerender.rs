//! Renders the release of an earlier revision again, from what the history keeps of it.
//!
//! The digest of the release decides, whatever may have changed since: a release with another digest is not that revision.

use std::sync::Arc;

use chandler_api::{BundleDeployment, ProvisionerInUse, Revision, ValuesInUse};
use chandler_core::{Digest, Fact};
use chandler_decisions::{account::requester, config::Config};
use chandler_values::Values;

use super::{
    super::{handles::RenderHandles, preparer::Preparer},
    account::{self, AccountError},
    class::{self, ClassError, ResolvedClass},
    render::{self, RenderError, RenderInput, Rendered},
    unpack::{self, SourceHandles, UnpackError},
    values::{self, ReadValuesError},
};
use crate::provisioner_class::{self, EarlierError};

/// A revision's release, with the configuration that it was rendered with.
pub(crate) struct Rerendered {
    pub(crate) rendered: Rendered,
    pub(crate) provisioner: ProvisionerInUse,
    pub(crate) config: Config,
    /// The objects that values of the configuration came from.
    pub(crate) values: Vec<ValuesInUse>,
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
        "its configuration was too long to be kept, and differs from the spec's: set spec.config to its earlier value"
    )]
    ConfigNotKept,
    /// Values of Secrets are not kept, and the objects have changed.
    #[error(
        "its configuration has values of {0}, which are not kept in the history, and spec.valuesFrom, spec.config or these objects have \
         changed since: restore the values and the spec, and upgrade to the bundle of that revision"
    )]
    ValuesNotKept(String),
    #[error(transparent)]
    Values(#[from] ReadValuesError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error("{0}")]
    Differs(String),
}

/// Renders the release of a revision again. It runs in the background, so it carves its handles out of the preparer.
pub(super) async fn rerender(
    preparer: &Arc<Preparer>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Rerendered, RerenderError> {
    let result = rerendered(preparer, deployment, revision).await;
    result.map_err(|cause| RerenderError { revision: revision.number, cause })
}

async fn rerendered(
    preparer: &Arc<Preparer>,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Rerendered, RerenderCause> {
    let (source, handles) = (SourceHandles::of(preparer, deployment), &RenderHandles::of(preparer));
    let ResolvedClass { class, in_use } = class::resolve(&preparer.classes, &revision.provisioner.class).await?;
    let (class, in_use, unavailable) =
        match provisioner_class::component_of(&preparer.classes, &preparer.components, &class, &revision.provisioner)
            .await
        {
            Ok(earlier) => (earlier, revision.provisioner.clone(), None),
            // The component that the class has now may render the same release.
            Err(error) => {
                let format = revision.provisioner.format.clone();
                (class, ProvisionerInUse { format, ..in_use }, Some(error))
            }
        };
    let values = if revision.config.is_some() { Values::default() } else { values::read(preparer, deployment).await? };
    let config = Config::of_revision(revision, &class.defaults, &values, deployment.spec.config.as_ref())
        .ok_or_else(|| not_kept(revision))?;
    account::may_fetch(preparer, deployment, &revision.source).await?;
    let tree = unpack::unpack_again(&source, deployment, revision).await?;
    let (name, install_namespace) = (kube::ResourceExt::name_any(deployment), revision.install_namespace.as_str());
    let target = render::target(&name, install_namespace, handles).await;
    let class_name = revision.provisioner.class.as_str();
    let requester = &requester(deployment, &preparer.cluster.options.accounts);
    let input =
        RenderInput { name: &name, install_namespace, class_name, class: &class, tree, config: &config, requester };
    let rendered = render::render(handles, input).await?;
    if rendered.release.digest().as_str() == revision.release_digest {
        return Ok(Rerendered { rendered, provisioner: in_use, config, values: revision.values_from.clone() });
    }
    // Another cluster may render the same release again.
    let whole = [Fact::KubernetesVersion, Fact::ApiKinds].into_iter().collect();
    handles.refused.note(&target.name, whole, &target);
    let differs = difference(revision, rendered.release.digest(), class.provisioner.digest(), unavailable.as_ref());
    Err(RerenderCause::Differs(differs))
}

/// Why the configuration of a revision is unknown.
fn not_kept(revision: &Revision) -> RerenderCause {
    if revision.values_from.is_empty() {
        return RerenderCause::ConfigNotKept;
    }
    let namespace = &revision.install_namespace;
    let objects = revision.values_from.iter().map(|object| format!("{} {namespace}/{}", object.kind, object.name));
    RerenderCause::ValuesNotKept(objects.collect::<Vec<_>>().join(", "))
}

/// Why a release has another digest: one of its inputs changed.
fn difference(
    revision: &Revision,
    rendered: &Digest,
    component: &Digest,
    unavailable: Option<&EarlierError>,
) -> String {
    let (was, before) = (&revision.release_digest, &revision.provisioner);
    let cause = match unavailable {
        None => "the version or the kinds of the cluster have changed since".to_owned(),
        Some(error) => format!(
            "it was made by the component {}, which is unavailable: {error}; class {} has {component} now",
            before.digest, before.class
        ),
    };
    format!("its release was {was} and comes out as {rendered}: {cause}")
}
