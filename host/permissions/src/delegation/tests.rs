use chandler_core::Object;
use serde_json::json;

use super::*;
use crate::{Escalation, ExistingRoles, Held, missing, requirements};

fn own() -> Account {
    Account { namespace: "shop".into(), name: "deployer".into() }
}

fn installation(accounts: AccountPolicy) -> Installation {
    Installation { accounts, system_namespace: Some("chandler-system".into()), ..Installation::default() }
}

/// The permissions that the account lacks, excluding those that every object requires.
fn lacks(objects: &[Value], accounts: AccountPolicy, held: &Held) -> Vec<String> {
    let objects: Vec<Object> =
        objects.iter().map(|object| Object::parse(object.to_string().as_bytes(), 0, None).unwrap()).collect();
    let items: Vec<Item<'_>> =
        objects.iter().map(|object| Item { key: &object.key, plural: "x", value: &object.value }).collect();
    let required = requirements(&items, &[], &[], None, &ExistingRoles::default());
    let required = required.with_delegations(&items, &installation(accounts), &own());
    let found = missing(&required, held, Escalation::Hold);
    let delegated = found.needs().iter().filter(|need| matches!(need.why, Why::Delegates { .. }));
    delegated.map(|need| format!("{}: {}; {}", need.scope, need.rule, need.why)).collect()
}

fn nested(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "inner"},
        "spec": {"installNamespace": "shop", "provisionerClassName": "c", "source": {"type": "image", "image": {"ref": "a:v1"}}},
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": {}})
}

const ALL: &str = r#"in the whole cluster: {APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#;
const PATHS: &str = r#"in the whole cluster: {NonResourceURLs:["*"], Verbs:["*"]}"#;

/// All permissions, with this reason.
fn all_permissions(why: &str) -> Vec<String> {
    vec![format!("{PATHS}; {why}"), format!("{ALL}; {why}")]
}

#[test]
fn a_nested_bundle_deployment_requires_permission_to_impersonate_its_account() {
    let default = |text: &str| AccountPolicy::with_default(text.parse().unwrap());
    let inner = "BundleDeployment.core.rukpak.io inner";
    let unnamed = || {
        all_permissions(&format!(
            "{inner} names no ServiceAccount, so it is installed with the permissions of the controller"
        ))
    };
    let undecodable =
        || all_permissions(&format!("{inner} has a spec that cannot be decoded, so what it does is unknown"));
    let acts = |namespace: &str, name: &str| {
        vec![format!(
            "in namespace {namespace}: {{APIGroups:[\"\"], Resources:[\"serviceaccounts\"], ResourceNames:[{name:?}], \
             Verbs:[\"impersonate\"]}}; {inner} is installed on behalf of ServiceAccount {namespace}/{name}"
        )]
    };
    let cases = [
        (AccountPolicy::OPTIONAL, json!({"serviceAccount": {"name": "deployer"}}), vec![]),
        (AccountPolicy::OPTIONAL, json!({"serviceAccount": {"name": "deployer", "namespace": "shop"}}), vec![]),
        (AccountPolicy::OPTIONAL, json!({"serviceAccount": {"name": "root"}}), acts("shop", "root")),
        (
            AccountPolicy::OPTIONAL,
            json!({"serviceAccount": {"name": "deployer", "namespace": "kube-system"}}),
            acts("kube-system", "deployer"),
        ),
        // An equal name in another namespace is another account.
        (
            AccountPolicy::OPTIONAL,
            json!({"installNamespace": "other", "serviceAccount": {"name": "deployer"}}),
            acts("other", "deployer"),
        ),
        (AccountPolicy::OPTIONAL, json!({}), unnamed()),
        (AccountPolicy::OPTIONAL, json!({"serviceAccount": null}), unnamed()),
        (AccountPolicy::OPTIONAL, json!({"serviceAccount": {"name": 1}}), undecodable()),
        (AccountPolicy::REQUIRED, json!({}), vec![]),
        (AccountPolicy::REQUIRED, json!({"serviceAccount": {"name": "root"}}), acts("shop", "root")),
        (default("deployer"), json!({}), vec![]),
        (default("ci/bundles"), json!({}), acts("ci", "bundles")),
    ];
    for (policy, spec, expected) in cases {
        assert_eq!(lacks(&[nested(&spec)], policy.clone(), &Held::default()), expected, "{policy:?} {spec}");
    }
}

