//! Subscriptions of OLM v0 (`operators.coreos.com`).
//!
//! `status.installedCSV` of a Subscription names the installed version; the image of its bundle is in the InstallPlan that installed it,
//! else in the CatalogSource; what it watches is in the OperatorGroup of its namespace.

use chandler_api::{
    Approval, BundleDeploymentSpec, CatalogSelector, OlmCatalogs, OutputType, PackageRequest, ResolutionOutput,
    ResolutionSpec, ResolveSetOutput, ServiceAccountReference,
};
use serde_json::{Map, Value};

use super::{
    CatalogImage, ForeignObject, Migration,
    migration::{name_apart, text, texts},
};
use crate::view::invocation::quoted;

/// The class that installs bundles of OLM.
pub(super) const CLASS: &str = "core-rukpak-io-registry";
/// The label by which catalogs are selected by name.
const CATALOG_NAME: &str = "olm.operatorframework.io/metadata.name";
/// The label of a copy of a ClusterServiceVersion in another namespace.
const COPIED: &str = "/metadata/labels/olm.copiedFrom";

/// The objects of OLM in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Subscriptions.
    pub subscriptions: Vec<Value>,
    /// ClusterServiceVersions, copies included.
    pub csvs: Vec<Value>,
    /// OperatorGroups.
    pub operator_groups: Vec<Value>,
    /// InstallPlans.
    pub install_plans: Vec<Value>,
}

/// Translates the Subscriptions. The other result is a note for each ClusterServiceVersion that no Subscription asks for.
pub fn migrations(objects: &Objects) -> (Vec<Migration>, Vec<String>) {
    let mut migrations: Vec<Migration> = objects.subscriptions.iter().map(|it| migration(it, objects)).collect();
    name_apart(&mut migrations);
    let asked = |csv: &ForeignObject| migrations.iter().any(|migration| migration.managers.contains(csv));
    let own = objects.csvs.iter().filter(|csv| text(csv, COPIED).is_none()).map(ForeignObject::of);
    let rest = own.filter(|csv| !asked(csv));
    let rest = rest.map(|csv| format!("{csv}: no Subscription has installed it; it is not migrated")).collect();
    (migrations, rest)
}

fn migration(subscription: &Value, objects: &Objects) -> Migration {
    let mut migration = Migration::new(ForeignObject::of(subscription));
    let namespace = migration.from.namespace.clone().unwrap_or_default();
    let mut config = watched(&namespace, objects, &mut migration);
    config.extend(deployment_config(subscription, &mut migration));
    let account = service_account(&namespace, objects);
    let approval = (text(subscription, "/spec/installPlanApproval") == Some("Manual")).then_some(Approval::Manual);
    migration.resolution = resolution(subscription, &namespace, approval, account.as_ref(), &config);
    notes(subscription, &mut migration);
    let Some(installed) = text(subscription, "/status/installedCSV") else {
        migration.note("nothing is installed: status.installedCSV is not set");
        return migration;
    };
    let csv = objects.csvs.iter().find(|csv| {
        text(csv, "/metadata/name") == Some(installed) && text(csv, "/metadata/namespace") == Some(&namespace)
    });
    match csv {
        Some(csv) => of_csv(csv, objects, &mut migration),
        None => migration.note(format!("ClusterServiceVersion {namespace}/{installed} does not exist")),
    }
    migration.spec = Some(BundleDeploymentSpec {
        install_namespace: namespace.clone(),
        provisioner_class_name: CLASS.to_owned(),
        config: (!config.is_empty()).then_some(config),
        service_account: account,
        approval,
        ..BundleDeploymentSpec::default()
    });
    migration.image = in_catalog(subscription, installed);
    if let Some(image) = unpacked(&namespace, installed, &objects.install_plans) {
        migration.set_image(image);
    }
    migration
}

