//! The release of an earlier revision, made again from what the history says of it.
//!
//! Whatever may have changed since, the digest of the release decides: what comes out otherwise is not that revision.

use chandler_api::{BundleDeployment, ProvisionerInUse, Reason, Revision};
use chandler_core::{Digest, Fact};
use serde_json::{Map, Value};

use super::{
    render::{self, Rendered},
    source,
};
use crate::{context::Context, problem::Problem, provisioner_class::Class};

/// A revision's release, with the configuration that it was made with.
pub(crate) struct Remade {
    pub(crate) rendered: Rendered,
    pub(crate) provisioner: ProvisionerInUse,
    pub(crate) config: Map<String, Value>,
}

/// Makes the release of a revision again.
pub(crate) async fn rerender(
    deployment: &BundleDeployment,
    revision: &Revision,
    context: &Context,
) -> Result<Remade, Problem> {
    let about =
        |problem: Problem| Problem { message: format!("revision {}: {}", revision.number, problem.message), ..problem };
    let class = context.classes.get(&revision.provisioner.class).await.map_err(about)?;
    let config = config(deployment, revision, &class).map_err(about)?;
    let tree = source::unpack_again(deployment, revision, context).await.map_err(about)?;
    let target = render::target(deployment, &revision.install_namespace, context).await;
    let rendered = render::render(deployment, &class, tree, config.clone(), &revision.install_namespace, context).await;
    let rendered = rendered.map_err(about)?;
    if rendered.release.digest().as_str() == revision.release_digest {
        let provisioner = super::choose::in_use(&revision.provisioner.class, &class);
        return Ok(Remade { rendered, provisioner, config });
    }
    // Another cluster may make it the same again.
    let whole = [Fact::KubernetesVersion, Fact::ApiKinds].into_iter().collect();
    context.memory.refused.note(&target.name, whole, &target);
    let message = otherwise(revision, &rendered, class.provisioner.digest());
    Err(about(Problem::lasting(Reason::RevisionUnavailable, message)))
}

/// The configuration that a revision was made with. One that was too long to be kept may still be that of the spec.
fn config(deployment: &BundleDeployment, revision: &Revision, class: &Class) -> Result<Map<String, Value>, Problem> {
    if let Some(config) = &revision.config {
        return Ok(config.clone());
    }
    let config = render::laid_over(&class.defaults, deployment.spec.config.as_ref());
    if Digest::of(Value::Object(config.clone()).to_string().as_bytes()).as_str() == revision.config_digest {
        return Ok(config);
    }
    let message = "its configuration was too long to be kept, and is another one than that of the spec: \
                   set spec.config to what it was";
    Err(Problem::lasting(Reason::RevisionUnavailable, message))
}

/// Why a release comes out otherwise: one of its inputs is not what it was.
fn otherwise(revision: &Revision, rendered: &Rendered, component: &Digest) -> String {
    let (was, is) = (&revision.release_digest, rendered.release.digest());
    let before = &revision.provisioner;
    let cause = if before.digest == component.as_str() {
        "the version or the kinds of the cluster have changed since".to_owned()
    } else {
        format!("it was made by the component {}; class {} has {component} now", before.digest, before.class)
    };
    format!("its release was {was} and comes out as {is}: {cause}")
}
