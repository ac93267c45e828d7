//! Handwritten WebAssembly components for tests.
//!
//! [`module`] writes a core module that implements the contract, [`component`] converts it to a component, and [`nested`]
//! writes components that expand to many instances. The crate depends on no other crate of the workspace, so that every
//! crate can use it in its tests.

#![expect(clippy::expect_used, reason = "a test with a malformed component must fail")]

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// The newest version of the contract.
pub const CONTRACT: &str = include_str!("../../../wit/0.1.0/provisioner.wit");

/// The export of the contract, as an empty instance.
pub const EMPTY_EXPORT: &str = r#"(instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i))"#;

/// The body that opens the bundle and closes it again.
pub const IDLE: &str = "(call $drop-bundle (call $open))";

/// A component that implements the contract and does nothing.
pub fn idle() -> Vec<u8> {
    component(&module("", IDLE, ""), "", &[])
}

/// A core module in the text format that implements the contract.
///
/// `detect` and `provision` run `body`, which may `(call $open)` the bundle and `(call $drop-bundle (...))` its handles.
/// `detect` returns what memory then holds at address 8, which is initially zero (none); the other functions return success.
/// `header` holds further imports, `footer` further fields.
pub fn module(header: &str, body: &str, footer: &str) -> String {
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

/// Converts a core module in the text format to a component. `imports` are further lines of its world; `packages` is the WIT
/// of the packages that they name.
///
/// # Panics
/// If the module, the imports or the packages are malformed.
pub fn component(module: &str, imports: &str, packages: &[&str]) -> Vec<u8> {
    component_of(CONTRACT, "0.1.0", module, imports, packages)
}

/// Like [`component`], of another version of the contract.
///
/// # Panics
/// Like [`component`].
pub fn component_of(contract: &str, version: &str, module: &str, imports: &str, packages: &[&str]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_str("provisioner.wit", contract).expect("a valid contract");
    for package in packages {
        resolve.push_str("package.wit", package).expect("a valid WIT package");
    }
    let world = format!(
        "package test:handwritten; world plugin {{ include chandler:provisioner/plugin@{version}; {imports} }}"
    );
    let package = resolve.push_str("handwritten.wit", &world).expect("a valid world");
    let world = resolve.select_world(&[package], None).expect("a world");
    let mut module = wat::parse_str(module).expect("a valid module");
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("valid metadata");
    let encoder = ComponentEncoder::default().module(&module).expect("a valid module");
    encoder.validate(true).encode().expect("a valid component")
}

/// A component in the text format that instantiates another one `times` times, which does the same, and so on for `depth`
/// levels: a few kilobytes that expand to `times` to the power of `depth` instances. `footer` holds further fields.
pub fn nested(depth: usize, times: usize, footer: &str) -> String {
    let instances = "(instance (instantiate $c))".repeat(times);
    let inner = (1..depth).fold("(component $c)".to_owned(), |inner, _| format!("(component $c {inner} {instances})"));
    format!("(component {inner} {instances} {footer})")
}

/// A component of a few kilobytes that expands to about 16^10 instances and exports the contract.
///
/// # Panics
/// Never: the text is a constant.
pub fn instance_bomb() -> Vec<u8> {
    wat::parse_str(nested(10, 16, EMPTY_EXPORT)).expect("a valid component")
}
