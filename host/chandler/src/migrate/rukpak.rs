//! BundleDeployments `core.rukpak.io/v1alpha1` of rukpak, with the Bundles that they unpacked.
//!
//! `v1alpha2` is Chandler's own API: these BundleDeployments need no translation.

use chandler_api::{BundleDeploymentSpec, BundleSource, CollisionProtection};
use serde_json::Value;

use super::{
    ForeignObject, Migration,
    migration::{name_apart, text},
};

/// The class of Helm charts, which is not built in.
const HELM: &str = "core-rukpak-io-helm";
/// The classes that ignore `spec.config` in rukpak.
const WITHOUT_CONFIG: [&str; 2] = ["core-rukpak-io-plain", "core-rukpak-io-registry"];
/// The label of an object with the name of the BundleDeployment that installed it.
const OWNER: &str = "/metadata/labels/core.rukpak.io~1owner-name";

/// The objects of rukpak in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// BundleDeployments, as `v1alpha1`.
    pub deployments: Vec<Value>,
    /// Bundles.
    pub bundles: Vec<Value>,
    /// Deployments that rukpak installed: they are in the namespace of their bundle.
    pub workloads: Vec<Value>,
}

/// Translates the BundleDeployments. The other result is a note for each object that is not migrated.
pub fn migrations(objects: &Objects) -> (Vec<Migration>, Vec<String>) {
    let is_old = |it: &&Value| it.pointer("/spec/template").is_some();
    let mut migrations: Vec<Migration> =
        objects.deployments.iter().filter(is_old).map(|it| migration(it, objects)).collect();
    name_apart(&mut migrations);
    let new = objects.deployments.iter().filter(|it| !is_old(it)).map(|deployment| {
        let id = ForeignObject::of(deployment);
        format!("{id}: v1alpha2 is the API of Chandler, too; it needs no translation")
    });
    let owned = |bundle: &&Value| bundle.pointer("/metadata/ownerReferences/0").is_some();
    let alone = objects.bundles.iter().filter(|bundle| !owned(bundle));
    let alone = alone.map(|bundle| {
        format!("{}: no BundleDeployment has generated it; a Bundle alone has no equivalent", ForeignObject::of(bundle))
    });
    let notes = new.chain(alone).collect();
    (migrations, notes)
}

fn migration(deployment: &Value, objects: &Objects) -> Migration {
    let mut migration = Migration::new(ForeignObject::of(deployment));
    let class = text(deployment, "/spec/template/spec/provisionerClassName").unwrap_or_default().to_owned();
    let Some(source) = source(deployment, objects, &mut migration) else { return migration };
    if class == HELM {
        migration.note(format!(
            "the provisioner for Helm charts is not built in: first publish its component, and create the ProvisionerClass {HELM} with it \
             (docs/helm.md)"
        ));
    }
    for field in ["labels", "annotations"] {
        if deployment.pointer(&format!("/spec/template/metadata/{field}")).is_some() {
            migration.note(format!("spec.template.metadata.{field} has no equivalent: there are no Bundles"));
        }
    }
    let config = deployment.pointer("/spec/config").and_then(Value::as_object).filter(|config| !config.is_empty());
    let is_ignored = WITHOUT_CONFIG.contains(&class.as_str());
    if config.is_some() && is_ignored {
        migration.note("spec.config is left out: rukpak ignored it, and Chandler would use it");
    }
    let install_namespace = namespace(&mut migration, objects);
    migration.spec = Some(BundleDeploymentSpec {
        install_namespace,
        provisioner_class_name: class,
        source,
        config: config.filter(|_| !is_ignored).cloned(),
        // The old BundleDeployment is deleted first, since both have one CRD. Its objects then have no controller.
        collision_protection: Some(CollisionProtection::IfNoController),
        ..BundleDeploymentSpec::default()
    });
    migration
}