#[test]
fn a_source_requires_permission_to_read_its_references() {
    let reads = |kind: &str, resource: &str, name: &str| {
        format!(
            r#"in namespace chandler-system: {{APIGroups:[""], Resources:[{resource:?}], ResourceNames:[{name:?}], Verbs:["get"]}}; BundleDeployment.core.rukpak.io inner makes the controller read {kind} chandler-system/{name}"#
        )
    };
    let auth = json!({"secret": {"name": "key"}});
    let cases = [
        (
            json!({"type": "image", "image": {"ref": "a:v1", "pullSecret": "pull"},
                   "configMaps": [{"configMap": {"name": "content"}}, {"configMap": {}}]}),
            vec![reads("ConfigMap", "configmaps", "content"), reads("Secret", "secrets", "pull")],
        ),
        (
            json!({"type": "http", "http": {"url": "https://a/b.tgz", "auth": auth}}),
            vec![reads("Secret", "secrets", "key")],
        ),
        (
            json!({"type": "git", "git": {"repository": "https://a/b", "ref": {"branch": "main"}, "auth": auth}}),
            vec![reads("Secret", "secrets", "key")],
        ),
        (json!({"type": "upload", "upload": {}}), vec![]),
    ];
    for (source, expected) in cases {
        let spec = json!({"serviceAccount": {"name": "deployer"}, "source": source});
        assert_eq!(lacks(&[nested(&spec)], AccountPolicy::OPTIONAL, &Held::default()), expected, "{source}");
    }
}

fn resolution(set: &Value) -> Value {
    json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "inner"},
           "spec": {"packages": [{"name": "app"}], "output": {"type": "ResolveSet", "resolveSet": set}}})
}

#[test]
fn a_resolution_requires_what_its_bundle_deployments_would() {
    let default = |text: &str| AccountPolicy::with_default(text.parse().unwrap());
    let inner = "Resolution.core.deppy.io inner";
    let acts = |namespace: &str, name: &str| {
        format!(
            "in namespace {namespace}: {{APIGroups:[\"\"], Resources:[\"serviceaccounts\"], ResourceNames:[{name:?}], \
             Verbs:[\"impersonate\"]}}; {inner} is installed on behalf of ServiceAccount {namespace}/{name}"
        )
    };
    let unnamed = || {
        all_permissions(&format!(
            "{inner} names no ServiceAccount, so it is installed with the permissions of the controller"
        ))
    };
    let set = |more: Value| {
        let mut set = json!({"installNamespace": "shop"});
        set.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        set
    };
    let cases = [
        (AccountPolicy::OPTIONAL, set(json!({"serviceAccount": {"name": "deployer"}})), vec![]),
        (
            AccountPolicy::OPTIONAL,
            set(json!({"serviceAccount": {"name": "platform", "namespace": "accounts"}})),
            vec![acts("accounts", "platform")],
        ),
        (AccountPolicy::OPTIONAL, set(json!({})), unnamed()),
        (AccountPolicy::REQUIRED, set(json!({})), vec![]),
        (default("deployer"), set(json!({})), vec![]),
        // The default account of the namespace of a member.
        (default("deployer"), set(json!({"namespaces": {"app": "other"}})), vec![acts("other", "deployer")]),
        (
            AccountPolicy::OPTIONAL,
            set(json!({"serviceAccount": {"name": "deployer"}, "namespaces": {"app": "other"}})),
            vec![],
        ),
    ];
    for (policy, set, expected) in cases {
        assert_eq!(lacks(&[resolution(&set)], policy.clone(), &Held::default()), expected, "{policy:?} {set}");
    }
    let reported = json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "inner"},
                          "spec": {"packages": [{"name": "app"}], "output": {"type": "None"}}});
    assert_eq!(lacks(&[reported], AccountPolicy::OPTIONAL, &Held::default()), [""; 0]);
}

