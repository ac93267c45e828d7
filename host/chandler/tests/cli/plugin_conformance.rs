//! `chandler plugin conformance`: the provisioners of this repository conform, and those that misbehave on purpose fail the checks that show it.

use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    plugin_authors::{case, case_of},
    support::{chandler, root},
};

const LAMPS: &str = "target/plugins/test/lamps.wasm";
const HOSTILE: &str = "target/plugins/test/hostile.wasm";
const NORTH_HEAD: &str = "docs/tutorial/north-head";

#[track_caller]
fn assert_conforms(component: &str, bundle: &str) {
    let (_home, case) = case_of(bundle);
    let outcome = chandler(["plugin", "conformance", component, "--case", &case], "");
    assert_eq!(outcome.code, Some(0), "{component}: {}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains(" 0 failed"), "{}", outcome.stderr);
}

#[test]
fn the_plain_provisioner_conforms() {
    assert_conforms("target/plugins/plain.wasm", "tests/fixtures/plain/lighthouse");
}

#[test]
fn the_registry_provisioner_conforms() {
    assert_conforms("target/plugins/registry.wasm", "tests/fixtures/registry/harbour-operator.v0.1.0");
}

#[test]
fn the_provisioner_of_sets_conforms() {
    let home = tempfile::tempdir().unwrap();
    let member = |name: &str, annotations: &str| {
        format!(
            "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  \
             installNamespace: heads\n  provisionerClassName: core-rukpak-io-plain\n  source:\n    type: image\n    image:\n      \
             ref: registry.example.com/{name}:v1\n"
        )
    };
    let set = format!(
        "{}---\n{}",
        member("harbour", ""),
        member("lighthouse", "resolveset.chandler.dev/depends-on: harbour")
    );
    case(&home.path().join("bundle"), &[("set.yaml", &set)]);
    assert_conforms("target/plugins/resolveset.wasm", home.path().join("bundle").to_str().unwrap());
}

#[test]
fn the_provisioner_of_charts_conforms() {
    let home = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  n: {{ .Values.replicas | quote }}\n";
    let crd =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: ships.example.com\n";
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("values.yaml", "replicas: 1\n"),
        ("crds/ships.yaml", crd),
        ("templates/map.yaml", map),
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        ("charts/sub/values.yaml", "depth: 3\n"),
    ];
    case(&home.path().join("bundle"), &files);
    assert_conforms("target/plugins/helm.wasm", home.path().join("bundle").to_str().unwrap());
}

#[test]
fn the_provisioner_of_the_tutorial_conforms() {
    assert_conforms(LAMPS, NORTH_HEAD);
}

/// The checks that a component fails with this bundle, each with its first problem.
fn failures(component: &str, bundle: &[(&str, &str)], more: &[&str]) -> Vec<(String, String)> {
    let home = tempfile::tempdir().unwrap();
    case(&home.path().join("case/bundle"), bundle);
    let path = home.path().join("case");
    let arguments = ["plugin", "conformance", component, "--case", path.to_str().unwrap(), "-o", "json"];
    let outcome = chandler([&arguments[..], more].concat(), "");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let failed = report["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "failed");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    failed.map(|check| (text(&check["name"]), text(&check["problems"][0]))).collect()
}

/// The first problem of a check that fails.
fn problem<'a>(failures: &'a [(String, String)], check: &str) -> &'a str {
    let found = failures.iter().find(|(name, _)| name == check);
    assert!(found.is_some(), "{check} does not fail: {failures:?}");
    &found.unwrap().1
}

#[test]
fn a_provisioner_that_crashes_does_not_conform() {
    let directory = tempfile::tempdir().unwrap();
    let badge = directory.path().join("badge.json");
    let bundle = [("detect", "hostile+v0"), ("provision", "panic")];
    let failures = failures(HOSTILE, &bundle, &["--badge", badge.to_str().unwrap()]);
    assert!(problem(&failures, "renders").contains("crashed"), "{failures:?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&badge).unwrap()).unwrap();
    assert_eq!((&written["schemaVersion"], &written["color"]), (&json!(1), &json!("red")));
}

/// A component of `tests/guests/components`, in a file.
fn guest(name: &str, directory: &Path) -> String {
    let archive = File::open(root().join(format!("tests/guests/components/{name}.wasm.zst"))).unwrap();
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(archive).unwrap().read_to_end(&mut bytes).unwrap();
    let path = directory.join(format!("{name}.wasm"));
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Its bundle is the name of the failure that it returns, which is any text: nothing else is wrong with it.
#[test]
fn the_provisioner_of_the_contract_fails_as_its_bundles_say() {
    let directory = tempfile::tempdir().unwrap();
    let contract = guest("contract-0.1.0", directory.path());
    let failures = failures(&contract, &[("contract", "\n")], &[]);
    assert!(problem(&failures, "hostile-contents").contains("the bundle wants "), "{failures:?}");
    assert_eq!(failures.len(), 1, "{failures:?}");
}

/// The provisioner in JavaScript changes each JSON value as if it were an object, and throws if it is not: this is found, and nothing else once the
/// component declares its facts.
#[test]
fn a_provisioner_in_javascript_that_does_not_check_its_input_fails_for_that_alone() {
    let directory = tempfile::tempdir().unwrap();
    let bare = guest("quickjs", directory.path());
    let bell = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bell"},"data":{}}"#;
    let bundle = [("objects/bell.json", bell)];
    let declared = directory.path().join("declared.wasm").to_str().unwrap().to_owned();
    let facts = ["--name", "objects", "--version", "1.0.0", "--format", "objects+v0"];
    chandler([&["plugin", "annotate", &bare, "--to", &declared], &facts[..]].concat(), "").data();
    let failures = failures(&declared, &bundle, &[]);
    let thrown = problem(&failures, "hostile-contents");
    assert!(thrown.contains("objects/bell.json is null: the provisioner crashed"), "{thrown}");
    assert_eq!(failures.len(), 1, "{failures:?}");
}
