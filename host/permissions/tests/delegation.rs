//! No object of ours makes Chandler act with permissions that its writer lacks: neither a field that exists today nor any object that can
//! be made up.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot continue must fail")]

use chandler_api::{OlmCatalogs, OwnKind, crds};
use chandler_core::Object;
use chandler_permissions::{
    Account, AccountPolicy, Delegation, Escalation, ExistingRoles, Held, Installation, Item, PolicyRule, Why, missing,
    requirements,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const SYSTEM: &str = "chandler-system";

fn own() -> Account {
    Account { namespace: "shop".into(), name: "deployer".into() }
}

fn installation(accounts: AccountPolicy) -> Installation {
    Installation { accounts, system_namespace: Some(SYSTEM.into()), ..Installation::default() }
}

fn object(own: OwnKind, spec: &Value) -> Object {
    let version = if own == OwnKind::BundleDeployment { "v1alpha2" } else { "v1alpha1" };
    let value = json!({"apiVersion": format!("{}/{version}", own.group()), "kind": own.kind(),
                       "metadata": {"name": "inner"}, "spec": spec});
    Object::parse(value.to_string().as_bytes(), 0, None).unwrap()
}

fn delegations(own: OwnKind, spec: &Value, installation: &Installation) -> Vec<Delegation> {
    let object = object(own, spec);
    Delegation::of(&Item { key: &object.key, plural: &own.plural(), value: &object.value }, installation)
}

/// The paths of all texts in a schema; `[]` stands for the items of a list.
fn texts(schema: &Value, path: &str, found: &mut Vec<String>) {
    if schema["type"] == "string" {
        found.push(path.to_owned());
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        texts(member, &format!("{path}/{name}"), found);
    }
    if schema["items"].is_object() {
        texts(&schema["items"], &format!("{path}/[]"), found);
    }
}

/// A value of a schema with everything that is required, and a text at this path.
fn value(schema: &Value, path: &[&str], text: &str) -> Value {
    match schema["type"].as_str() {
        Some("string") if path.is_empty() && text.is_empty() => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
        Some("string") => json!(text),
        Some("array") => match path.split_first() {
            Some((_, rest)) => json!([value(&schema["items"], rest, text)]),
            None => json!([]),
        },
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let members: Map<String, Value> = required
                .chain(path.first().copied())
                .map(|name| {
                    let (rest, text) = match path.split_first() {
                        Some((first, rest)) if *first == name => (rest, text),
                        _ => (&path[..0], ""),
                    };
                    (name.to_owned(), value(&schema["properties"][name], rest, text))
                })
                .collect();
            Value::Object(members)
        }
        _ => json!(1),
    }
}

/// Whether a field of this path names an object whose permissions or content Chandler uses on behalf of the author. The test fails for a
/// new field of such a name until it is listed.
fn names_a_principal_or_credentials(path: &str) -> bool {
    let lower = path.to_lowercase();
    // What is installed with the account, and read with it.
    let is_read_with_it = lower.starts_with("/valuesfrom/") || lower.starts_with("/kubeconfig/");
    let is_harmless = is_read_with_it || lower.ends_with("/namespace") || lower.ends_with("/path");
    !is_harmless && ["secret", "account", "configmap", "credential", "token"].iter().any(|word| lower.contains(word))
}

#[test]
fn every_field_that_names_an_account_or_credentials_is_checked() {
    let mut checked = Vec::new();
    for (crd, own) in crds().iter().zip(OwnKind::ALL) {
        let schema = serde_json::to_value(crd).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        let mut paths = Vec::new();
        texts(&schema, "", &mut paths);
        for path in paths.iter().filter(|path| names_a_principal_or_credentials(path)) {
            let steps: Vec<&str> = path.split('/').skip(1).collect();
            let spec = value(&schema, &steps, "planted");
            let found = delegations(*own, &spec, &installation(AccountPolicy::REQUIRED));
            // A class needs all permissions, whatever it names.
            let is_named = format!("{found:?}").contains("\"planted\"") || found.contains(&Delegation::Provisioner);
            assert!(is_named && !found.contains(&Delegation::Undecodable), "{own:?} {path}: {found:?} for {spec}");
            checked.push(format!("{}{path}", own.kind()));
        }
    }
    assert!(checked.len() >= 10, "{checked:?}");
    for expected in ["Resolution/output/resolveSet/serviceAccount/name", "BundleDeployment/source/git/auth/secret/name"]
    {
        assert!(checked.iter().any(|path| path == expected), "{expected} in {checked:?}");
    }
}

