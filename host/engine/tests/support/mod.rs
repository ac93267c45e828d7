//! Helpers of the engine's tests.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

use std::{fs, path::PathBuf, sync::Arc};

use chandler_core::{Content, MemoryContent, Request, Target};
use chandler_engine::{CallError, Engine, EngineOptions, Limits, Provisioner};

/// A component that `cargo xtask plugins` built.
pub(crate) fn plugin(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let path = target.join("plugins").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()))
}

/// Options for an engine that compiles in this process. All tests share the compiled code with the end-to-end tests (`empty_cache` in
/// tests/src/world.rs): each test runs in its own process, which would otherwise compile the same component again.
pub(crate) fn options() -> EngineOptions {
    let program = std::env::current_exe().unwrap();
    let code = program.parent().unwrap().join("code-of-tests");
    EngineOptions { cache_directory: Some(code), ..EngineOptions::default() }
}

/// An engine with these options.
pub(crate) fn engine() -> Engine {
    Engine::new(options()).unwrap()
}

/// An engine that runs two calls at once.
pub(crate) fn engine_for_two() -> Engine {
    Engine::new(EngineOptions { concurrency: 2, ..options() }).unwrap()
}

/// The provisioner that misbehaves on demand.
pub(crate) async fn hostile(engine: &Engine) -> Provisioner {
    engine.load(&plugin("test/hostile.wasm")).await.unwrap()
}

/// Content of these files.
pub(crate) fn content<const N: usize>(files: [(&str, &str); N]) -> Arc<dyn Content> {
    Arc::new(MemoryContent::new(files))
}

/// A request with this configuration.
pub(crate) fn request(config: serde_json::Value) -> Request {
    let serde_json::Value::Object(config) = config else { panic!("a configuration is an object") };
    let target = Target { name: "test".into(), namespace: "space".into(), ..Target::default() };
    Request { config, target }
}

/// The error of a call in which `provision` of the hostile guest misbehaves as named.
pub(crate) async fn failure(provisioner: &Provisioner, behaviour: &str, limits: &Limits) -> CallError {
    let content = content([("provision", behaviour), ("large", &"x".repeat(2 << 20)), ("argument", "it is so")]);
    let request = request(serde_json::json!({}));
    served(async || provisioner.provision(&request, Arc::clone(&content), limits).await).await.unwrap_err()
}

/// The result of a call, which is made again while the machine is too busy to run the guest for as long as it may run.
pub(crate) async fn served<T>(call: impl AsyncFn() -> Result<T, CallError>) -> Result<T, CallError> {
    loop {
        match call().await {
            Err(CallError::Starved { .. }) => {}
            result => return result,
        }
    }
}
