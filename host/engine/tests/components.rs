//! Components that the supported toolchains do not produce: other imports, other exports, several memories.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

use std::time::Duration;

use chandler_core::{Fact, Reason};
use chandler_engine::{CallError, Engine, Limits, LoadError, Provisioned, Retry};
use chandler_test_components::{CONTRACT, IDLE, component, component_of, idle, instance_bomb, module};
use serde_json::json;

use crate::support::{content, engine, request};

const HTTP: &str = "package wasi:http@0.2.6; interface types { fetch: func(); } interface extra { f: func(); }";
const DATABASE: &str = "package acme:database@1.0.0; interface query { run: func(); }";
const CLI: &str = "package wasi:io@0.2.6; interface error { resource error; } \
    interface poll { resource pollable; } \
    interface streams { use error.{error}; resource input-stream; \
      variant stream-error { last-operation-failed(error), closed } \
      resource output-stream { \
        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; } }";
const STREAMS: &str = "package wasi:cli@0.2.6; \
    interface stdout { use wasi:io/streams@0.2.6.{output-stream}; get-stdout: func() -> output-stream; } \
    interface stderr { use wasi:io/streams@0.2.6.{output-stream}; get-stderr: func() -> output-stream; } \
    interface environment { get-environment: func() -> list<tuple<string, string>>; \
      get-arguments: func() -> list<string>; } \
    interface exit { exit: func(status: result); }";
const CLOCKS: &str = "package wasi:clocks@0.2.6; interface monotonic-clock { now: func() -> u64; } \
    interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }";
const RANDOM: &str = "package wasi:random@0.2.6; \
    interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; } \
    interface insecure { get-insecure-random-u64: func() -> u64; } \
    interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }";
const FILES: &str = "package wasi:filesystem@0.2.6; interface types { resource descriptor; } \
    interface preopens { use types.{descriptor}; \
      get-directories: func() -> list<tuple<descriptor, string>>; }";

async fn refused(engine: &Engine, wasm: &[u8]) -> LoadError {
    match engine.load(wasm).await {
        Ok(_) => panic!("the component was loaded"),
        Err(error) => error,
    }
}

async fn detect(wasm: &[u8], limits: &Limits) -> Result<Option<String>, CallError> {
    engine().load(wasm).await.unwrap().detect(content([]), limits).await
}

#[tokio::test]
async fn all_missing_imports_are_named() {
    let header = r#"(import "wasi:http/types@0.2.6" "fetch" (func)) (import "acme:database/query@1.0.0" "run" (func))"#;
    let imports = "import wasi:http/types@0.2.6; import acme:database/query@1.0.0;";
    let wasm = component(&module(header, IDLE, ""), imports, &[HTTP, DATABASE]);
    let error = refused(&engine(), &wasm).await;
    assert_eq!(error.reason(), Reason::MissingImports);
    insta::assert_snapshot!(error, @"imports that this host does not provide: wasi:http/types@0.2.6 (provisioners have no network; build the component without it); acme:database/query@1.0.0 (not part of the contract; build the component without it)");
}

