//! How the host handles provisioners in the sandbox.
//!
//! An input is an archive. With a file `provision`, `config-schema` or `detect` it is for the hostile provisioner, which returns what
//! the input says; otherwise it is a bundle for the first-party provisioners.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use chandler_core::{Content, Diagnostic, MemoryContent, Release};
use chandler_engine::{CallError, Engine, EngineOptions, Limits, Provisioner};
use chandler_plain::Plain;
use chandler_registry::Registry;
use chandler_sdk::{
    Failure,
    testing::{Bundle, Recorder, run},
};
use tokio::runtime::Runtime;

use crate::{archive::Archive, archives::runtime, memory};

/// The host heap that a call may take, without the memory of the guest: objects, findings and text that the guest returns.
const FIXED: usize = 64 << 20;
const PER_BYTE: usize = 4000;

/// Small limits, so that inputs reach them, but enough for first-party provisioners on bundles of this size.
fn limits(time: Duration) -> Limits {
    Limits {
        time,
        memory: 128 << 20,
        object_bytes: 256 << 10,
        output_bytes: 2 << 20,
        objects: 200,
        probes: 20,
        diagnostics: 30,
        log_bytes: 4 << 10,
        log_lines: 20,
        ..Limits::default()
    }
}

struct Provisioners {
    registry: Provisioner,
    plain: Provisioner,
    hostile: Provisioner,
}

fn provisioners() -> &'static Provisioners {
    static PROVISIONERS: OnceLock<Provisioners> = OnceLock::new();
    PROVISIONERS.get_or_init(|| {
        let load = |name: &str| runtime().block_on(engine().load(&component(name))).expect("a component that loads");
        Provisioners { registry: load("registry.wasm"), plain: load("plain.wasm"), hostile: load("test/hostile.wasm") }
    })
}

/// Compiles the provisioners in advance, since this takes longer than one input may.
pub fn prepare() {
    provisioners();
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let options = EngineOptions { concurrency: 2, ..EngineOptions::default() };
        Engine::new(options).expect("an engine")
    })
}

/// A component that `cargo xtask plugins` built.
fn component(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let plugins = std::env::var_os("CHANDLER_PLUGINS").map_or_else(|| root.join("target/plugins"), Into::into);
    let path = plugins.join(name);
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()))
}

pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let provisioners = provisioners();
    if ["provision", "config-schema", "detect"].iter().any(|name| archive.files.contains_key(*name)) {
        let limits = limits(Duration::from_millis(300));
        let content = content(&archive);
        if let Err(error) = runtime().block_on(provisioners.hostile.detect(Arc::clone(&content), &limits)) {
            assert_error(&error, &limits);
        }
        let result = call(runtime(), &provisioners.hostile, &archive, input, &limits);
        return assert_result(&result, &limits);
    }
    let limits = limits(Duration::from_secs(10));
    for (provisioner, native) in [
        (&provisioners.registry, run::<Registry> as fn(&dyn chandler_sdk::Content, &_) -> _),
        (&provisioners.plain, run::<Plain>),
    ] {
        let result = call(runtime(), provisioner, &archive, input, &limits);
        assert_result(&result, &limits);
        if let Err(error @ (CallError::Trapped(_) | CallError::InvalidOutput(_) | CallError::Failed { .. })) = &result {
            panic!("a first-party provisioner misbehaves: {error}");
        }
        let native = native(&Bundle::new(archive.files.clone()), &archive.guest_request());
        assert_equal(&result, &native, &limits);
    }
}

fn content(archive: &Archive) -> Arc<dyn Content> {
    Arc::new(MemoryContent::new(archive.files.clone()))
}

fn call(
    runtime: &Runtime,
    provisioner: &Provisioner,
    archive: &Archive,
    input: &[u8],
    limits: &Limits,
) -> Result<Release, CallError> {
    let provision = || runtime.block_on(provisioner.provision(&archive.request(), content(archive), limits));
    memory::bounded(input, FIXED, PER_BYTE, provision)
}

/// Asserts that a result is within the limits, sanitized, and that an error has a reason.
fn assert_result(result: &Result<Release, CallError>, limits: &Limits) {
    let release = match result {
        Ok(release) => release,
        Err(error) => return assert_error(error, limits),
    };
    assert!(release.objects().len() <= limits.objects as usize);
    assert!(release.probes().len() <= limits.probes as usize);
    assert_findings(release.findings(), limits);
    let texts = release.objects().iter().map(|object| serde_json::to_string(&object.value).expect("JSON"));
    let sizes: Vec<u64> = texts.map(|text| text.len() as u64).collect();
    // Escapes are expanded: `ä` may have been sent as six bytes, but never as fewer than its encoding takes.
    assert!(sizes.iter().all(|size| *size <= limits.object_bytes * 6), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() <= limits.output_bytes * 6, "{sizes:?}");
}