/// The source of the active Bundle, as rukpak resolved it, else the template's source.
fn source(deployment: &Value, objects: &Objects, migration: &mut Migration) -> Option<BundleSource> {
    let active = text(deployment, "/status/activeBundle");
    let bundle = active.and_then(|name| objects.bundles.iter().find(|it| text(it, "/metadata/name") == Some(name)));
    let resolved = bundle.and_then(|bundle| bundle.pointer("/status/resolvedSource"));
    if resolved.is_none() {
        migration.note(
            "the version that is installed is not known (status.activeBundle): the source of the template is used",
        );
    }
    let source = resolved.or_else(|| deployment.pointer("/spec/template/spec/source"))?;
    if text(source, "/type") == Some("upload") {
        migration.note(format!(
            "rukpak keeps uploaded files in its own service: install them with `chandler install {} ./FILES --upload`",
            migration.name
        ));
        return None;
    }
    match serde_json::from_value(source.clone()) {
        Ok(source) => Some(source),
        Err(error) => {
            migration.note(format!("the source cannot be translated: {error}"));
            None
        }
    }
}

/// The namespace that rukpak installed into: the namespace of the Deployments, since v1alpha1 has no field for it.
fn namespace(migration: &mut Migration, objects: &Objects) -> String {
    let own = objects.workloads.iter().filter(|it| text(it, OWNER) == Some(&migration.from.name));
    let mut namespaces: Vec<&str> = own.filter_map(|workload| text(workload, "/metadata/namespace")).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    match namespaces.as_slice() {
        [one] => (*one).to_owned(),
        found => {
            let guess = format!("{}-system", migration.name);
            migration.note(format!(
                "v1alpha1 has no install namespace, and {} namespaces have its Deployments: check spec.installNamespace",
                found.len()
            ));
            guess
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::migrate::migration::tests::shown;

    fn deployment(name: &str, class: &str, source: &Value) -> Value {
        json!({
            "apiVersion": "core.rukpak.io/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": name, "uid": name},
            "spec": {"provisionerClassName": "core-rukpak-io-plain", "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"provisionerClassName": class, "source": source}}},
            "status": {"activeBundle": format!("{name}-1")},
        })
    }

    fn objects(class: &str, source: &Value, resolved: Option<&Value>) -> Objects {
        let bundle = resolved.map(|resolved| {
            json!({"apiVersion": "core.rukpak.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "web-1", "ownerReferences": [{}]},
                   "status": {"resolvedSource": resolved}})
        });
        let labels = json!({"core.rukpak.io/owner-name": "web"});
        Objects {
            deployments: vec![deployment("web", class, source)],
            bundles: bundle.into_iter().collect(),
            workloads: vec![json!({"metadata": {"name": "web", "namespace": "shop", "labels": labels}})],
        }
    }

    #[test]
    fn a_bundle_deployment_has_the_source_that_rukpak_resolved() {
        let image = |reference: &str| json!({"type": "image", "image": {"ref": reference, "pullSecret": "pull"}});
        let found =
            migrations(&objects("core-rukpak-io-registry", &image("q.io/web:v1"), Some(&image("q.io/web@sha256:0"))));
        insta::assert_snapshot!(shown(&found.0));
    }

    #[test]
    fn everything_that_has_no_equivalent_has_a_note() {
        let git =
            json!({"type": "git", "git": {"repository": "https://example.com/web.git", "ref": {"branch": "main"}}});
        let mut all = objects("core-rukpak-io-plain", &git, None);
        all.workloads.clear();
        all.deployments[0]["spec"]["config"] = json!({"a": 1});
        all.deployments.push(deployment("chart", HELM, &git));
        all.deployments.push(deployment("uploaded", "core-rukpak-io-plain", &json!({"type": "upload", "upload": {}})));
        all.deployments.push(json!({"kind": "BundleDeployment", "metadata": {"name": "new"}, "spec": {"source": git}}));
        all.bundles.push(json!({"kind": "Bundle", "metadata": {"name": "alone"}}));
        let (found, notes) = migrations(&all);
        insta::assert_snapshot!(format!("{}{}", shown(&found), notes.join("\n")));
    }
}
