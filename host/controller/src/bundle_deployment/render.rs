//! The second arrow: a tree becomes a release, through the provisioner of its class.
//!
//! Rendering is a pure function of content, component, configuration and those facts about the target that the provisioner
//! asks for. So a release is kept until one of these changes, over restarts too, and a reconcile that changes nothing calls no
//! plugin; neither does one after a change of the cluster that the provisioner did not ask about.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_content::Tree;
use chandler_core::{Content as _, Digest, Release, Request, Target};
use chandler_engine::Provisioned;
use chandler_releases::Made;
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use crate::{context::Context, problem::Problem, provisioner_class::Class};

/// A release, and what it was made of.
pub(crate) struct Rendered {
    pub(crate) made: Made,
    pub(crate) release: Arc<Release>,
}

/// The release that a class makes of a tree with a configuration.
pub(crate) async fn render(
    deployment: &BundleDeployment,
    class: &Class,
    tree: Tree,
    config: Map<String, Value>,
    install_namespace: &str,
    context: &Context,
) -> Result<Rendered, Problem> {
    let (name, target) = (deployment.name_any(), target(deployment, install_namespace, context).await);
    let request = Request { config, target };
    let inputs = inputs(tree.digest(), class.provisioner.digest(), &request.config);
    if let Some((made, release)) = context.releases.get_for(&inputs, &request.target).await {
        context.memory.in_use.note(&name, &made);
        context.memory.refused.forget(&name);
        return Ok(Rendered { made, release });
    }
    let Provisioned { result, asked } =
        class.provisioner.provision_and_record(&request, Arc::new(tree), &class.limits).await;
    let release = match result {
        Ok(release) => Arc::new(release),
        Err(error) => {
            context.memory.refused.note(&name, asked, &request.target);
            return Err(Problem::from(&error));
        }
    };
    context.memory.refused.forget(&name);
    tracing::info!(
        deployment = %name,
        release = %release.digest().short(),
        objects = release.objects().len(),
        "rendered"
    );
    let made = context.releases.insert_for(&inputs, &request.target, &asked, Arc::clone(&release)).await;
    context.memory.in_use.note(&name, &made);
    Ok(Rendered { made, release })
}

/// What the objects of a BundleDeployment are for, with the cluster as it was seen last.
pub(crate) async fn target(deployment: &BundleDeployment, install_namespace: &str, context: &Context) -> Target {
    let cluster_info = context.cluster_info.get().await;
    Target {
        name: deployment.name_any(),
        namespace: install_namespace.to_owned(),
        kubernetes_version: cluster_info.kubernetes_version.clone(),
        api_kinds: cluster_info.api_kinds.clone(),
    }
}

/// The configuration of the class with that of the BundleDeployment laid over it, member by member.
pub(crate) fn laid_over(defaults: &Map<String, Value>, config: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut result = defaults.clone();
    result.extend(config.cloned().unwrap_or_default());
    result
}

/// Stands for all that a release depends on, beside the facts about the target that its provisioner asks for.
fn inputs(content: &Digest, component: &Digest, config: &Map<String, Value>) -> Digest {
    Digest::of_json(&(content, component, config))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn configuration_is_laid_over_member_by_member() {
        let defaults = map(json!({"a": {"x": 1}, "b": 1}));
        let config = map(json!({"a": {"y": 2}, "c": null}));
        let result = laid_over(&defaults, Some(&config));
        assert_eq!(Value::Object(result), json!({"a": {"y": 2}, "b": 1, "c": null}));
        assert_eq!(laid_over(&defaults, None), defaults);
    }

    #[test]
    fn the_inputs_change_with_each_of_their_parts() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let one = inputs(&a, &b, &map(json!({})));
        assert_eq!(one, inputs(&a, &b, &map(json!({}))));
        for other in [
            inputs(&b, &b, &map(json!({}))),
            inputs(&a, &a, &map(json!({}))),
            inputs(&b, &a, &map(json!({}))),
            inputs(&a, &b, &map(json!({"x": 1}))),
        ] {
            assert_ne!(one, other);
        }
    }
}