#[test]
fn a_platform_operator_requires_what_the_platform_installs_it_with() {
    let operator = json!({"apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
                          "metadata": {"name": "inner"}, "spec": {"package": {"name": "app"}}});
    let object = Object::parse(operator.to_string().as_bytes(), 0, None).unwrap();
    let item = Item { key: &object.key, plural: "platformoperators", value: &object.value };
    let account =
        |namespace: &str, name: &str| Delegation::Account(Account { namespace: namespace.into(), name: name.into() });
    let platform = Some(Account { namespace: "chandler-system".into(), name: "platform".into() });
    let default = |text: &str| AccountPolicy::with_default(text.parse().unwrap());
    let cases = [
        (AccountPolicy::OPTIONAL, None, vec![Delegation::ControllerRights]),
        (AccountPolicy::REQUIRED, None, vec![]),
        (default("ci/bundles"), None, vec![account("ci", "bundles")]),
        // The account of a namespace that a catalog decides.
        (default("bundles"), None, vec![Delegation::ControllerRights]),
        (AccountPolicy::REQUIRED, platform, vec![account("chandler-system", "platform")]),
    ];
    for (accounts, platform, expected) in cases {
        let installation = Installation { platform, ..installation(accounts) };
        assert_eq!(Delegation::of(&item, &installation), expected, "{installation:?}");
    }
}

#[test]
fn catalogs_of_olm_count_where_they_are_used() {
    let source = |namespace| object("operators.coreos.com/v1alpha1", "CatalogSource", Some(namespace), "vendor");
    let cluster = object("olm.operatorframework.io/v1", "ClusterCatalog", None, "vendor");
    let found = |value: &Value, catalogs_from: &[OlmCatalogs]| {
        let object = Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
        let item = Item { key: &object.key, plural: "x", value: &object.value };
        let catalogs_from = catalogs_from.to_vec();
        Delegation::of(&item, &Installation { catalogs_from, ..installation(AccountPolicy::REQUIRED) })
    };
    let sources = OlmCatalogs::CatalogSources("olm".to_owned());
    assert_eq!(found(&source("olm"), std::slice::from_ref(&sources)), [Delegation::Catalog]);
    assert_eq!(found(&cluster, &[OlmCatalogs::ClusterCatalogs]), [Delegation::Catalog]);
    assert_eq!(found(&source("shop"), &[sources]), []);
    assert_eq!(found(&source("olm"), &[OlmCatalogs::ClusterCatalogs]), []);
    assert_eq!(found(&cluster, &[]), []);
}