fn assert_error(error: &CallError, limits: &Limits) {
    let text = error.to_string();
    assert!(!text.trim().is_empty() && !error.reason().as_str().is_empty());
    assert!(!text.contains(chandler_core::text::is_deceptive), "control characters in {text:?}");
    assert!(!matches!(error, CallError::Internal(_)), "{text}");
    assert_findings(error.diagnostics(), limits);
    let refused = matches!(
        error,
        CallError::InvalidContent(_)
            | CallError::InvalidConfiguration(_)
            | CallError::UnsupportedContent(_)
            | CallError::Failed { .. }
    );
    assert_eq!(refused, !error.diagnostics().is_empty(), "a refusal without findings: {text}");
}

fn assert_findings(findings: &[Diagnostic], limits: &Limits) {
    assert!(findings.len() <= limits.diagnostics as usize + 1, "{} findings", findings.len());
    for finding in findings {
        assert!(finding.message.len() <= 4 << 10 && finding.code.len() <= 256, "{finding:?}");
        let place = finding.location.as_ref().map(|location| location.path.as_str());
        let texts = [Some(finding.code.as_str()), Some(finding.message.as_str()), place, finding.help.as_deref()];
        for text in texts.into_iter().flatten() {
            assert!(!text.contains(chandler_core::text::is_deceptive), "control characters in {text:?}");
        }
    }
}

/// Asserts that the sandbox changes no result, as long as its limits are not reached.
fn assert_equal(result: &Result<Release, CallError>, native: &Result<Recorder, Failure>, limits: &Limits) {
    let codes =
        |findings: Vec<&str>| findings.into_iter().take(limits.diagnostics as usize).map(str::to_owned).collect();
    match (result, native) {
        (Ok(release), Ok(recorder)) => {
            let sort = |mut objects: Vec<String>| {
                objects.sort();
                objects
            };
            let inside = release.objects().iter().map(|object| serde_json::to_string(&object.value).expect("JSON"));
            let outside = recorder.objects.iter().map(|object| {
                let parsed = chandler_core::Object::parse(object.value.to_string().as_bytes(), 0, None);
                serde_json::to_string(&parsed.expect("an object").value).expect("JSON")
            });
            assert_eq!(sort(inside.collect()), sort(outside.collect()), "the sandbox makes other objects");
        }
        (Err(error), Err(failure)) if !error.diagnostics().is_empty() => {
            // The host validates the configuration with the schema first.
            if !matches!(error, CallError::InvalidConfiguration(_)) {
                let inside: Vec<String> =
                    codes(error.diagnostics().iter().map(|finding| finding.code.as_str()).collect());
                let outside: Vec<String> =
                    codes(failure.diagnostics().iter().map(|finding| finding.code.as_str()).collect());
                assert_eq!(inside[..outside.len()], outside, "the sandbox finds something else");
            }
        }
        (Err(CallError::InvalidConfiguration(_)), Ok(_)) | (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => {
            assert!(error.diagnostics().is_empty(), "rejected only in the sandbox: {error}");
        }
        (Ok(_), Err(failure)) => panic!("refused outside the sandbox alone: {failure}"),
    }
}

/// Any bytes are rejected as a component with a reason, or loaded and then as harmless as any other component.
pub(crate) fn component_holds(input: &[u8]) {
    let loaded = memory::bounded(input, 256 << 20, 20_000, || runtime().block_on(engine().load(input)));
    let provisioner = match loaded {
        Ok(provisioner) => provisioner,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.trim().is_empty() && !error.reason().as_str().is_empty());
            assert!(text.len() < 64 << 10, "{} bytes", text.len());
            assert!(!matches!(error, chandler_engine::LoadError::Internal(_)), "{text}");
            return assert!(!text.contains(chandler_core::text::is_deceptive), "control characters in {text:?}");
        }
    };
    let limits = limits(Duration::from_millis(300));
    let archive = Archive::read(b"-- manifests/a.yaml --\na: 1\n");
    if let Err(error) = runtime().block_on(provisioner.detect(content(&archive), &limits)) {
        assert_error(&error, &limits);
    }
    assert_result(&call(runtime(), &provisioner, &archive, input, &limits), &limits);
}