/// The image in the InstallPlan that installed a ClusterServiceVersion. Any user who may write InstallPlans can choose it, so it counts
/// only after a catalog confirms it.
fn unpacked<'a>(namespace: &str, csv: &str, plans: &'a [Value]) -> Option<&'a str> {
    let own = plans.iter().filter(|plan| text(plan, "/metadata/namespace") == Some(namespace));
    let lookups = own.filter_map(|plan| plan.pointer("/status/bundleLookups")?.as_array()).flatten();
    let mut of_csv = lookups.filter(|lookup| text(lookup, "/identifier") == Some(csv));
    // For a bundle without an image, this is the path of a file or the address of the registry server.
    of_csv.find_map(|lookup| text(lookup, "/path").filter(|path| path.contains('/') && !path.contains("://")))
}

fn in_catalog(subscription: &Value, bundle: &str) -> Option<CatalogImage> {
    let namespace = text(subscription, "/spec/sourceNamespace")?;
    Some(CatalogImage {
        kind: OlmCatalogs::CatalogSources(namespace.to_owned()),
        catalog: text(subscription, "/spec/source").map(str::to_owned),
        package: text(subscription, "/spec/name")?.to_owned(),
        bundle: bundle.to_owned(),
    })
}

/// The configuration for the namespaces that the OperatorGroup selects.
fn watched(namespace: &str, objects: &Objects, migration: &mut Migration) -> Map<String, Value> {
    let mut config = Map::new();
    let groups = groups(namespace, objects);
    let [group] = groups.as_slice() else {
        migration.note(format!(
            "namespace {namespace} has {} OperatorGroups instead of one: set spec.config.watchNamespace if the operator does not watch all \
             namespaces",
            groups.len()
        ));
        return config;
    };
    let mut namespaces = texts(group, "/status/namespaces");
    if namespaces.is_empty() {
        namespaces = texts(group, "/spec/targetNamespaces");
        if namespaces.is_empty() && group.pointer("/spec/selector").is_some() {
            migration.note("the OperatorGroup selects namespaces by labels, and has not resolved them");
        }
    }
    if group.pointer("/spec/selector").is_some_and(|selector| selector.as_object().is_some_and(|it| !it.is_empty())) {
        migration.note(
            "the OperatorGroup selects namespaces by labels: the configuration lists the current ones, and will not be updated",
        );
    }
    match namespaces.as_slice() {
        [] => {}
        [all] if all.is_empty() => {}
        [one] => {
            config.insert("watchNamespace".to_owned(), one.as_str().into());
        }
        several => {
            config.insert("watchNamespaces".to_owned(), several.into());
        }
    }
    if let Some(strategy) = text(group, "/spec/upgradeStrategy").filter(|strategy| *strategy != "Default") {
        migration.note(format!(
            "upgradeStrategy {strategy} of the OperatorGroup has no equivalent: a failed upgrade can always be replaced"
        ));
    }
    config
}

fn groups<'a>(namespace: &str, objects: &'a Objects) -> Vec<&'a Value> {
    objects.operator_groups.iter().filter(|group| text(group, "/metadata/namespace") == Some(namespace)).collect()
}

fn service_account(namespace: &str, objects: &Objects) -> Option<ServiceAccountReference> {
    let groups = groups(namespace, objects);
    let name = groups.iter().find_map(|group| text(group, "/spec/serviceAccountName"))?;
    Some(ServiceAccountReference { name: name.to_owned(), namespace: Some(namespace.to_owned()) })
}

/// `spec.config` of a Subscription as `deploymentConfig`: its members have the same names.
fn deployment_config(subscription: &Value, migration: &mut Migration) -> Option<(String, Value)> {
    let mut config = subscription.pointer("/spec/config")?.as_object()?.clone();
    if config.remove("selector").is_some() {
        migration
            .note("spec.config.selector has no equivalent: the configuration is for all Deployments of the bundle");
    }
    (!config.is_empty()).then(|| ("deploymentConfig".to_owned(), config.into()))
}

