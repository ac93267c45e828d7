//! Small components, and nearly valid ones.

use chandler_test_components::{IDLE, component, module};

/// Components that implement the contract in a few instructions, a core module, and an empty component.
pub(crate) fn components() -> Vec<Vec<u8>> {
    let section =
        r#"(@custom "chandler:provisioner" "{\"contract\":\"0.1.0\",\"name\":\"small\",\"version\":\"1.0.0\"}")"#;
    let bodies = [
        (IDLE, ""),
        (IDLE, section),
        ("(drop (call $open))", ""),
        ("(loop $again (drop (call $open)) (br $again))", ""),
        ("unreachable", ""),
        ("(loop $again (br $again))", section),
        ("(drop (memory.grow (i32.const 65535)))", "(table 10 funcref)"),
        ("(call $body)", ""),
        ("(i32.store (i32.const 8) (i32.const 1)) (i32.store (i32.const 16) (i32.const -1))", ""),
    ];
    let components = bodies.map(|(body, footer)| component(&module("", body, footer), "", &[]));
    let core_module = wat::parse_str(module("", IDLE, "")).expect("a module");
    components.into_iter().chain([core_module, b"\0asm\x0d\0\x01\0".to_vec()]).collect()
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