#[tokio::test]
async fn a_function_of_a_newer_patch_version_is_named() {
    let newer = |used: &str| {
        format!(
            r#"(component
                (type $t (instance
                    (type $level (enum "debug" "info" "warn" "error"))
                    (export "level" (type $exported (eq $level)))
                    (type $fields (list (tuple string string)))
                    (type $log (func (param "level" $exported) (param "message" string) (param "fields" $fields)))
                    (export "log" (func (type $log)))
                    {used}))
                (import "chandler:provisioner/log@0.1.9" (instance (type $t)))
                (instance $i) (export "chandler:provisioner/provisioner@0.1.9" (instance $i)))"#
        )
    };
    let engine = engine();
    let wasm = wat::parse_str(newer(r#"(type $f (func)) (export "flush" (func (type $f)))"#)).unwrap();
    let error = refused(&engine, &wasm).await;
    insta::assert_snapshot!(error, @"imports that this host does not provide: chandler:provisioner/log@0.1.9#flush (upgrade Chandler, or build the component against an older version of the contract)");
    // Without the new function the import is accepted, and the empty export is the error.
    let error = refused(&engine, &wat::parse_str(newer("")).unwrap()).await;
    assert_eq!(error.reason(), Reason::UnsupportedContract, "{error}");
}

/// A module that queries a feature in `config-schema`, and in the other calls does what `body` does.
fn querying(header: &str, body: &str) -> String {
    let supports =
        r#"(import "chandler:provisioner/request@0.1.0" "supports" (func $supports (param i32 i32) (result i32)))"#;
    let footer = r#"(data (i32.const 100) "oxen") (data (i32.const 200) "No Feature")"#;
    let module = module(&format!("{supports} {header}"), body, footer);
    let schema = r#"#config-schema") (result i32)"#;
    assert!(module.contains(schema));
    module.replace(schema, &format!("{schema} (drop (call $supports (i32.const 100) (i32.const 4)))"))
}

/// `detect` would return a text at address 0 if the host supported anything.
#[tokio::test]
async fn features_are_queried_in_every_call_and_recorded() {
    let body = "(i32.store8 (i32.const 8) (call $supports (i32.const 100) (i32.const 4))) \
                (if (call $supports (i32.const 200) (i32.const 10)) (then unreachable))";
    let (engine, limits) = (engine(), Limits::default());
    let oxen = Fact::Supports { feature: "oxen".into() };
    for body in [body, IDLE] {
        let provisioner = engine.load(&component(&querying("", body), "", &[])).await.unwrap();
        assert_eq!(provisioner.detect(content([]), &limits).await.unwrap(), None);
        let Provisioned { result, asked, .. } =
            provisioner.provision_and_record(&request(json!({})), content([]), &limits).await;
        result.unwrap();
        assert_eq!(asked, [oxen.clone()].into_iter().collect(), "also what config-schema queried");
    }
}

/// A component of a later version, which declares these functions as optional, with a body that may call `$ahead`.
fn later(optional: &str, body: &str) -> Vec<u8> {
    let added = "supports: func(feature: string) -> bool; ahead: func() -> u32; \
                 resource lookup { get: func() -> u32; } find: func() -> lookup;";
    let contract = CONTRACT.replace("@0.1.0", "@0.1.9").replace("supports: func(feature: string) -> bool;", added);
    let header = r#"(import "chandler:provisioner/request@0.1.0" "ahead" (func $ahead (result i32)))
        (import "chandler:provisioner/request@0.1.0" "find" (func $find (result i32)))
        (import "chandler:provisioner/request@0.1.0" "[method]lookup.get" (func $get (param i32) (result i32)))"#;
    let section = format!(r#"{{"contract":"0.1.9","name":"later","optional":[{optional}]}}"#).replace('"', "\\\"");
    let module = querying(header, body).replace("@0.1.0", "@0.1.9");
    let (module, end) = module.rsplit_once(')').unwrap();
    let module = format!("{module} (@custom \"chandler:provisioner\" \"{section}\"){end})");
    component_of(&contract, "0.1.9", &module, "", &[])
}

#[tokio::test]
async fn functions_that_a_host_lacks_may_be_optional() {
    let (engine, limits) = (engine(), Limits::default());
    let error = refused(&engine, &later(r#""request#ahead""#, IDLE)).await;
    assert_eq!(error.reason(), Reason::MissingImports);
    let optional = r#""request#ahead","request#find","request#lookup","request#[method]lookup.get""#;
    let guarded = "(if (call $supports (i32.const 100) (i32.const 4)) (then (drop (call $ahead))))";
    let degraded = engine.load(&later(optional, guarded)).await.unwrap();
    assert_eq!(degraded.detect(content([]), &limits).await.unwrap(), None);
    degraded.provision(&request(json!({})), content([]), &limits).await.unwrap();
    let careless = engine.load(&later(optional, "(drop (call $ahead))")).await.unwrap();
    let trapped = careless.detect(content([]), &limits).await.unwrap_err();
    assert_eq!(trapped.reason(), Reason::PluginTrapped);
    insta::assert_snapshot!(format!("{error}\n{trapped}"), @"
    imports that this host does not provide: chandler:provisioner/request@0.1.9#lookup (upgrade Chandler, or build the component against an older version of the contract); chandler:provisioner/request@0.1.9#[method]lookup.get (upgrade Chandler, or build the component against an older version of the contract); chandler:provisioner/request@0.1.9#find (upgrade Chandler, or build the component against an older version of the contract)
    the provisioner crashed: it called request#ahead, which this host does not provide: a provisioner that declares a function as optional must query request.supports before it calls the function; upgrade Chandler, or fix the provisioner
    ");
}

#[tokio::test]
async fn only_provisioners_are_loaded() {
    let engine = engine();
    let mut lines = Vec::new();
    for text in [
        "(module)",
        "(component)",
        r#"(component (instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i)))"#,
        r#"(component (instance $i) (export "chandler:provisioner/provisioner@0.3.0" (instance $i)))"#,
    ] {
        let error = refused(&engine, &wat::parse_str(text).unwrap()).await;
        lines.push(format!("{}: {error}", error.reason()));
    }
    let error = refused(&engine, b"#!/bin/sh\n").await;
    lines.push(format!("{}: {error}", error.reason()));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    InvalidComponent: not a WebAssembly component: it is a core module; `chandler plugin build` makes a component of it
    UnsupportedContract: the contract is not supported: the component does not export chandler:provisioner/provisioner
    UnsupportedContract: the contract is not supported: instance export `chandler:provisioner/provisioner@0.1.0` does not have export `detect`
    UnsupportedContract: the contract is not supported: the component is built against version "0.3.0", and this host supports 0.1
    InvalidComponent: not a WebAssembly component: the file does not start with the WebAssembly magic bytes
    "#);
}

#[tokio::test]
async fn the_memory_limit_covers_all_modules() {
    // Two core modules with a memory each, both of which grow to 20 MiB: one alone is within the limit, both exceed it.
    let growing = "(memory 1) (func $start (if (i32.eq (memory.grow (i32.const 320)) (i32.const -1)) (then unreachable))) (start $start)";
    let inner = wasmprinter::print_bytes(idle()).unwrap();
    let with = |count: usize| {
        let instances = "(core instance (instantiate $growing))".repeat(count);
        let inner = inner.trim_end().strip_suffix(')').unwrap();
        wat::parse_str(format!("{inner} (core module $growing {growing}) {instances})")).unwrap()
    };
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    assert_eq!(detect(&with(1), &limits).await.unwrap(), None);
    let error = detect(&with(2), &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner needs more than 32 MiB of memory");
}

/// A component that calls another one, which copies texts from memory to memory.
fn composed(served_pages: u32, own_pages: u32) -> Vec<u8> {
    let inner = wasmprinter::print_bytes(idle()).unwrap();
    let inner = inner.trim_end().strip_suffix(')').unwrap();
    let grow =
        |pages: u32| format!("(if (i32.eq (memory.grow (i32.const {pages})) (i32.const -1)) (then unreachable))");
    let (grow_served, grow_own) = (grow(served_pages), grow(own_pages));
    let text = format!(
        r#"{inner}
        (component $callee-component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                (func (export "f") (param i32 i32)
                    (if (i32.ne (i32.load8_u (local.get 0)) (i32.const 120)) (then unreachable))
                    {grow_served}))
            (core instance $i (instantiate $m))
            (func (export "f") (param "s" string)
                (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc")))))
        (instance $callee-instance (instantiate $callee-component))
        (component $caller-component
            (import "f" (func $f (param "s" string)))
            (core module $libc (memory (export "memory") 1) (data (i32.const 64) "xyz"))
            (core instance $libc (instantiate $libc))
            (core func $lowered (canon lower (func $f) (memory $libc "memory")))
            (core module $m
                (import "" "f" (func $f (param i32 i32)))
                (import "" "memory" (memory 1))
                (func $start {grow_own} (call $f (i32.const 64) (i32.const 3)))
                (start $start))
            (core instance (instantiate $m
                (with "" (instance (export "f" (func $lowered)) (export "memory" (memory $libc "memory")))))))
        (instance (instantiate $caller-component (with "f" (func $callee-instance "f")))))"#
    );
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn the_memory_limit_covers_composed_components() {
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    assert_eq!(detect(&composed(1, 1), &limits).await.unwrap(), None);
    assert_eq!(detect(&composed(320, 1), &limits).await.unwrap(), None);
    assert_eq!(detect(&composed(1, 320), &limits).await.unwrap(), None);
    let error = detect(&composed(320, 320), &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner needs more than 32 MiB of memory");
}

/// The memories of one module share the limit too.
#[tokio::test]
async fn the_memory_limit_covers_all_memories_of_a_module() {
    let grow = |memory: &str| {
        format!("(if (i32.eq (memory.grow {memory} (i32.const 320)) (i32.const -1)) (then unreachable))")
    };
    let with = |body: &str| component(&module("", &format!("{body} {IDLE}"), "(memory $second 1)"), "", &[]);
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    assert_eq!(detect(&with(&grow("$second")), &limits).await.unwrap(), None);
    let error = detect(&with(&format!("{} {}", grow("$second"), grow("0"))), &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner needs more than 32 MiB of memory");
}

/// A few kilobytes of nested components expand to millions of instances.
#[tokio::test]
async fn instances_are_counted_before_anything_is_compiled() {
    let wasm = instance_bomb();
    assert!(wasm.len() < 6000, "{}", wasm.len());
    let error = refused(&engine(), &wasm).await;
    assert_eq!((error.reason(), error.retry()), (Reason::PluginLimitExceeded, Retry::OnChange));
    assert_eq!(error.to_string(), "the provisioner exceeded the limit of 1000 instances after expansion");
}

/// What is within the limit also compiles: the validator of wasmtime has a limit of its own.
#[tokio::test]
async fn as_many_instances_as_allowed_are_compiled() {
    let with = |count: usize| {
        let inner = wasmprinter::print_bytes(idle()).unwrap();
        let inner = inner.trim_end().strip_suffix(')').unwrap();
        let instances = "(core instance (instantiate $x))".repeat(count);
        wat::parse_str(format!("{inner} (core module $x) {instances})")).unwrap()
    };
    let engine = engine();
    // The component itself has fewer than twenty.
    engine.load(&with(980)).await.unwrap();
    let error = refused(&engine, &with(1000)).await;
    assert_eq!(error.to_string(), "the provisioner exceeded the limit of 1000 instances after expansion");
}

#[tokio::test]
async fn exceeded_count_limits_are_named() {
    let limits = Limits { instances: 8, memories: 4, table_elements: 50, ..Limits::default() };
    let mut lines = Vec::new();
    for (footer, count) in
        [("(core module $x)", 9), ("(core module $x (memory 1))", 4), ("(core module $x (table 1 funcref))", 5)]
    {
        let inner = wasmprinter::print_bytes(idle()).unwrap();
        let inner = inner.trim_end().strip_suffix(')').unwrap();
        let instances = "(core instance (instantiate $x))".repeat(count);
        let wasm = wat::parse_str(format!("{inner} {footer} {instances})")).unwrap();
        let error = detect(&wasm, &limits).await.unwrap_err();
        assert_eq!(error.reason(), Reason::PluginLimitExceeded, "{error}");
        lines.push(error.to_string());
    }
    let elements = component(&module("", IDLE, "(table 100 funcref)"), "", &[]);
    lines.push(detect(&elements, &limits).await.unwrap_err().to_string());
    insta::assert_snapshot!(lines.join("\n"), @r"
    the provisioner exceeded the limit of 8 core instances
    the provisioner exceeded the limit of 4 linear memories
    the provisioner exceeded the limit of 4 tables
    the provisioner exceeded the limit of 50 table elements
    ");
}

/// Runtimes with a garbage collector release handles late or never.
#[tokio::test]
async fn handles_of_the_bundle_may_be_kept() {
    let body = "(drop (call $open)) (drop (call $open)) (call $drop-bundle (call $open))";
    let wasm = component(&module("", body, ""), "", &[]);
    assert_eq!(detect(&wasm, &Limits::default()).await.unwrap(), None);
    let provisioner = engine().load(&wasm).await.unwrap();
    provisioner.provision(&request(json!({})), content([]), &Limits::default()).await.unwrap();
}

#[tokio::test]
async fn handles_are_bounded() {
    let header = r#"(import "wasi:cli/stdout@0.2.6" "get-stdout" (func $stdout (result i32)))"#;
    let body = format!("(loop $again (drop (call $stdout)) (br $again)) {IDLE}");
    let wasm = component(&module(header, &body, ""), "import wasi:cli/stdout@0.2.6;", &[CLI, STREAMS]);
    let limits = Limits { time: Duration::from_mins(1), ..Limits::default() };
    let error = detect(&wasm, &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::PluginTrapped);
    let bundles = component(&module("", "(loop $again (drop (call $open)) (br $again))", ""), "", &[]);
    let error = detect(&bundles, &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner exceeded the limit of 1000 handles");
}

/// `detect` and `config-schema` only read the content.
#[tokio::test]
async fn only_provision_may_emit_objects() {
    let header = r#"(import "chandler:provisioner/output@0.1.0" "emit"
        (func $emit (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;
    let object = r#"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"#;
    let body = format!(
        "(call $emit (i32.const 512) (i32.const {}) {} (i32.const 64)) {IDLE}",
        object.replace('\\', "").len(),
        "(i32.const 0) ".repeat(14)
    );
    let wasm = component(&module(header, &body, &format!("(data (i32.const 512) \"{object}\")")), "", &[]);
    let error = detect(&wasm, &Limits::default()).await.unwrap_err();
    insta::assert_snapshot!(error, @"the output of the provisioner is invalid: detect or config-schema called emit, which only provision may call");
    let provisioner = engine().load(&wasm).await.unwrap();
    let release = provisioner.provision(&request(json!({})), content([]), &Limits::default()).await.unwrap();
    assert_eq!(release.objects().len(), 1);
}

#[tokio::test]
async fn the_world_of_wasi_is_empty() {
    let header = r#"
        (import "wasi:cli/environment@0.2.6" "get-environment" (func $environment (param i32)))
        (import "wasi:cli/environment@0.2.6" "get-arguments" (func $arguments (param i32)))
        (import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $directories (param i32)))
        (import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $monotonic (result i64)))
        (import "wasi:clocks/wall-clock@0.2.6" "now" (func $wall (param i32)))
        (import "wasi:random/insecure@0.2.6" "get-insecure-random-u64" (func $random (result i64)))"#;
    let empty =
        |function: &str| format!("(call ${function} (i32.const 64)) (call $want (i32.eqz (i32.load (i32.const 68))))");
    let body = format!(
        "{} {} {}
         (call $want (i64.eqz (call $monotonic)))
         (call $wall (i32.const 64)) (call $want (i64.eq (i64.load (i32.const 64)) (i64.const 946684800)))
         (i64.store (i32.const 128) (call $random))
         ;; The first random number is the result: an optional text of 16 letters.
         (call $letters (i64.load (i32.const 128)))
         (i32.store (i32.const 8) (i32.const 1)) (i32.store (i32.const 12) (i32.const 256))
         (i32.store (i32.const 16) (i32.const 16))
         {IDLE}",
        empty("environment"),
        empty("arguments"),
        empty("directories")
    );
    let footer = "
        (func $want (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
        (func $letters (param i64) (local i32)
            (loop $again
                (i32.store8 (i32.add (i32.const 256) (local.get 1))
                    (i32.add (i32.const 97) (i32.wrap_i64 (i64.and (local.get 0) (i64.const 15)))))
                (local.set 0 (i64.shr_u (local.get 0) (i64.const 4)))
                (local.set 1 (i32.add (local.get 1) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get 1) (i32.const 16)))))";
    let imports = "import wasi:cli/environment@0.2.6; import wasi:filesystem/preopens@0.2.6; \
        import wasi:clocks/monotonic-clock@0.2.6; import wasi:clocks/wall-clock@0.2.6; import wasi:random/insecure@0.2.6;";
    let packages = [CLI, STREAMS, CLOCKS, RANDOM, FILES];
    let wasm = component(&module(header, &body, footer), imports, &packages);
    let provisioner = engine().load(&wasm).await.unwrap();
    let limits = Limits::default();
    let number = async |name| provisioner.detect(content([(name, "")]), &limits).await.unwrap().unwrap();
    let first = number("a").await;
    assert_eq!(first, number("a").await, "the same content gives the same random numbers");
    assert_ne!(first, number("b").await);
}

/// A seeded source would give every tenant the same password. The seed for `HashMap` in Rust's standard library still
/// works.
#[tokio::test]
async fn secure_randomness_traps_and_names_the_alternative() {
    let imports = "import wasi:random/random@0.2.6;";
    let number = r#"(import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))"#;
    let bytes = r#"(import "wasi:random/random@0.2.6" "get-random-bytes" (func $random (param i64 i32)))"#;
    let calls = [(number, "(drop (call $random))"), (bytes, "(call $random (i64.const 8) (i32.const 64))")];
    let mut texts = std::collections::BTreeSet::new();
    for (header, call) in calls {
        let wasm = component(&module(header, &format!("{call} {IDLE}"), ""), imports, &[RANDOM]);
        let error = detect(&wasm, &Limits::default()).await.unwrap_err();
        assert_eq!(error.reason(), Reason::PluginTrapped);
        texts.insert(error.to_string());
    }
    insta::assert_snapshot!(texts.into_iter().collect::<Vec<_>>().join("\n"), @"the provisioner crashed: it called wasi:random/random, but provisioners have no secure randomness: all users of the bundle get the same output, so a secret in it would not be secret. Let Chandler generate secrets: see the annotation secrets.chandler.dev/generate in docs/generated-secrets.md. To seed hash tables, use wasi:random/insecure-seed");

    let header = r#"(import "wasi:random/insecure-seed@0.2.6" "insecure-seed" (func $seed (param i32)))"#;
    let body =
        format!("(call $seed (i32.const 64)) (if (i64.eqz (i64.load (i32.const 64))) (then unreachable)) {IDLE}");
    let wasm = component(&module(header, &body, ""), "import wasi:random/insecure-seed@0.2.6;", &[RANDOM]);
    assert_eq!(detect(&wasm, &Limits::default()).await.unwrap(), None);
}

#[tokio::test]
async fn a_trap_shows_what_the_guest_wrote_to_standard_error() {
    let header = r#"
        (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
        (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush"
            (func $write (param i32 i32 i32 i32)))"#;
    let body = "(call $write (call $stderr) (i32.const 512) (i32.const 29) (i32.const 64)) unreachable";
    let footer = r#"(data (i32.const 512) "panicked at x.rs:1:\nit is over")"#;
    let imports = "import wasi:cli/stderr@0.2.6;";
    let wasm = component(&module(header, body, footer), imports, &[CLI, STREAMS]);
    let CallError::Trapped(trapped) = detect(&wasm, &Limits::default()).await.unwrap_err() else {
        panic!("not a trap")
    };
    let lines: Vec<&str> = trapped.log.lines().iter().map(|line| line.message.as_str()).collect();
    assert_eq!(lines, ["panicked at x.rs:1:", "it is ove"]);
    assert!(trapped.to_string().ends_with(": panicked at x.rs:1: it is ove"), "{trapped}");
}

#[tokio::test]
async fn an_exit_counts_as_a_crash() {
    let header = r#"(import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))"#;
    let wasm =
        component(&module(header, "(call $exit (i32.const 1))", ""), "import wasi:cli/exit@0.2.6;", &[CLI, STREAMS]);
    let error = detect(&wasm, &Limits::default()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::PluginTrapped);
    assert!(error.to_string().contains("it exited with code 1"), "{error}");
}

#[tokio::test]
async fn table_elements_are_bounded() {
    let body = format!("(drop (table.grow $t (ref.null func) (i32.const 100000))) unreachable {IDLE}");
    let text = module("", &body, "(table $t 1 funcref)");
    let error = detect(&component(&text, "", &[]), &Limits::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner exceeded the limit of 20000 table elements");
}

#[tokio::test]
async fn a_handwritten_component_works() {
    let wasm = idle();
    let provisioner = engine().load(&wasm).await.unwrap();
    assert_eq!(provisioner.facts().contract, "0.1.0");
    let release = provisioner.provision(&request(json!({})), content([]), &Limits::default()).await.unwrap();
    assert_eq!(release.objects().len(), 0);
}
