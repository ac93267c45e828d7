//! Provisioners in other languages, built only from the contract; see tests/guests/README.md.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

use std::{
    fs,
    io::Read as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::{Content, Fact, Reason, Release, Severity, Target};
use chandler_engine::{CompileLimits, Compiler, Engine, EngineOptions, Limits, Provisioned, Provisioner};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    contract,
    support::{self, content, request},
};

/// The JavaScript or Python engine, and the source.
const COMPONENTS: [(&str, &str); 3] = [
    ("quickjs", "javascript/provisioner.js"),
    ("starlingmonkey", "javascript/provisioner.js"),
    ("python", "python/app.py"),
];

pub(crate) fn guests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests")
}

/// A component of `tests/guests/components`.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let path = guests().join(format!("components/{name}.wasm.zst"));
    let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// A bundle of two objects, one of which contains non-ASCII text.
fn bundle() -> Arc<dyn Content> {
    content([
        (
            "objects/b.json",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"text":"Grüße ⚓"}}"#,
        ),
        (
            "objects/a.json",
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","labels":{"app":"a"}},"spec":{"ports":[{"port":80}]}}"#,
        ),
        ("objects/README.md", "not an object"),
    ])
}

async fn provision(provisioner: &Provisioner, target: &Target) -> Provisioned {
    let mut request = request(json!({"labels": {"team": "harbour"}}));
    request.target = target.clone();
    provisioner.provision_and_record(&request, bundle(), &Limits::default()).await
}

/// Asserts what every language must do within the default limits.
async fn assert_conforms(name: &str, provisioner: &Provisioner) -> Release {
    let limits = Limits::default();
    assert_eq!(provisioner.facts().contract, "0.1.0", "{name}");
    let format = provisioner.detect(bundle(), &limits).await.unwrap();
    assert_eq!(format.as_deref(), Some("objects+v0"), "{name}");
    assert_eq!(provisioner.detect(content([("manifests/a.yaml", "")]), &limits).await.unwrap(), None, "{name}");

    let cluster = Target {
        name: "harbour".into(),
        namespace: "port".into(),
        kubernetes_version: "v1.36.0".into(),
        api_kinds: vec!["v1/Pod".into()],
    };
    let Provisioned { result, asked, .. } = provision(provisioner, &cluster).await;
    let release = result.unwrap_or_else(|error| panic!("{name}: {error}"));
    let ox = Fact::Serves { api_version: "example.com/v1".into(), kind: "Ox".into() };
    let oxen = Fact::Supports { feature: "oxen".into() };
    assert_eq!(asked, [Fact::Namespace, ox, oxen].into_iter().collect(), "{name}");
    let codes: Vec<(Severity, &str)> =
        release.findings().iter().map(|finding| (finding.severity, finding.code.as_str())).collect();
    assert_eq!(codes, [(Severity::Warning, "NoOxen")], "{name}");
    let nowhere = Target { kubernetes_version: String::new(), api_kinds: Vec::new(), ..cluster };
    assert!(provision(provisioner, &nowhere).await.result.unwrap().findings().is_empty(), "{name}");

    let broken = content([("objects/a.json", "{"), ("objects/b.json", "[")]);
    let error = provisioner.provision(&request(json!({})), broken, &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::InvalidContent, "{name}: {error}");
    let findings: Vec<String> = error.diagnostics().iter().map(ToString::to_string).collect();
    let want = ["a", "b"].map(|file| format!("objects/{file}.json:1:1: is not JSON (help: fix it)"));
    assert_eq!(findings, want, "{name}");
    let error = provisioner.provision(&request(json!({"labels": 7})), bundle(), &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::InvalidConfiguration, "{name}: {error}");
    assert_exceptions_are_shown(name, provisioner).await;
    release
}

