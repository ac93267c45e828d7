//! Small components, and nearly valid ones.

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

const CONTRACT: &str = include_str!("../../../../wit/0.1.0/provisioner.wit");

/// Components that implement the contract in a few instructions, and their modules.
pub(crate) fn components() -> Vec<Vec<u8>> {
    let section =
        r#"(@custom "chandler:provisioner" "{\"contract\":\"0.1.0\",\"name\":\"small\",\"version\":\"1.0.0\"}")"#;
    let bodies = [
        ("(call $drop-bundle (call $open))", ""),
        ("(call $drop-bundle (call $open))", section),
        ("(drop (call $open))", ""),
        ("(loop $again (drop (call $open)) (br $again))", ""),
        ("unreachable", ""),
        ("(loop $again (br $again))", section),
        ("(drop (memory.grow (i32.const 65535)))", "(table 10 funcref)"),
        ("(call $body)", ""),
        ("(i32.store (i32.const 8) (i32.const 1)) (i32.store (i32.const 16) (i32.const -1))", ""),
    ];
    let modules = bodies.map(|(body, footer)| wat::parse_str(module(body, footer)).expect("a module"));
    modules.iter().map(|module| component(module)).chain([modules[0].clone(), b"\0asm\x0d\0\x01\0".to_vec()]).collect()
}

fn component(module: &[u8]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_str("provisioner.wit", CONTRACT).expect("the contract");
    let world = "package test:small; world small { include chandler:provisioner/plugin@0.1.0; }";
    let package = resolve.push_str("small.wit", world).expect("a world");
    let world = resolve.select_world(&[package], None).expect("a world");
    let mut module = module.to_vec();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    let encoder = ComponentEncoder::default().module(&module).expect("a module");
    encoder.validate(true).encode().expect("a component")
}

/// A core module whose functions run `body`; `detect` returns what memory holds at 8, `provision` what it holds at 2048.
fn module(body: &str, footer: &str) -> String {
    format!(
        r#"(module
            (import "chandler:provisioner/content@0.1.0" "open" (func $open (result i32)))
            (import "chandler:provisioner/content@0.1.0" "[resource-drop]bundle" (func $drop-bundle (param i32)))
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

/// Components that instantiate one another many times.
pub(crate) fn nested() -> Vec<Vec<u8>> {
    let inner = |inside: String| format!("(component {inside} {})", "(instance (instantiate 0))".repeat(4));
    let deep = (0..6)
        .fold("(component (core module (memory 1)) (core instance (instantiate 0)))".to_owned(), |inside, _| {
            inner(inside)
        });
    let aliases = "(component (core module) (component) (component (alias outer 1 0 (core module)) (alias outer 1 0 (component)) \
        (core instance (instantiate 0)) (instance (instantiate 0)) (type (func))) (instance (instantiate 1)))";
    let passed_on = "(component (component) (instance (export \"c\" (component 0))))";
    [deep.as_str(), aliases, passed_on].iter().map(|text| wat::parse_str(text).expect("a component")).collect()
}