fn resolution(
    subscription: &Value,
    namespace: &str,
    approval: Option<Approval>,
    account: Option<&ServiceAccountReference>,
    config: &Map<String, Value>,
) -> Option<ResolutionSpec> {
    let package = text(subscription, "/spec/name")?;
    let catalog = text(subscription, "/spec/source").map(|source| CatalogSelector {
        match_labels: [(CATALOG_NAME.to_owned(), source.to_owned())].into(),
        ..CatalogSelector::default()
    });
    let request = PackageRequest {
        name: package.to_owned(),
        channels: text(subscription, "/spec/channel").map(str::to_owned).into_iter().collect(),
        catalogs: catalog,
        ..PackageRequest::default()
    };
    Some(ResolutionSpec {
        packages: vec![request],
        approval,
        output: Some(set(package, namespace, account, config)),
        ..ResolutionSpec::default()
    })
}

/// An output that installs one package.
pub(super) fn set(
    package: &str,
    namespace: &str,
    account: Option<&ServiceAccountReference>,
    config: &Map<String, Value>,
) -> ResolutionOutput {
    let config = (!config.is_empty()).then(|| (package.to_owned(), config.clone()));
    ResolutionOutput {
        kind: OutputType::ResolveSet,
        resolve_set: Some(ResolveSetOutput {
            install_namespace: namespace.to_owned(),
            service_account: account.cloned(),
            config: config.into_iter().collect(),
            ..ResolveSetOutput::default()
        }),
    }
}

/// What a Subscription says that a BundleDeployment does not.
fn notes(subscription: &Value, migration: &mut Migration) {
    let (name, package) = (migration.name.clone(), text(subscription, "/spec/name").unwrap_or_default());
    let channel = text(subscription, "/spec/channel");
    migration.note(format!(
        "a BundleDeployment stays at its version: `chandler upgrade {name} {}{}` upgrades it; `--as resolution` prints a Resolution, \
         which follows {}",
        quoted(package),
        channel.map(|channel| format!(" --channel {}", quoted(channel))).unwrap_or_default(),
        channel.map_or_else(|| "the package".to_owned(), |channel| format!("channel {channel}"))
    ));
    if let Some(csv) = text(subscription, "/spec/startingCSV") {
        migration.note(format!("spec.startingCSV {csv} has no equivalent: it counts for the first installation only"));
    }
    let (current, installed) = (text(subscription, "/status/currentCSV"), text(subscription, "/status/installedCSV"));
    if let Some(current) = current.filter(|current| installed.is_some() && Some(*current) != installed) {
        migration.note(format!("an upgrade to {current} is pending in OLM: the installed version is migrated"));
    }
}