/// An uncaught exception is a trap, which says nothing by itself. The exception is in standard error.
async fn assert_exceptions_are_shown(name: &str, provisioner: &Provisioner) {
    let without_metadata = content([("objects/a.json", "{}")]);
    let error = provisioner.provision(&request(json!({})), without_metadata, &Limits::default()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::PluginTrapped, "{name}: {error}");
    let (exception, place) = match name {
        // Built without WASI.
        "python" => return,
        "quickjs" => ("'labels' of undefined", "at provision"),
        _ => ("metadata is undefined", "provision"),
    };
    let text = error.to_string();
    assert!(text.contains(exception) && text.contains(place), "{name}: {text}");
}

#[tokio::test]
async fn components_in_other_languages_make_the_same_release_within_the_limits() {
    let cache = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_chandler-compile").into();
    let engine = Engine::new(EngineOptions {
        cache_directory: Some(cache.path().to_owned()),
        compiler: Compiler::Child { program, arguments: Vec::new() },
        // Waiting for a processor is not the component's fault; the limit on CPU time is what matters.
        compile_limits: CompileLimits { time: Duration::from_mins(30), ..CompileLimits::default() },
        ..EngineOptions::default()
    })
    .unwrap();
    let mut releases = Vec::new();
    for (name, _) in COMPONENTS {
        let wasm = component(name);
        let started = Instant::now();
        let provisioner = engine.load(&wasm).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let compiled = started.elapsed();
        let release = assert_conforms(name, &provisioner).await;
        let started = Instant::now();
        provision(&provisioner, &Target::default()).await.result.unwrap();
        println!("{name}: {} bytes, compiled in {compiled:?}, rendered in {:?}", wasm.len(), started.elapsed());
        releases.push(release);
    }
    let [first, others @ ..] = releases.as_slice() else { panic!("no releases") };
    let text = serde_json::to_string_pretty(&json!({
        "objects": first.objects().iter().map(|object| &object.value).collect::<Vec<_>>(),
        "origins": first.objects().iter().map(|object| object.origin.clone().unwrap().path).collect::<Vec<_>>(),
        "probes": first.probes(),
        "description": first.description(),
    }));
    insta::assert_snapshot!(text.unwrap());
    for other in others {
        assert_eq!(other, first);
        assert_eq!(other.digest(), first.digest());
    }
}

/// Without the custom section of the contract, the name comes from the sections that common tools write.
#[tokio::test]
async fn common_tools_can_name_a_component() {
    let mut add = wasm_metadata::AddMetadata::default();
    add.name = wasm_metadata::AddMetadataField::Set("objects".to_owned());
    let mut named = add.to_wasm(&chandler_test_components::idle()).unwrap();
    // A custom section: its id, its length, the length of its name, its name and its content.
    named.extend([&[0, 13, 7][..], b"version1.2.3"].concat());
    let provisioner = support::engine().load(&named).await.unwrap();
    assert_eq!((provisioner.facts().name.as_str(), provisioner.facts().version.as_str()), ("objects", "1.2.3"));
}

/// Checks that the components were built from the current sources.
#[test]
fn components_match_their_sources() {
    let text = |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let contract = contract::declarations(&text(guests().join("../../wit/0.1.0/provisioner.wit")));
    let mut lines = String::new();
    for (name, source) in COMPONENTS {
        let mut hash = Sha256::new();
        hash.update(&contract);
        hash.update(text(guests().join(source)));
        lines = format!("{lines}{:x}  {name}\n", hash.finalize());
    }
    // These are the digests of the components themselves, which are never built again; the source is `contract`.
    for contract::Published { version, component, .. } in contract::PUBLISHED {
        lines = format!("{lines}{component}  contract-{version}\n");
    }
    let kept = guests().join("components/SOURCES");
    if std::env::var_os("CHANDLER_BLESS").is_some() {
        fs::write(&kept, &lines).unwrap();
    }
    assert_eq!(text(kept), lines, "rebuild them as described in tests/guests/README.md");
}