/// Any JSON, with the names of our fields.
fn any_spec() -> impl Strategy<Value = Value> {
    let names = [
        "source",
        "image",
        "pullSecret",
        "git",
        "http",
        "auth",
        "secret",
        "name",
        "namespace",
        "serviceAccount",
        "installNamespace",
        "output",
        "resolveSet",
        "type",
        "configMaps",
        "configMap",
        "packages",
        "bundleDeployment",
        "package",
        "url",
        "ref",
        "repository",
        "namespaces",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        prop::sample::select(vec!["", "deployer", "shop", "root", "image", "ResolveSet"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(prop::sample::select(names.to_vec()), inner, 0..6)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// Every Secret, ConfigMap and ServiceAccount that a spec names anywhere, found by the names of fields alone.
fn named(value: &Value, found: &mut Vec<String>) {
    let Value::Object(members) = value else { return };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    for (name, member) in members {
        match name.as_str() {
            "pullSecret" => found.extend(text(member)),
            "secret" | "configMap" | "serviceAccount" => found.extend(member.get("name").and_then(text)),
            _ => {}
        }
        named(member, found);
    }
}

proptest! {
    #[test]
    fn no_made_up_object_acts_for_an_account_that_lacks_everything(
        kind in prop::sample::select(OwnKind::ALL.to_vec()),
        spec in any_spec(),
    ) {
        let object = object(kind, &spec);
        let plural = kind.plural();
        let items = [Item { key: &object.key, plural: &plural, value: &object.value }];
        let installation = installation(AccountPolicy::OPTIONAL);
        let found = Delegation::of(&items[0], &installation);
        let required = requirements(&items, &[], &[], None, &ExistingRoles::default());
        let required = required.with_delegations(&items, &installation, &own());
        let lacking = missing(&required, &Held::default(), Escalation::Hold);
        let delegated = lacking.needs().iter().filter(|need| matches!(need.why, Why::Delegates { .. })).count();
        // Each delegation needs a permission, except that an account acts for itself.
        let other: Vec<_> = found.iter().filter(|it| **it != Delegation::Account(own())).collect();
        prop_assert!(delegated >= other.len(), "{:?} needs {}", found, delegated);
        // With all permissions, everything may be delegated.
        let everything = Held { cluster: vec![PolicyRule::everything(), PolicyRule::every_path()], ..Held::default() };
        prop_assert!(missing(&required, &everything, Escalation::Hold).is_empty());
        match kind {
            OwnKind::ProvisionerClass | OwnKind::Catalog | OwnKind::PlatformOperator | OwnKind::PlatformPolicy
            | OwnKind::Receiver
            | OwnKind::Alert
            | OwnKind::BundleDeployment | OwnKind::ChangeApproval => prop_assert!(!found.is_empty()),
            // One that installs nothing needs nothing.
            OwnKind::Resolution => prop_assert!(!found.is_empty() || spec.pointer("/output/resolveSet").is_none_or(Value::is_null)),
        }
    }

    #[test]
    fn what_a_decodable_source_names_is_found(source in any_spec()) {
        let spec = json!({"installNamespace": "shop", "serviceAccount": {"name": "deployer"}, "source": source});
        let found = delegations(OwnKind::BundleDeployment, &spec, &installation(AccountPolicy::OPTIONAL));
        if found.contains(&Delegation::Undecodable) {
            return Ok(());
        }
        let parsed: chandler_api::BundleSource = serde_json::from_value(without_nulls(&source)).unwrap();
        let (mut names, shown) = (Vec::new(), format!("{found:?}"));
        // Fields that the type does not know are dropped by the API server.
        named(&serde_json::to_value(parsed).unwrap(), &mut names);
        for name in names {
            prop_assert!(shown.contains(&format!("{name:?}")), "{} in {}", name, shown);
        }
    }

    #[test]
    fn objects_of_other_groups_delegate_nothing(spec in any_spec(), kind in prop::sample::select(OwnKind::ALL.to_vec())) {
        let value = json!({"apiVersion": "example.com/v1", "kind": kind.kind(), "metadata": {"name": "inner"}, "spec": spec});
        let object = Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
        let installation = Installation {
            catalogs_from: vec![OlmCatalogs::ClusterCatalogs, OlmCatalogs::CatalogSources("olm".into())],
            ..installation(AccountPolicy::OPTIONAL)
        };
        let item = Item { key: &object.key, plural: "x", value: &object.value };
        prop_assert_eq!(Delegation::of(&item, &installation), vec![]);
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name.clone(), without_nulls(member)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