/// What a ClusterServiceVersion says that a BundleDeployment does not.
fn of_csv(csv: &Value, objects: &Objects, migration: &mut Migration) {
    let id = ForeignObject::of(csv);
    if let Some(phase) = text(csv, "/status/phase").filter(|phase| *phase != "Succeeded") {
        migration.note(format!("{id} is in phase {phase}"));
    }
    let enabled = csv.pointer("/spec/cleanup/enabled").and_then(Value::as_bool);
    if enabled == Some(true) {
        migration.note("spec.cleanup.enabled has no equivalent: a deletion stops while custom resources exist (spec.deletion.crds)");
    }
    let name = &id.name;
    migration.note(format!(
        "roles and bindings that OLM generated for {name} stay, since the bundle generates its own: `kubectl get \
         clusterroles,clusterrolebindings,roles,rolebindings -A -l olm.owner={}` lists them",
        quoted(name)
    ));
    migration.note(format!(
        "OperatorCondition {name} has no equivalent; spec.config.operatorConditionName sets the variable that names one"
    ));
    let is_copy = |other: &&Value| {
        text(other, COPIED).is_some_and(|from| Some(from) == id.namespace.as_deref())
            && text(other, "/metadata/name") == Some(name)
    };
    let copies = objects.csvs.iter().filter(is_copy).count();
    if copies > 0 {
        let namespace = id.namespace.as_deref().unwrap_or_default();
        migration.note(format!(
            "{} of {id} in other namespaces, until OLM or `kubectl delete csv -A -l olm.copiedFrom={namespace}` deletes them",
            if copies == 1 { "1 copy remains".to_owned() } else { format!("{copies} copies remain") }
        ));
    }
    migration.managers.push(id);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::migrate::migration::tests::shown;

    fn object(kind: &str, namespace: &str, name: &str, more: Value) -> Value {
        let mut object = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind,
            "metadata": {"namespace": namespace, "name": name, "uid": format!("{kind}-{name}")}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    }

    fn group(more: Value) -> Value {
        object("OperatorGroup", "etcd", "og", more)
    }

    fn etcd(spec: &Value) -> Objects {
        let mut subscription = object(
            "Subscription",
            "etcd",
            "etcd",
            json!({
                "spec": {"name": "etcd", "channel": "stable", "source": "community", "sourceNamespace": "olm"},
                "status": {"installedCSV": "etcd.v0.9.4", "currentCSV": "etcd.v0.9.4"},
            }),
        );
        subscription["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let csv = object("ClusterServiceVersion", "etcd", "etcd.v0.9.4", json!({"status": {"phase": "Succeeded"}}));
        let plan = object(
            "InstallPlan",
            "etcd",
            "install-x",
            json!({"status": {"bundleLookups": [{"identifier": "etcd.v0.9.4", "path": "quay.io/example/etcd@sha256:0"}]}}),
        );
        Objects {
            subscriptions: vec![subscription],
            csvs: vec![csv],
            operator_groups: vec![group(json!({"spec": {}, "status": {"namespaces": [""]}}))],
            install_plans: vec![plan],
        }
    }

    #[test]
    fn a_subscription_becomes_the_installed_version_of_its_package() {
        insta::assert_snapshot!(shown(&migrations(&etcd(&json!({}))).0));
    }

    #[test]
    fn everything_that_has_no_equivalent_has_a_note() {
        let mut objects = etcd(&json!({
            "installPlanApproval": "Manual", "startingCSV": "etcd.v0.9.0",
            "config": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "b"}]},
        }));
        objects.subscriptions[0]["status"]["currentCSV"] = json!("etcd.v1.0.0");
        objects.csvs[0]["status"]["phase"] = json!("Failed");
        objects.csvs[0]["spec"] = json!({"cleanup": {"enabled": true}});
        let mut copy = object("ClusterServiceVersion", "shop", "etcd.v0.9.4", json!({}));
        copy["metadata"]["labels"] = json!({"olm.copiedFrom": "etcd"});
        objects.csvs.extend([copy, object("ClusterServiceVersion", "etcd", "by-hand.v1", json!({}))]);
        objects.operator_groups = vec![group(json!({
            "spec": {"selector": {"matchLabels": {"x": "y"}}, "serviceAccountName": "scoped", "upgradeStrategy": "TechPreviewUnsafeFailForward"},
            "status": {"namespaces": ["shop", "web"]},
        }))];
        objects.install_plans.clear();
        let (found, rest) = migrations(&objects);
        insta::assert_snapshot!(shown(&found));
        assert_eq!(
            rest,
            ["ClusterServiceVersion etcd/by-hand.v1: no Subscription has installed it; it is not migrated"]
        );
    }

    #[test]
    fn the_operator_group_determines_what_is_watched() {
        for (group_spec, expected) in [
            (json!({"status": {"namespaces": [""]}}), json!(null)),
            (json!({"spec": {"targetNamespaces": ["etcd"]}}), json!({"watchNamespace": "etcd"})),
            (json!({"status": {"namespaces": ["a", "b"]}}), json!({"watchNamespaces": ["a", "b"]})),
        ] {
            let objects = Objects { operator_groups: vec![group(group_spec)], ..etcd(&json!({})) };
            let spec = migrations(&objects).0.remove(0).spec.unwrap();
            assert_eq!(json!(spec.config), expected);
        }
        let found = migrations(&Objects { operator_groups: Vec::new(), ..etcd(&json!({})) }).0;
        assert!(found[0].notes.iter().any(|note| note.starts_with("namespace etcd has 0 OperatorGroups")));
    }

    #[test]
    fn what_is_not_installed_has_no_bundle_deployment() {
        let mut objects = etcd(&json!({}));
        objects.subscriptions[0]["status"] = json!({});
        let found = migrations(&objects).0;
        assert_eq!((found[0].deployment(), found[0].resolution().is_some()), (None, true));
    }
}
