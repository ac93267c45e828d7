//! OLM v1's golden objects, and bundles of rukpak's test data.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use std::fs;

use chandler_expected::{canonical, difference, identity, without_empty_maps};
use chandler_sdk::Failure;
use serde_json::{Value, json};

use crate::support::{fixtures, render, values};

fn yaml(path: &std::path::Path) -> Value {
    let bytes = fs::read(path).unwrap();
    let documents = chandler_yaml::parse(&bytes, &chandler_yaml::Limits::default()).unwrap();
    documents.first().unwrap().root.to_json()
}

#[test]
fn golden_objects_match_olm_v1() {
    let Some(fixtures) = fixtures() else { return };
    let index = fs::read(fixtures.join("vectors/registry_golden_index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    let cases = index["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let mut config = json!({});
        match case["targetNamespaces"][0].as_str().unwrap() {
            "" => {}
            target => config["watchNamespace"] = json!(target),
        }
        if !case["deploymentConfig"].is_null() {
            config["deploymentConfig"] = case["deploymentConfig"].clone();
        }
        let bundle = fixtures.join(case["bundle"].as_str().unwrap());
        // Without an OLM v1 error there is nothing to fix.
        let render = |compatibility: &str| {
            config["compatibility"] = json!(compatibility);
            render(&bundle, case["installNamespace"].as_str().unwrap(), &config).unwrap()
        };
        let [rendered, extended] = ["reference", "extended"].map(render);
        assert_eq!(rendered.objects, extended.objects, "{name}");
        let directory = fixtures.join(case["expectedDir"].as_str().unwrap());
        let want = case["files"].as_array().unwrap().iter().map(|file| yaml(&directory.join(file.as_str().unwrap())));
        // The golden files omit empty maps.
        let comparable = |objects: Vec<Value>| canonical(canonical(objects).into_iter().map(without_empty_maps));
        let (want, got) = (comparable(want.collect()), comparable(values(rendered).collect()));
        assert_eq!(got.len(), usize::try_from(case["objectCount"].as_u64().unwrap()).unwrap(), "{name}");
        for (want, got) in want.iter().zip(&got) {
            assert_eq!(identity(want), identity(got), "{name}");
            assert_eq!(difference(want, got), None, "{name}: {}", identity(want));
        }
    }
}

#[test]
fn role_names_match_the_vectors() {
    let Some(fixtures) = fixtures() else { return };
    let vectors: Value = serde_json::from_slice(&fs::read(fixtures.join("vectors/rbac_names.json")).unwrap()).unwrap();
    let bundle = fixtures.join("registry/argocd-operator.v0.6.0");
    let mut compared = 0;
    for row in vectors["rows"].as_array().unwrap() {
        if row["bundle"] != "argocd-operator.v0.6.0" {
            continue;
        }
        let config =
            if row["case"] == "all-namespaces" { json!({}) } else { json!({"watchNamespace": "argocd-system"}) };
        let objects: Vec<Value> = values(render(&bundle, "argocd-system", &config).unwrap()).collect();
        let found =
            objects.iter().any(|object| object["kind"] == row["kind"] && object["metadata"]["name"] == row["name"]);
        assert!(found, "{row}");
        compared += 1;
    }
    assert!(compared >= 3, "{compared}");
}

#[test]
fn the_valid_bundle_renders() {
    let Some(fixtures) = fixtures() else { return };
    let config = json!({"watchNamespace": "prometheus"});
    let rendered = render(&fixtures.join("registry/valid"), "prometheus", &config).unwrap();
    let mut kinds: Vec<String> = values(rendered).map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    kinds.dedup();
    insta::assert_compact_json_snapshot!(
        kinds,
        @r#"["ServiceAccount", "Role", "RoleBinding", "Role", "RoleBinding", "CustomResourceDefinition", "Deployment"]"#
    );
}

#[test]
fn the_invalid_bundle_is_refused_with_a_location() {
    let Some(fixtures) = fixtures() else { return };
    let Err(Failure::Unsupported(findings)) = render(&fixtures.join("registry/invalid"), "updates", &json!({})) else {
        panic!("the bundle supports MultiNamespace alone");
    };
    let findings: Vec<String> = findings
        .iter()
        .map(|finding| {
            let place = finding.location.as_ref().unwrap();
            let help = finding.help.as_deref().unwrap_or_default();
            format!(
                "{}:{} {}: {} ({help})",
                place.path,
                place.line().unwrap_or_default(),
                finding.code,
                finding.message
            )
        })
        .collect();
    insta::assert_snapshot!(findings.join("\n"), @"manifests/update-service-operator.clusterserviceversion.yaml:12 InstallModesUnsupported: unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes (name the namespaces that the operator should watch in watchNamespaces)");
    let config = json!({"watchNamespaces": ["a", "b"]});
    let release = render(&fixtures.join("registry/invalid"), "updates", &config).unwrap();
    assert_eq!((release.objects.len(), release.findings[0].code.as_str()), (0, "NothingToInstall"));
}
