//! The contents of the CRDs, which include all fields of rukpak's.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::{collections::BTreeSet, path::PathBuf};

use chandler_api::{crds, crds_yaml};
use chandler_test_support::needs::fixture;
use serde_json::{Map, Value};

/// Keywords that the rukpak's CRD may have and ours must have with the same value.
const SAME: &[&str] = &[
    "type",
    "format",
    "pattern",
    "maxLength",
    "minLength",
    "minimum",
    "enum",
    "default",
    "required",
    X_ATOMIC,
    X_FREE,
];
const X_ATOMIC: &str = "x-kubernetes-map-type";
const X_FREE: &str = "x-kubernetes-preserve-unknown-fields";

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

fn ours(name: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name)).unwrap();
    serde_json::to_value(crd).unwrap()
}

fn theirs(path: &str) -> Option<Value> {
    let path = fixture(path)?;
    Some(serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
}

/// Walks both schemas and notes where ours lacks something.
fn compare(path: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>, lacking: &mut Vec<String>) {
    for keyword in SAME {
        let (mut want, mut have) = (theirs.get(*keyword).cloned(), ours.get(*keyword).cloned());
        for names in [&mut want, &mut have].into_iter().flatten() {
            if let ("required", Value::Array(names)) = (*keyword, names) {
                names.sort_by_key(ToString::to_string);
            }
        }
        let same_number = want.as_ref().is_some_and(Value::is_number)
            && want.as_ref().and_then(Value::as_f64) == have.as_ref().and_then(Value::as_f64);
        if want != have && want.is_some() && !same_number {
            lacking.push(format!("{path}: {keyword}: want {want:?}, have {have:?}"));
        }
    }
    let nothing = Map::new();
    let members = theirs.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    for (name, member) in members {
        match ours.get("properties").and_then(|members| members.get(name)).and_then(Value::as_object) {
            Some(found) => compare(&format!("{path}.{name}"), member.as_object().unwrap(), found, lacking),
            None => lacking.push(format!("{path}.{name}: missing")),
        }
    }
    if let Some(items) = theirs.get("items").and_then(Value::as_object) {
        match ours.get("items").and_then(Value::as_object) {
            Some(found) => compare(&format!("{path}[]"), items, found, lacking),
            None => lacking.push(format!("{path}[]: missing")),
        }
    }
}

#[test]
fn every_definition_of_rukpak_is_compatible() {
    let Some(theirs) = theirs("crds/core.rukpak.io_bundledeployments.yaml") else { return };
    let ours = ours("bundledeployments.core.rukpak.io");
    let mut lacking = Vec::new();
    compare("", schema(&theirs).as_object().unwrap(), schema(&ours).as_object().unwrap(), &mut lacking);
    // A BundleDeployment may leave out its class, which is detected then.
    lacking.retain(|line| !(line.starts_with(".spec: required") && line.matches("provisionerClassName").count() == 1));
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    assert_eq!(ours["spec"]["names"]["shortNames"], theirs["spec"]["names"]["shortNames"]);
    assert_eq!(ours["spec"]["scope"], theirs["spec"]["scope"]);
    let columns = |crd: &Value| -> BTreeSet<String> {
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
        columns.iter().map(|c| format!("{} {} {} {}", c["name"], c["type"], c["jsonPath"], c["priority"])).collect()
    };
    assert!(columns(&ours).is_superset(&columns(&theirs)), "{:?}", columns(&ours));
}

#[test]
fn every_field_of_the_platform_operators_of_openshift_is_compatible() {
    let Some(theirs) = theirs("crds/00-platformoperator.crd.yaml") else { return };
    let ours = ours("platformoperators.platform.openshift.io");
    let mut lacking = Vec::new();
    compare("", schema(&theirs).as_object().unwrap(), schema(&ours).as_object().unwrap(), &mut lacking);
    // Every object has metadata.
    lacking.retain(|line| line != ".metadata: missing");
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    for field in ["scope", "group"] {
        assert_eq!(ours["spec"][field], theirs["spec"][field]);
    }
    for name in ["kind", "plural", "singular"] {
        assert_eq!(ours["spec"]["names"][name], theirs["spec"]["names"][name]);
    }
}

/// Rules of structural schemas that hold everywhere: `apiextensions-apiserver/pkg/apiserver/schema/validation.go`, and the
/// formats that the API server knows.
fn assert_structural(path: &str, schema: &Value) {
    let of_any_type = schema["x-kubernetes-int-or-string"] == true || schema[X_FREE] == true;
    assert!(schema["type"].is_string() || of_any_type, "{path} has no type");
    assert!(
        !schema["description"].is_null() || path.is_empty() || path.contains(".metadata"),
        "{path} has no description"
    );
    for keyword in ["nullable", "$ref", "oneOf", "anyOf", "allOf", "uniqueItems", "definitions"] {
        assert!(schema[keyword].is_null(), "{path} has {keyword}");
    }
    if let Some(format) = schema["format"].as_str() {
        assert!(["int32", "int64", "date-time"].contains(&format), "{path} has the format {format}");
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        assert_structural(&format!("{path}.{name}"), member);
    }
    if schema["type"] == "array" && schema["items"]["description"].is_null() {
        assert!(schema["items"]["type"] == "string", "{path}[] has no description");
    } else if schema["type"] == "array" {
        assert_structural(&format!("{path}[]"), &schema["items"]);
    }
}

#[test]
fn the_schemas_are_structural_and_described() {
    for crd in crds() {
        let crd = serde_json::to_value(crd).unwrap();
        assert_structural("", schema(&crd));
        // An approval has no other state.
        let has_status = crd["spec"]["names"]["kind"] != "ChangeApproval";
        let subresource = &crd["spec"]["versions"][0]["subresources"]["status"];
        assert_eq!(*subresource == serde_json::json!({}), has_status, "{subresource}");
    }
}

#[test]
fn the_crd_of_apply_set_parents_is_labelled() {
    let labels = &ours("bundledeployments.core.rukpak.io")["metadata"]["labels"];
    assert_eq!(labels["applyset.kubernetes.io/is-parent-type"], "true");
}

#[test]
fn every_rule_is_in_the_schema() {
    fn rules(path: &str, schema: &Value, found: &mut Vec<String>) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            found.push(format!("{path}: {}", rule["message"].as_str().unwrap()));
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            rules(&format!("{path}.{name}"), member, found);
        }
        if schema["items"].is_object() {
            rules(&format!("{path}[]"), &schema["items"], found);
        }
    }
    let crd = ours("bundledeployments.core.rukpak.io");
    let mut found = Vec::new();
    rules("", schema(&crd), &mut found);
    insta::assert_snapshot!(found.join("\n"), @r#"
    .spec.source: type must be one of image, git, configMaps, http, upload
    .spec.source: exactly one of image, git, configMaps, http, upload must be set
    .spec.source: image must be set for source type "image"
    .spec.source: git must be set for source type "git"
    .spec.source: configMaps must be set for source type "configMaps"
    .spec.source: http must be set for source type "http"
    .spec.source: upload must be set for source type "upload"
    .spec.source.configMaps[].path: path is outside the bundle root
    .spec.source.git.directory: directory must define a path within the repository
    .spec.source.git.ref: exactly one of branch, tag, commit, semver must be set
    .spec.source.image.verification: at least one of allOf, anyOf must be set
    .spec.source.image.verification.allOf[]: exactly one of publicKey, keyless, githubAction must be set
    .spec.source.image.verification.anyOf: minimumMatches must not be more than the number of signers
    .spec.source.image.verification.anyOf.signers[]: exactly one of publicKey, keyless, githubAction must be set
    "#);
    assert_eq!(schema(&crd)["properties"]["metadata"]["properties"]["name"]["maxLength"], 52);
}

#[test]
fn the_yaml_round_trips() {
    let yaml = crds_yaml().unwrap();
    assert_eq!(yaml, crds_yaml().unwrap());
    let documents: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let wanted: Vec<Value> = crds().into_iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    assert_eq!(documents, wanted);
}

/// `deploy/crds.yaml` is what an administrator applies; `cargo xtask generate` writes it.
#[test]
fn the_committed_crds_are_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds.yaml");
    let committed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        committed.trim_end(),
        crds_yaml().unwrap().trim_end(),
        "run `cargo xtask generate` and commit the result"
    );
}
