//! `chandler lint`.

use std::fs;

use serde_json::Value;

use crate::support::{Outcome, chandler, root};

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";

/// A copy of the sample bundle with errors in several files.
fn broken() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for part in ["manifests", "metadata"] {
        fs::create_dir(directory.path().join(part)).unwrap();
        for entry in fs::read_dir(root().join(HARBOUR).join(part)).unwrap() {
            let entry = entry.unwrap().path();
            fs::copy(&entry, directory.path().join(part).join(entry.file_name().unwrap())).unwrap();
        }
    }
    let csv = directory.path().join("manifests/harbour-operator.clusterserviceversion.yaml");
    let text = fs::read_to_string(&csv).unwrap();
    let name = text.lines().find(|line| line.trim_start().starts_with("version:")).unwrap();
    fs::write(&csv, text.replace(name, "  version: not.a.version")).unwrap();
    fs::write(directory.path().join("manifests/tabs.yaml"), "kind: ConfigMap\n\tapiVersion: v1\n").unwrap();
    directory
}

#[test]
fn a_valid_bundle_has_no_errors() {
    let outcome = chandler(["lint", HARBOUR], "");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("0 errors, "), "{}", outcome.stderr);
}

#[test]
fn a_name_that_api_servers_refuse_is_an_error() {
    let bundle = tempfile::tempdir().unwrap();
    fs::create_dir(bundle.path().join("manifests")).unwrap();
    let manifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_b}\n---\n\
                     apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:A_b'}\n";
    fs::write(bundle.path().join("manifests/tides.yaml"), manifests).unwrap();
    let outcome = chandler(["lint", bundle.path().to_str().unwrap(), "-o", "json"], "");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let [finding] = report["findings"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!(finding["code"], "InvalidObjectName");
    assert!(finding["message"].as_str().unwrap().starts_with("ConfigMap A_b has "), "{finding}");
    assert_eq!(finding["location"]["path"], "manifests/tides.yaml");
}

#[test]
fn all_errors_are_printed_with_their_location() {
    let bundle = broken();
    let path = bundle.path().to_str().unwrap();
    let outcome = chandler(["lint", path, "-o", "json"], "");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&report["bundle"], &report["format"]), (&path.into(), &"registry+v1".into()));
    let findings = report["findings"].as_array().unwrap();
    let paths: Vec<&str> = findings.iter().map(|finding| finding["location"]["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&"manifests/tabs.yaml"), "{findings:#?}");
    assert!(findings.iter().all(|finding| !finding["message"].as_str().unwrap().is_empty()));

    let text = chandler(["lint", path], "");
    assert!(text.stdout.contains("manifests/tabs.yaml:1:7]"), "{}", text.stdout);
    assert!(text.stderr.contains("error"), "{}", text.stderr);
}

#[test]
fn sarif_has_rules_and_locations() {
    let bundle = broken();
    let outcome = chandler(["lint", bundle.path().to_str().unwrap(), "-o", "sarif"], "");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let log: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
        assert!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string(), "{result}");
    }
}

#[test]
fn an_invalid_configuration_is_a_finding_and_strict_fails_on_warnings() {
    let outcome = chandler(["lint", HARBOUR, "--config", "-", "-o", "json"], "nonsense: 1\n");
    assert_eq!(outcome.code, Some(1));
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["findings"][0]["location"]["path"], "config");
    // Kubernetes accepts a duplicate key in YAML, but it is probably a mistake.
    let twice = "watchNamespace: a\nwatchNamespace: harbour-operator-system\n";
    let lenient = chandler(["lint", HARBOUR, "--config", "-"], twice);
    assert_eq!(lenient.code, Some(0), "{}{}", lenient.stdout, lenient.stderr);
    let strict = chandler(["lint", HARBOUR, "--strict", "--config", "-"], twice);
    assert_eq!(strict.code, Some(1), "{}", strict.stdout);
}

/// A bundle that makes the hostile provisioner emit this probe.
fn probed(rule: &str, detected: &str) -> tempfile::TempDir {
    let bundle = tempfile::tempdir().unwrap();
    for (name, text) in [("provision", "probe"), ("argument", rule), ("detect", detected)] {
        fs::write(bundle.path().join(name), text).unwrap();
    }
    bundle
}

/// What a command prints about a bundle with this provisioner of the tests.
fn with_hostile(command: &str, bundle: &tempfile::TempDir, more: &[&str]) -> Outcome {
    let path = bundle.path().to_str().unwrap();
    let component = root().join("target/plugins/test/hostile.wasm");
    let arguments = [command, path, "--name", "pilot", "--provisioner", component.to_str().unwrap()];
    chandler([&arguments[..], more].concat(), "")
}

#[test]
fn probes_are_shown_and_checked_as_by_the_controller() {
    let good = probed("has(self.data)", "hostile+v0");
    for command in ["lint", "render"] {
        let outcome = with_hostile(command, &good, &[]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("probe: ConfigMap first: has(self.data)\n"), "{}", outcome.stderr);
    }
    let outcome = with_hostile("lint", &good, &["-o", "json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&report["probes"][0]["rule"], &report["format"]), (&"has(self.data)".into(), &"hostile+v0".into()));

    let bad = probed("self.data ==", "hostile+v0");
    let outcome = with_hostile("lint", &bad, &["-o", "json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((outcome.code, &report["findings"][0]["code"]), (Some(1), &"InvalidProbe".into()), "{report:#}");
    let outcome = with_hostile("render", &bad, &[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("probe 0 of the release.rule, line 1"), "{}", outcome.stderr);
}

#[test]
fn a_provisioner_is_asked_for_the_format_of_the_bundle() {
    let bundle = probed("true", "hostile+v0");
    let warnings = |bundle: &tempfile::TempDir| {
        let outcome = with_hostile("lint", bundle, &["-o", "json"]);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let codes =
            report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap().to_owned());
        (outcome.code, codes.collect::<Vec<_>>())
    };
    assert_eq!(warnings(&bundle), (Some(0), vec![]));
    assert!(with_hostile("render", &bundle, &[]).stderr.contains("hostile.wasm (hostile+v0)"));
    assert_eq!(warnings(&probed("true", "other+v0")), (Some(0), vec!["UndeclaredFormat".to_owned()]));
    fs::remove_file(bundle.path().join("detect")).unwrap();
    assert_eq!(warnings(&bundle), (Some(0), vec!["NotDetected".to_owned()]));
    assert!(with_hostile("render", &bundle, &[]).stderr.contains("spec.provisionerClassName"));
}
