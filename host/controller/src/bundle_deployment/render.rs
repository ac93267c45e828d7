//! The second arrow: a tree becomes a release, through the provisioner of its class.
//!
//! Rendering is a pure function of content, component, configuration and target, so a release is kept until one of these
//! changes, over restarts too, and a reconcile that changes nothing calls no plugin.

use std::sync::Arc;

use chandler_api::BundleDeployment;
use chandler_content::Tree;
use chandler_core::{Content as _, Digest, Release, Request, Target};
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use crate::{classes::Class, context::Context, problem::Problem};

/// A release, and the digest of what it was made from.
pub(crate) struct Rendered {
    pub(crate) key: Digest,
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
    let surroundings = context.surroundings.get().await;
    let name = deployment.name_any();
    let target = Target {
        name: name.clone(),
        namespace: install_namespace.to_owned(),
        kubernetes_version: surroundings.kubernetes_version.clone(),
        api_kinds: surroundings.api_kinds.clone(),
    };
    let request = Request { config, target };
    let key = key(tree.digest(), class.provisioner.digest(), &request);
    context.memory.in_use.note(&name, &key);
    if let Some(release) = context.releases.get(&key).await {
        return Ok(Rendered { key, release });
    }
    let release = class.provisioner.provision(&request, Arc::new(tree), &class.limits).await;
    let release = Arc::new(release.map_err(|error| Problem::from(&error))?);
    tracing::info!(
        deployment = %name,
        release = %release.digest().short(),
        objects = release.objects().len(),
        "rendered"
    );
    context.releases.insert(key.clone(), Arc::clone(&release)).await;
    Ok(Rendered { key, release })
}

/// The configuration of the class with that of the BundleDeployment laid over it, member by member.
pub(crate) fn laid_over(defaults: &Map<String, Value>, config: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut result = defaults.clone();
    result.extend(config.cloned().unwrap_or_default());
    result
}

/// Stands for all that a release depends on.
fn key(content: &Digest, component: &Digest, request: &Request) -> Digest {
    let parts = serde_json::json!([content, component, request.config, request.target]);
    Digest::of(parts.to_string().as_bytes())
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
    fn the_key_changes_with_each_of_its_parts() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let request = |config: Value, name: &str| Request {
            config: map(config),
            target: Target { name: name.into(), ..Target::default() },
        };
        let one = key(&a, &b, &request(json!({}), "n"));
        assert_eq!(one, key(&a, &b, &request(json!({}), "n")));
        for other in [
            key(&b, &b, &request(json!({}), "n")),
            key(&a, &a, &request(json!({}), "n")),
            key(&a, &b, &request(json!({"x": 1}), "n")),
            key(&a, &b, &request(json!({}), "m")),
        ] {
            assert_ne!(one, other);
        }
    }
}
