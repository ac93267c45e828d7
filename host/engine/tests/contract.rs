//! The published versions of the contract: what they declare never changes, and a component that was built against one keeps running. See
//! docs/contributing/contract.md.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{collections::BTreeSet, fs};

use chandler_core::{Diagnostic, Fact, Reason, Target};
use chandler_engine::{CallError, Limits, Provisioned, Provisioner};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    languages::{component, guests},
    support::{content, engine, request},
};

/// A version of the contract that components were published with.
pub(crate) struct Published {
    pub(crate) version: &'static str,
    /// SHA-256 of its declarations, without comments.
    declarations: &'static str,
    /// SHA-256 of its component, `tests/guests/components/contract-VERSION.wasm.zst`, which `cargo xtask contract` built once.
    pub(crate) component: &'static str,
}

/// All versions. A new one gets a new entry; an entry never changes.
pub(crate) const PUBLISHED: &[Published] = &[Published {
    version: "0.1.0",
    declarations: "621f77c9a7577dd2d72d54c1f3837d1aec2ba80e09256377fdb40ee7ad1c14ee",
    component: "5b5257e3c29340c0fa51627b9a2b09481a17b1b46f39ab8fa8be917ad61a8c2b",
}];

/// What a contract declares: its text without comments, empty lines and indentation.
pub(crate) fn declarations(wit: &str) -> String {
    let lines = wit.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[test]
fn a_published_version_never_changes() {
    let directory = guests().join("../../wit");
    let found: BTreeSet<String> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let known: BTreeSet<String> = PUBLISHED.iter().map(|published| published.version.to_owned()).collect();
    assert_eq!(found, known, "each directory of wit/ is a version in PUBLISHED (docs/contributing/contract.md)");
    for Published { version, declarations: digest, .. } in PUBLISHED {
        let files: Vec<String> = fs::read_dir(directory.join(version))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(files, ["provisioner.wit"], "a version is one file");
        let text = fs::read_to_string(directory.join(version).join("provisioner.wit")).unwrap();
        assert_eq!(
            sha256(declarations(&text).as_bytes()),
            *digest,
            "wit/{version} declares something else than when it was published, and components are built against it. Undo the change, copy \
             the directory to the next version, and add functions to the imported interfaces there: docs/contributing/contract.md"
        );
    }
}

#[test]
fn only_declarations_count() {
    let reworded = "/// A\n\n  interface x {\n   // B\n f: func();\n}\n";
    assert_eq!(declarations(reworded), "interface x {\nf: func();\n}");
}

#[test]
fn the_components_call_every_function_of_their_version() {
    for Published { version, component: digest, .. } in PUBLISHED {
        let wasm = component(&format!("contract-{version}"));
        assert_eq!(sha256(&wasm), *digest, "the component of a published version is never built again");
        let printed = wasmprinter::print_bytes(&wasm).unwrap();
        let mut resolve = wit_parser::Resolve::default();
        let text = fs::read_to_string(guests().join(format!("../../wit/{version}/provisioner.wit"))).unwrap();
        let package = resolve.push_str("provisioner.wit", &text).unwrap();
        for (interface, id) in &resolve.packages[package].interfaces {
            for function in resolve.interfaces[*id].functions.keys() {
                assert!(printed.contains(&format!("\"{function}\"")), "{version}: {interface}#{function}");
            }
        }
    }
}

/// What `provision` returns for a bundle whose file `contract` has this text.
async fn provision(provisioner: &Provisioner, wanted: &str, config: Value) -> Provisioned {
    let schema = r#"{"type":"object","additionalProperties":{"type":"integer"}}"#;
    let bundle = content([("contract", wanted), ("schema", schema), ("directory/file", "0123456789")]);
    let mut request = request(config);
    request.target = Target {
        kubernetes_version: "v1.36.0".into(),
        api_kinds: vec!["v1/Pod".into(), "apps/v1/Deployment".into()],
        ..request.target
    };
    provisioner.provision_and_record(&request, bundle, &Limits::default()).await
}

async fn failed(provisioner: &Provisioner, wanted: &str, config: Value) -> CallError {
    provision(provisioner, wanted, config).await.result.unwrap_err()
}

fn supports_oxen() -> Fact {
    Fact::Supports { feature: "oxen".into() }
}

#[tokio::test]
async fn components_of_all_published_versions_run() {
    let (engine, limits) = (engine(), Limits::default());
    for Published { version, .. } in PUBLISHED {
        let provisioner = engine.load(&component(&format!("contract-{version}"))).await.unwrap();
        let facts = provisioner.facts();
        assert_eq!(
            (facts.contract.as_str(), facts.name.as_str(), &*facts.formats),
            (*version, "contract", &["contract+v0".into()][..])
        );
        let bundle = content([("contract", ""), ("schema", "true")]);
        assert_eq!(provisioner.detect(bundle.clone(), &limits).await.unwrap().as_deref(), Some("contract+v0"));
        assert_eq!(provisioner.detect(content([]), &limits).await.unwrap(), None);
        assert_eq!(provisioner.config_schema(bundle, &limits).await.unwrap().as_deref(), Some("true"));
        assert_eq!(provisioner.config_schema(content([]), &limits).await.unwrap(), None);

        let Provisioned { result, asked, .. } = provision(&provisioner, "", json!({"a": 1})).await;
        let release = result.unwrap();
        let seen: Value = serde_json::from_str(release.objects()[0].value["data"]["value"].as_str().unwrap()).unwrap();
        insta::assert_snapshot!(
            format!("release-{version}"),
            serde_json::to_string_pretty(&json!({
                "seen": seen,
                "objects": release.objects().iter().map(|object| (object.stage, &object.key, &object.origin)).collect::<Vec<_>>(),
                "probes": release.probes(),
                "findings": release.findings(),
                "description": release.description(),
            }))
            .unwrap()
        );
        let pod = Fact::Serves { api_version: "v1".into(), kind: "Pod".into() };
        let read = [Fact::Name, Fact::Namespace, Fact::KubernetesVersion, Fact::ApiKinds, supports_oxen()];
        // A kind does not count once all of them were read.
        assert!(
            asked == read.iter().cloned().collect() || asked == read.iter().cloned().chain([pod]).collect(),
            "{asked:?}"
        );

        for (wanted, reason) in [
            ("invalid-content", Reason::InvalidContent),
            ("invalid-config", Reason::InvalidConfiguration),
            ("unsupported", Reason::UnsupportedContent),
            ("internal", Reason::ProvisionFailed),
            ("Storm", Reason::ProvisionFailed),
            ("panic", Reason::PluginTrapped),
            ("refusals", Reason::InvalidOutput),
        ] {
            let error = failed(&provisioner, wanted, json!({})).await;
            assert_eq!(error.reason(), reason, "{version} {wanted}: {error}");
            let findings: Vec<String> =
                error.diagnostics().iter().map(|finding: &Diagnostic| finding.message.clone()).collect();
            let is_wanted = findings == [format!("the bundle wants {wanted}")];
            assert_eq!(is_wanted, !matches!(wanted, "panic" | "refusals"), "{version} {wanted}: {findings:?}");
        }
        let error = failed(&provisioner, "", json!({"a": "text"})).await;
        assert_eq!(error.reason(), Reason::InvalidConfiguration, "{version}: {error}");
    }
}
