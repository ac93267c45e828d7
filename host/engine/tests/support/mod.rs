//! What the tests of the engine share.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{fs, path::PathBuf, sync::Arc};

use chandler_core::{Content, MemoryContent, Request, Target};
use chandler_engine::{CallError, Engine, EngineOptions, Limits, Provisioner};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// A component that `cargo xtask plugins` built.
pub(crate) fn plugin(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let path = target.join("plugins").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()))
}

/// An engine that compiles in this process and keeps nothing.
pub(crate) fn engine() -> Engine {
    Engine::new(EngineOptions::default()).unwrap()
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

/// The error of a call in which `provision` of the hostile guest shows a behaviour.
pub(crate) async fn failure(provisioner: &Provisioner, behaviour: &str, limits: &Limits) -> CallError {
    let content = content([("provision", behaviour), ("large", &"x".repeat(2 << 20)), ("argument", "it is so")]);
    provisioner.provision(&request(serde_json::json!({})), content, limits).await.unwrap_err()
}

/// Makes a component of a core module in the text format. `imports` are lines of its world, beside those of the contract;
/// `packages` is the WIT of the packages that they name.
pub(crate) fn component(module: &str, imports: &str, packages: &[&str]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let contract = include_str!("../../../../wit/0.1.0/provisioner.wit");
    resolve.push_str("provisioner.wit", contract).unwrap();
    for package in packages {
        resolve.push_str("package.wit", package).unwrap();
    }
    let world = format!("package test:odd; world odd {{ include chandler:provisioner/plugin@0.1.0; {imports} }}");
    let package = resolve.push_str("odd.wit", &world).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = wat::parse_str(module).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// A core module that implements the contract: `detect` and `provision` run `body`, which may `(call $open)` the bundle and
/// `(call $drop-bundle (...))` its handles. `detect` returns what memory then holds at 8, which is nothing at first; the others
/// return that nothing is wrong. `header` holds imports, `footer` further fields.
pub(crate) fn module(header: &str, body: &str, footer: &str) -> String {
    format!(
        r#"(module
            (import "chandler:provisioner/content@0.1.0" "open" (func $open (result i32)))
            (import "chandler:provisioner/content@0.1.0" "[resource-drop]bundle" (func $drop-bundle (param i32)))
            {header}
            (memory (export "memory") 2)
            (global $next (mut i32) (i32.const 65536))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (local.get 3))))
            (func $body {body})
            (func (export "chandler:provisioner/provisioner@0.1.0#detect") (result i32)
                (call $body) (i32.const 8))
            (func (export "chandler:provisioner/provisioner@0.1.0#config-schema") (result i32)
                (i32.const 2048))
            (func (export "chandler:provisioner/provisioner@0.1.0#provision") (result i32)
                (call $body) (i32.const 2048))
            {footer})"#
    )
}

/// The body that opens the bundle and closes it again.
pub(crate) const IDLE: &str = "(call $drop-bundle (call $open))";
