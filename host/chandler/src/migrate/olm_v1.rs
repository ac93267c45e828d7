//! ClusterExtensions of OLM v1 (`olm.operatorframework.io/v1`).

use chandler_api::{
    BundleDeploymentSpec, CatalogSelector, OlmCatalogs, PackageRequest, ResolutionSpec, RolloutSettings,
    ServiceAccountReference, UpgradePolicy,
};
use serde_json::{Map, Value, json};

use super::{
    CatalogImage, ForeignObject, Migration,
    migration::{name_apart, text, texts},
    olm::{CLASS, set},
};
use crate::view::invocation::quoted;

/// What OLM writes in the condition Installed, around the image.
const INSTALLED: (&str, &str) = ("Installed bundle ", " successfully");
const CATALOG: &str = "/spec/source/catalog";

/// Translates the ClusterExtensions. `sets` are the ClusterObjectSets that have their objects; they are deleted with them.
pub fn migrations(extensions: &[Value], sets: &[Value]) -> Vec<Migration> {
    let mut migrations: Vec<Migration> = extensions.iter().map(|extension| migration(extension, sets)).collect();
    name_apart(&mut migrations);
    migrations
}

fn migration(extension: &Value, sets: &[Value]) -> Migration {
    let mut migration = Migration::new(ForeignObject::of(extension));
    let namespace = text(extension, "/spec/namespace").unwrap_or_default().to_owned();
    let account = text(extension, "/spec/serviceAccount/name")
        .map(|name| ServiceAccountReference { name: name.to_owned(), namespace: Some(namespace.clone()) });
    let config = extension.pointer("/spec/config/inline").and_then(Value::as_object).cloned().unwrap_or_default();
    migration.resolution = resolution(extension, &namespace, account.as_ref(), &config);
    notes(extension, &mut migration);
    let own = sets.iter().filter(|set| is_of(set, &migration.from)).map(ForeignObject::of);
    let own: Vec<ForeignObject> = own.collect();
    migration.managers.extend(own);
    let Some(bundle) = text(extension, "/status/install/bundle/name") else {
        migration.note("nothing is installed: status.install is not set");
        return migration;
    };
    migration.spec = Some(BundleDeploymentSpec {
        install_namespace: namespace,
        provisioner_class_name: CLASS.to_owned(),
        config: (!config.is_empty()).then_some(config),
        service_account: account,
        rollout: deadline(extension),
        preflight: preflight(extension),
        ..BundleDeploymentSpec::default()
    });
    match image(extension) {
        Some(image) => migration.set_image(image),
        None => {
            migration.image = text(extension, &format!("{CATALOG}/packageName")).map(|package| CatalogImage {
                kind: OlmCatalogs::ClusterCatalogs,
                catalog: None,
                package: package.to_owned(),
                bundle: bundle.to_owned(),
            });
        }
    }
    migration
}

/// Whether a ClusterObjectSet belongs to a ClusterExtension.
fn is_of(set: &Value, extension: &ForeignObject) -> bool {
    let references = set.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| text(reference, "/uid") == Some(&extension.uid))
}

/// The image in the condition Installed.
fn image(extension: &Value) -> Option<&str> {
    let conditions = extension.pointer("/status/conditions").and_then(Value::as_array)?;
    let installed = |it: &&Value| text(it, "/type") == Some("Installed") && text(it, "/status") == Some("True");
    let message = text(conditions.iter().find(installed)?, "/message")?;
    let image = message.strip_prefix(INSTALLED.0)?.strip_suffix(INSTALLED.1)?;
    (!image.contains(char::is_whitespace)).then_some(image)
}

fn deadline(extension: &Value) -> Option<RolloutSettings> {
    let minutes = extension.pointer("/spec/progressDeadlineMinutes").and_then(Value::as_i64)?;
    let seconds = i32::try_from(minutes.checked_mul(60)?).ok();
    Some(RolloutSettings { progress_deadline_seconds: seconds, ..RolloutSettings::default() })
}

/// No check of CRD upgrades, if the ClusterExtension has none.
fn preflight(extension: &Value) -> Option<chandler_api::Preflight> {
    let enforcement = text(extension, "/spec/install/preflight/crdUpgradeSafety/enforcement")?;
    let disabled = json!({"crdUpgradeSafety": {"disabled": true}});
    (enforcement == "None").then(|| serde_json::from_value(disabled).unwrap_or_default())
}

