//! Versions of Chandler side by side: the CRDs of the previous release are in tests/fixtures/release-0.1.

use std::fs;

use chandler_crd_upgrade::{Enforcement, Policy, compare};
use serde_json::Value;

use crate::support::{documents, root};

/// The CRDs of release 0.1.
fn released() -> Vec<Value> {
    documents(&fs::read_to_string(root().join("tests/fixtures/release-0.1/crds.yaml")).unwrap())
}

fn name(crd: &Value) -> &str {
    crd["metadata"]["name"].as_str().unwrap()
}

/// The refusals of an upgrade. What only accepts more than before is none: the controller is the client of its own kinds.
fn refusals(old: &Value, new: &Value) -> Vec<String> {
    let policy = Policy { loosening: Some(Enforcement::Warn), ..Policy::default() };
    compare(old, new, &policy).refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn the_crds_of_the_previous_release_can_be_upgraded_to_those_of_this_version() {
    let (released, current) = (released(), chandler_api::crds());
    let current: Vec<Value> = current.iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    assert!(released.len() > 5, "{}", released.len());
    for old in &released {
        let new = current.iter().find(|new| name(new) == name(old));
        let new = new.unwrap_or_else(|| panic!("{} is gone: its objects would be deleted", name(old)));
        assert_eq!(refusals(old, new), Vec::<String>::new(), "{}", name(old));
        let names = |crd: &Value| -> Vec<String> {
            let versions = crd["spec"]["versions"].as_array().unwrap();
            versions.iter().map(|version| version["name"].as_str().unwrap().to_owned()).collect()
        };
        let missing: Vec<String> = names(old).into_iter().filter(|version| !names(new).contains(version)).collect();
        assert!(missing.is_empty(), "{} lacks {missing:?}, in which objects may be stored", name(old));
    }
}

#[test]
fn a_breaking_change_of_a_crd_would_be_found() {
    let old = released().into_iter().find(|crd| name(crd) == "bundledeployments.core.rukpak.io").unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    for change in [
        |spec: &mut Value| drop(spec["properties"].as_object_mut().unwrap().remove("suspend")),
        |spec: &mut Value| spec["properties"]["installNamespace"]["maxLength"] = 3.into(),
        |spec: &mut Value| spec["required"].as_array_mut().unwrap().push("suspend".into()),
    ] {
        let mut new = old.clone();
        change(new.pointer_mut(spec).unwrap());
        assert!(!refusals(&old, &new).is_empty(), "{:?}", new.pointer(spec).unwrap()["required"]);
    }
}
