//! `chandler render` against the output of OLM v1 for a published operator.

use std::{collections::BTreeMap, fs};

use chandler_test_support::needs::fixture;
use serde_json::{Map, Value, json};

use crate::support;

#[test]
fn argocd_renders_as_in_olm_v1() {
    let Some(fixtures) = fixture("") else { return };
    let index = fs::read_to_string(fixtures.join("vectors/registry_golden_index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let cases = index["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let bundle = fixtures.join(case["bundle"].as_str().unwrap());
        let namespace = case["installNamespace"].as_str().unwrap();
        let arguments =
            ["render", bundle.to_str().unwrap(), "--namespace", namespace, "--config", "-", "--output", "json"];
        let list = support::chandler(arguments, &configuration(case).to_string()).data();
        let list: Value = serde_json::from_str(&list).unwrap();
        let expected = fs::read_dir(fixtures.join(case["expectedDir"].as_str().unwrap())).unwrap();
        let expected = expected.flat_map(|file| {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            support::documents(&text)
        });
        let (actual, expected) = (by_name(list["items"].as_array().unwrap().iter().cloned()), by_name(expected));
        assert_eq!(json!(actual.len()), case["objectCount"], "{name}");
        for (object, expected) in &expected {
            assert_eq!(actual.get(object), Some(expected), "{name}: {object}");
        }
        assert_eq!(actual.len(), expected.len(), "{name}");
    }
}

fn configuration(case: &Value) -> Value {
    let mut configuration = Map::new();
    if let Some(watched) = case["targetNamespaces"][0].as_str().filter(|namespace| !namespace.is_empty()) {
        configuration.insert("watchNamespace".into(), watched.into());
    }
    if !case["deploymentConfig"].is_null() {
        configuration.insert("deploymentConfig".into(), case["deploymentConfig"].clone());
    }
    Value::Object(configuration)
}

fn by_name(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    objects
        .map(|mut object| {
            object.as_object_mut().unwrap().remove("status");
            let metadata = &object["metadata"];
            let name = format!("{} {}/{}", object["kind"], metadata["namespace"], metadata["name"]);
            (name, canonical(object).unwrap_or_default())
        })
        .collect()
}

/// Removes nulls and empty maps, which Go encoders add and omit inconsistently.
fn canonical(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            let map: Map<_, _> =
                map.into_iter().filter_map(|(key, value)| canonical(value).map(|value| (key, value))).collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        Value::Array(items) => {
            Some(items.into_iter().map(|item| canonical(item).unwrap_or_else(|| json!({}))).collect())
        }
        scalar => Some(scalar),
    }
}
