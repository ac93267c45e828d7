//! Compares the schema of the configuration with OLM v1's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use std::{collections::BTreeSet, fs};

use chandler_registry::Registry;
use chandler_sdk::{Provisioner as _, testing::Bundle};
use serde_json::Value;

use crate::support::fixtures;

fn actual_schema(install_modes: &[&str]) -> Value {
    let modes: Vec<String> = install_modes.iter().map(|mode| format!("{{type: {mode}, supported: true}}")).collect();
    let csv = format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: a}}\n\
         spec: {{installModes: [{}]}}\n",
        modes.join(", ")
    );
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: a}\n".to_owned();
    let bundle = Bundle::new([("metadata/annotations.yaml", annotations), ("manifests/csv.yaml", csv)]);
    serde_json::from_str(&Registry::config_schema(&bundle).unwrap().unwrap()).unwrap()
}

/// The schema behind `$ref` and single `allOf`s.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    match reference.and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => resolve(root, root.pointer(pointer).unwrap()),
        None => schema,
    }
}

fn names(list: Option<&Value>) -> BTreeSet<&str> {
    match list {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::Object(map)) => map.keys().map(String::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

fn compare(root: &Value, expected: &Value, actual: &Value, path: &str, differences: &mut Vec<String>) {
    let expected = resolve(root, expected);
    for key in ["properties", "required"] {
        let (expected, actual) = (names(expected.get(key)), names(actual.get(key)));
        if expected != actual {
            let missing: Vec<_> = expected.difference(&actual).collect();
            let extra: Vec<_> = actual.difference(&expected).collect();
            differences.push(format!("{path} {key}: missing {missing:?}, extra {extra:?}"));
        }
    }
    // A quantity is a string or a number, which OLM v1 writes as oneOf; the fields of a manager may be anything here.
    if expected.get("oneOf").is_none() && !path.ends_with(".fieldsV1") && expected["type"] != actual["type"] {
        differences.push(format!("{path}: type {} here {}", expected["type"], actual["type"]));
    }
    for (name, expected) in expected["properties"].as_object().into_iter().flatten() {
        if let Some(actual) = actual["properties"].get(name) {
            compare(root, expected, actual, &format!("{path}.{name}"), differences);
        }
    }
    if let (Some(expected), Some(actual)) = (expected.get("items"), actual.get("items")) {
        compare(root, expected, actual, &format!("{path}[]"), differences);
    }
    if let (Some(expected), Some(actual)) = (expected.get("additionalProperties"), actual.get("additionalProperties")) {
        if expected.is_object() {
            compare(root, expected, actual, &format!("{path}{{}}"), differences);
        } else {
            assert_eq!(expected, actual, "{path}");
        }
    }
}

#[test]
fn deployment_config_schema_matches_olm_v1() {
    let Some(fixtures) = fixtures() else { return };
    let expected = fs::read(fixtures.join("schema/registryv1bundleconfig.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let actual = actual_schema(&["AllNamespaces"]);
    let mut differences = Vec::new();
    let pointer = "/properties/deploymentConfig";
    compare(
        &expected,
        expected.pointer(pointer).unwrap(),
        actual.pointer(pointer).unwrap(),
        "deploymentConfig",
        &mut differences,
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn watch_namespace_follows_the_install_modes() {
    // The available and required keys, and the format of watchNamespace.
    let cases: [(&[&str], &str); 7] = [
        (&["AllNamespaces"], "none"),
        (&["AllNamespaces", "OwnNamespace", "SingleNamespace"], "optional"),
        (&["AllNamespaces", "OwnNamespace"], "optional ownNamespaceInstallMode"),
        (&["OwnNamespace"], "required ownNamespaceInstallMode"),
        (&["SingleNamespace"], "required singleNamespaceInstallMode"),
        (&["OwnNamespace", "SingleNamespace"], "required"),
        (&["MultiNamespace", "OwnNamespace"], "optional ownNamespaceInstallMode, or watchNamespaces"),
    ];
    for (modes, want) in cases {
        let schema = actual_schema(modes);
        let property = &schema["properties"]["watchNamespace"];
        let namespace = property.pointer("/anyOf/1").unwrap_or(property);
        let mut got = match (property, schema.get("required")) {
            (Value::Null, _) => "none".to_owned(),
            (_, None) => "optional".to_owned(),
            (_, Some(_)) => "required".to_owned(),
        };
        if let Some(format) = namespace["format"].as_str() {
            got = format!("{got} {format}");
        }
        if schema["properties"].get("watchNamespaces").is_some() {
            got += ", or watchNamespaces";
        }
        assert_eq!(got, want, "{modes:?}");
        assert_eq!(schema["additionalProperties"], false);
    }
}