#[test]
fn objects_that_affect_other_users_require_all_permissions() {
    let crd = |name| object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name);
    let cases = [
        (
            object("chandler.dev/v1alpha1", "ProvisionerClass", None, "helm"),
            all_permissions("ProvisionerClass.chandler.dev helm renders the bundles of other users"),
        ),
        (
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog", "metadata": {"name": "vendor"},
                   "spec": {"source": {"type": "image", "image": {"ref": "a:v1"}}}}),
            all_permissions("Catalog.chandler.dev vendor offers packages to the Resolutions of other users"),
        ),
        (
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "PlatformPolicy", "metadata": {"name": "platform-operators"},
                   "spec": {}}),
            all_permissions(
                "PlatformPolicy.chandler.dev platform-operators limits what the PlatformOperators of other users install",
            ),
        ),
        (
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Receiver", "metadata": {"name": "pushes"},
                   "spec": {"type": "github", "secretRef": {"name": "pushes"},
                            "resources": [{"kind": "BundleDeployment", "name": "*"}]}}),
            {
                let pushes = "Receiver.chandler.dev pushes";
                let mut needed =
                    all_permissions(&format!("{pushes} decides when the sources of other users are polled"));
                needed.push(format!(
                    "in namespace chandler-system: {{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"pushes\"], \
                     Verbs:[\"get\"]}}; {pushes} makes the controller read Secret chandler-system/pushes"
                ));
                needed
            },
        ),
        (
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Alert", "metadata": {"name": "chat"},
                   "spec": {"provider": {"type": "Webhook", "url": "https://hooks.example.com"}}}),
            all_permissions("Alert.chandler.dev chat sends what happens to the objects of other users to a server"),
        ),
        (
            object("chandler.dev/v1alpha1", "Alert", None, "chat"),
            all_permissions("Alert.chandler.dev chat has a spec that cannot be decoded, so what it does is unknown"),
        ),
        (
            object("chandler.dev/v1alpha1", "Catalog", None, "vendor"),
            all_permissions(
                "Catalog.chandler.dev vendor has a spec that cannot be decoded, so what it does is unknown",
            ),
        ),
        (
            crd("resolutions.core.deppy.io"),
            all_permissions(
                "CustomResourceDefinition.apiextensions.k8s.io resolutions.core.deppy.io defines an API of Chandler",
            ),
        ),
        (
            crd("platformoperators.platform.openshift.io"),
            all_permissions(
                "CustomResourceDefinition.apiextensions.k8s.io platformoperators.platform.openshift.io defines an API of Chandler",
            ),
        ),
        (
            object("v1", "ConfigMap", Some("chandler-system"), "content"),
            all_permissions("ConfigMap chandler-system/content is in the namespace of the controller"),
        ),
        (
            object("v1", "Namespace", None, "chandler-system"),
            all_permissions("Namespace chandler-system is in the namespace of the controller"),
        ),
        (
            crd("bundledeployments.core.rukpak.io"),
            all_permissions(
                "CustomResourceDefinition.apiextensions.k8s.io bundledeployments.core.rukpak.io defines an API of Chandler",
            ),
        ),
        (object("v1", "ConfigMap", Some("shop"), "content"), vec![]),
        (object("v1", "Namespace", None, "shop"), vec![]),
        (crd("oxen.example.com"), vec![]),
        // Other API groups may use the same names.
        (object("example.com/v1", "ProvisionerClass", None, "helm"), vec![]),
        (object("example.com/v1", "BundleDeployment", None, "inner"), vec![]),
    ];
    for (object, expected) in cases {
        assert_eq!(
            lacks(std::slice::from_ref(&object), AccountPolicy::REQUIRED, &Held::default()),
            expected,
            "{object}"
        );
    }
}

#[test]
fn a_held_permission_may_be_delegated() {
    let everything = Held { cluster: vec![PolicyRule::everything(), PolicyRule::every_path()], ..Held::default() };
    let class = object("chandler.dev/v1alpha1", "ProvisionerClass", None, "helm");
    let root = nested(&json!({"serviceAccount": {"name": "root"}}));
    assert_eq!(lacks(&[nested(&json!({})), class, root.clone()], AccountPolicy::OPTIONAL, &everything), [""; 0]);
    let acts = Held {
        namespaces: [("shop".to_owned(), vec![one("impersonate", "", "serviceaccounts", Some("root"))])].into(),
        ..Held::default()
    };
    assert_eq!(lacks(&[root], AccountPolicy::OPTIONAL, &acts), [""; 0]);
    // Many permissions are not all permissions.
    let many = Held {
        cluster: vec![PolicyRule { api_groups: vec![String::new(), "apps".into()], ..PolicyRule::everything() }],
        ..Held::default()
    };
    assert_eq!(lacks(&[nested(&json!({}))], AccountPolicy::OPTIONAL, &many).len(), 2);
}