fn resolution(
    extension: &Value,
    namespace: &str,
    account: Option<&ServiceAccountReference>,
    config: &Map<String, Value>,
) -> Option<ResolutionSpec> {
    let package = text(extension, &format!("{CATALOG}/packageName"))?;
    let selector = extension.pointer(&format!("{CATALOG}/selector"));
    let selector: Option<CatalogSelector> = selector.and_then(|selector| serde_json::from_value(selector.clone()).ok());
    let request = PackageRequest {
        name: package.to_owned(),
        version: text(extension, &format!("{CATALOG}/version")).map(str::to_owned),
        channels: texts(extension, &format!("{CATALOG}/channels")),
        catalogs: selector,
        ..PackageRequest::default()
    };
    let self_certified = text(extension, &format!("{CATALOG}/upgradeConstraintPolicy")) == Some("SelfCertified");
    Some(ResolutionSpec {
        packages: vec![request],
        upgrades: self_certified.then_some(UpgradePolicy::SelfCertified),
        output: Some(set(package, namespace, account, config)),
        ..ResolutionSpec::default()
    })
}

/// What a ClusterExtension says that a BundleDeployment does not.
fn notes(extension: &Value, migration: &mut Migration) {
    let name = migration.name.clone();
    let package = text(extension, &format!("{CATALOG}/packageName")).unwrap_or_default();
    let range =
        text(extension, &format!("{CATALOG}/version")).map(|range| format!("@{}", quoted(range))).unwrap_or_default();
    let channels = texts(extension, &format!("{CATALOG}/channels"));
    let channels: Vec<String> = channels.iter().map(|channel| format!(" --channel {}", quoted(channel))).collect();
    let channels = channels.concat();
    migration.note(format!(
        "a BundleDeployment stays at its version: `chandler upgrade {name} {}{range}{channels}` upgrades it; `--as resolution` prints a \
         Resolution, which follows the catalogs",
        quoted(package)
    ));
    if extension.pointer(&format!("{CATALOG}/selector")).is_some() {
        migration.note("spec.source.catalog.selector: only a Resolution selects catalogs");
    }
    if text(extension, &format!("{CATALOG}/upgradeConstraintPolicy")) == Some("SelfCertified") {
        migration.note("upgradeConstraintPolicy SelfCertified: only a Resolution has it (spec.upgrades)");
    }
    if text(extension, "/spec/install/preflight/crdUpgradeSafety/enforcement") == Some("None")
        && migration.resolution.is_some()
    {
        migration.note("crdUpgradeSafety None: a Resolution has no equivalent, a BundleDeployment has spec.preflight");
    }
    let deadline = extension.pointer("/spec/progressDeadlineMinutes").is_some();
    if deadline {
        migration.note("progressDeadlineMinutes: a Resolution has no equivalent, a BundleDeployment has spec.rollout");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::migration::tests::shown;

    fn extension(spec: &Value, message: &str) -> Value {
        let mut extension = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "argocd", "uid": "1"},
            "spec": {"namespace": "argocd", "source": {"sourceType": "Catalog", "catalog": {"packageName": "argocd-operator"}}},
            "status": {
                "install": {"bundle": {"name": "argocd-operator.v0.6.0", "version": "0.6.0"}},
                "conditions": [{"type": "Installed", "status": "True", "reason": "Succeeded", "message": message}],
            },
        });
        extension["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        extension
    }

    #[test]
    fn a_cluster_extension_becomes_its_installed_bundle() {
        let extension = extension(&json!({}), "Installed bundle quay.io/example/argocd@sha256:0 successfully");
        let set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "argocd-1", "uid": "2", "ownerReferences": [{"uid": "1"}]}});
        let other = json!({"kind": "ClusterObjectSet", "metadata": {"name": "other-1", "uid": "3"}});
        insta::assert_snapshot!(shown(&migrations(&[extension], &[set, other])));
    }

    #[test]
    fn everything_that_has_no_equivalent_has_a_note() {
        let spec = json!({
            "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "argocd-operator", "version": ">=0.5, <1", "channels": ["alpha", "beta"],
                "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "operatorhubio"}},
                "upgradeConstraintPolicy": "SelfCertified",
            }},
            "install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}},
            "config": {"configType": "Inline", "inline": {"watchNamespace": "shop"}},
            "progressDeadlineMinutes": 30,
        });
        insta::assert_snapshot!(shown(&migrations(&[extension(&spec, "another message")], &[])));
    }

    #[test]
    fn the_image_is_read_from_the_condition_only_in_its_known_form() {
        for (message, expected) in [
            ("Installed bundle quay.io/a/b:v1 successfully", Some("quay.io/a/b:v1")),
            ("Installed bundle quay.io/a/b:v1", None),
            ("Installed bundle a b successfully", None),
            ("", None),
        ] {
            assert_eq!(image(&extension(&json!({}), message)), expected, "{message}");
        }
    }

    #[test]
    fn what_is_not_installed_has_no_bundle_deployment() {
        let mut extension = extension(&json!({}), "");
        extension["status"] = json!({});
        assert_eq!(migrations(&[extension], &[])[0].spec, None);
    }
}
