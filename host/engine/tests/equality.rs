//! A provisioner returns the same in the sandbox as when the same code runs natively.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{path::PathBuf, sync::Arc};

use chandler_core::{Content, MemoryContent, Object, Release, Request};
use chandler_engine::Limits;
use chandler_sdk::testing;
use serde_json::json;

use crate::support::{engine, plugin, request};

/// The files of a sample bundle of this repository.
fn bundle(name: &str) -> testing::Bundle {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    testing::Bundle::from_directory(&fixtures.join(name)).unwrap()
}

fn native<P: chandler_sdk::Provisioner>(bundle: &testing::Bundle, request: &Request) -> Release {
    let asked = chandler_sdk::Request::new().with_config(request.config.clone());
    let request = asked.with_name(&request.target.name).with_namespace(&request.target.namespace);
    let recorder = testing::run::<P>(bundle, &request).unwrap();
    let objects = recorder.objects.into_iter().map(|emitted| {
        let origin = emitted.origin.map(|origin| chandler_core::Location {
            path: origin.path,
            line: origin.start.map(|start| start.line),
            column: origin.start.map(|start| start.column),
            pointer: origin.pointer,
            ..chandler_core::Location::default()
        });
        Object::parse(emitted.value.to_string().as_bytes(), emitted.stage.unwrap_or(0), origin).unwrap()
    });
    Release::new(objects.collect(), Vec::new(), Vec::new())
}

async fn sandboxed(wasm: &[u8], bundle: &testing::Bundle, request: &Request) -> Release {
    use chandler_sdk::Content as _;
    let files = bundle.files("").into_iter().map(|entry| {
        let bytes = bundle.read(&entry.path).unwrap();
        (entry.path, bytes)
    });
    let content: Arc<dyn Content> = Arc::new(MemoryContent::new(files));
    engine().load(wasm).await.unwrap().provision(request, content, &Limits::default()).await.unwrap()
}

#[tokio::test]
async fn plain_bundles() {
    let (bundle, request) = (bundle("plain/lighthouse"), request(json!({})));
    let release = sandboxed(&plugin("plain.wasm"), &bundle, &request).await;
    assert!(!release.objects().is_empty());
    let native = native::<chandler_plain::Plain>(&bundle, &request);
    assert_eq!(release.objects(), native.objects());
    assert_eq!(release.digest(), native.digest());
}

#[tokio::test]
async fn registry_bundles() {
    let wasm = plugin("registry.wasm");
    for name in ["harbour-operator.v0.1.0", "harbour-operator.v0.2.0"] {
        let (bundle, request) = (bundle(&format!("registry/{name}")), request(json!({})));
        let release = sandboxed(&wasm, &bundle, &request).await;
        assert!(!release.objects().is_empty());
        let native = native::<chandler_registry::Registry>(&bundle, &request);
        assert_eq!(release.objects(), native.objects(), "{name}");
        assert_eq!(release.digest(), native.digest(), "{name}");
    }
}
