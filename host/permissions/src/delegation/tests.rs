use chandler_core::Object;
use serde_json::json;

use super::*;
use crate::{Escalation, ExistingRoles, Held, missing, requirements};

fn own() -> Account {
    Account { namespace: "shop".into(), name: "deployer".into() }
}

fn installation(accounts: AccountPolicy) -> Installation {
    Installation { accounts, system_namespace: Some("chandler-system".into()) }
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
    let default = |text: &str| AccountPolicy::Default(text.parse().unwrap());
    let inner = "BundleDeployment.core.rukpak.io inner";
    let unnamed = || {
        all_permissions(&format!(
            "{inner} names no ServiceAccount, so it is installed with the permissions of the controller"
        ))
    };
    let acts = |namespace: &str, name: &str| {
        vec![format!(
            "in namespace {namespace}: {{APIGroups:[\"\"], Resources:[\"serviceaccounts\"], ResourceNames:[{name:?}], \
             Verbs:[\"impersonate\"]}}; {inner} is installed on behalf of ServiceAccount {namespace}/{name}"
        )]
    };
    let cases = [
        (AccountPolicy::Optional, json!({"serviceAccount": {"name": "deployer"}}), vec![]),
        (AccountPolicy::Optional, json!({"serviceAccount": {"name": "deployer", "namespace": "shop"}}), vec![]),
        (AccountPolicy::Optional, json!({"serviceAccount": {"name": "root"}}), acts("shop", "root")),
        (
            AccountPolicy::Optional,
            json!({"serviceAccount": {"name": "deployer", "namespace": "kube-system"}}),
            acts("kube-system", "deployer"),
        ),
        // The same name in another namespace is another account.
        (
            AccountPolicy::Optional,
            json!({"installNamespace": "other", "serviceAccount": {"name": "deployer"}}),
            acts("other", "deployer"),
        ),
        (AccountPolicy::Optional, json!({}), unnamed()),
        (AccountPolicy::Optional, json!({"serviceAccount": null}), unnamed()),
        (AccountPolicy::Optional, json!({"serviceAccount": {"name": 1}}), unnamed()),
        (AccountPolicy::Required, json!({}), vec![]),
        (AccountPolicy::Required, json!({"serviceAccount": {"name": "root"}}), acts("shop", "root")),
        (default("deployer"), json!({}), vec![]),
        (default("ci/bundles"), json!({}), acts("ci", "bundles")),
    ];
    for (policy, spec, expected) in cases {
        assert_eq!(lacks(&[nested(&spec)], policy.clone(), &Held::default()), expected, "{policy:?} {spec}");
    }
}

#[test]
fn a_nested_bundle_deployment_requires_permission_to_read_its_references() {
    let source = json!({"serviceAccount": {"name": "deployer"}, "source": {
        "type": "image", "image": {"ref": "a:v1", "pullSecret": "pull"},
        "configMaps": [{"configMap": {"name": "content"}}, {"configMap": {}}]}});
    assert_eq!(
        lacks(&[nested(&source)], AccountPolicy::Optional, &Held::default()),
        [
            r#"in namespace chandler-system: {APIGroups:[""], Resources:["configmaps"], ResourceNames:["content"], Verbs:["get"]}; BundleDeployment.core.rukpak.io inner makes the controller read ConfigMap chandler-system/content"#,
            r#"in namespace chandler-system: {APIGroups:[""], Resources:["secrets"], ResourceNames:["pull"], Verbs:["get"]}; BundleDeployment.core.rukpak.io inner makes the controller read Secret chandler-system/pull"#,
        ]
    );
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
            lacks(std::slice::from_ref(&object), AccountPolicy::Required, &Held::default()),
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
    assert_eq!(lacks(&[nested(&json!({})), class, root.clone()], AccountPolicy::Optional, &everything), [""; 0]);
    let acts = Held {
        namespaces: [("shop".to_owned(), vec![one("impersonate", "", "serviceaccounts", Some("root"))])].into(),
        ..Held::default()
    };
    assert_eq!(lacks(&[root], AccountPolicy::Optional, &acts), [""; 0]);
    // Many permissions are not all permissions.
    let many = Held {
        cluster: vec![PolicyRule { api_groups: vec![String::new(), "apps".into()], ..PolicyRule::everything() }],
        ..Held::default()
    };
    assert_eq!(lacks(&[nested(&json!({}))], AccountPolicy::Optional, &many).len(), 2);
}
