//! A provisioner that misbehaves on demand, for the tests of the engine.
//!
//! Files of the bundle select the behaviour of each function: `detect`, `config-schema` and `provision`. The file `argument` holds
//! the input of some behaviours. Without such a file, the function behaves well.

use std::{cell::Cell, hint::black_box};

use chandler_sdk::{
    Content, Diagnostic, Facts, Failure, Location, Output, Probe, Provisioner, Refusal, Request, Selector, log,
};

/// The provisioner.
pub struct Hostile;

impl Provisioner for Hostile {
    const FACTS: Facts = Facts::new("hostile", "1.2.3").formats(&["hostile+v0"]);

    fn detect(content: &dyn Content) -> Option<String> {
        let behaviour = text(content, "detect")?;
        misbehave(&behaviour, content);
        Some(if behaviour == "long-name" { "x".repeat(10_000) } else { behaviour })
    }

    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        let Some(behaviour) = text(content, "config-schema") else { return Ok(None) };
        misbehave(&behaviour, content);
        fail(&behaviour, content)?;
        let huge = || format!("{{\"description\":\"{}\"}}", "x".repeat(2 << 20));
        Ok(Some(if behaviour == "huge" { huge() } else { behaviour }))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let behaviour = text(content, "provision").unwrap_or_default();
        output.emit(&object("first", request.config()), None, None)?;
        misbehave(&behaviour, content);
        emit(&behaviour, output);
        if behaviour == "probe" {
            let rule = text(content, "argument").unwrap_or_default();
            let selector = Selector { kind: "ConfigMap".into(), name: Some("first".into()), ..Selector::default() };
            output.probe(&Probe { selector, rule, ..Probe::default() })?;
        }
        if behaviour == "emit-lines" {
            for line in content.read("argument").unwrap_or_default().split(|byte| *byte == b'\n') {
                let _ = output.emit(line, None, None);
            }
        }
        fail(&behaviour, content)
    }
}

chandler_sdk::export!(Hostile);

fn text(content: &dyn Content, path: &str) -> Option<String> {
    Some(String::from_utf8(content.read(path).ok()?).ok()?.trim().to_owned())
}

fn object(name: &str, data: &serde_json::Map<String, serde_json::Value>) -> Vec<u8> {
    let value = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"config": serde_json::Value::Object(data.clone()).to_string()},
    });
    value.to_string().into_bytes()
}

thread_local! {
    /// Keeps its value only if an instance is reused.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// The behaviours that any function may have.
fn misbehave(behaviour: &str, content: &dyn Content) {
    match behaviour {
        "spin" => spin(),
        "allocate" => allocate(),
        "recurse" => drop(black_box(recurse(0))),
        "panic" => explode(),
        "abort" => std::process::abort(),
        "divide" => drop(black_box(1 / black_box(0_i32).wrapping_mul(black_box(2)))),
        "log-forever" => (0..1_000_000_u32).for_each(|line| log::info(&format!("line {line}"))),
        "log-huge" => log::warn(&"x".repeat(2 << 20)),
        "transfer-huge" => log::warn(&"x".repeat(20 << 20)),
        "read-forever" => while content.read_at("large", 0, u32::MAX).is_ok_and(|bytes| !bytes.is_empty()) {},
        "read-oddly" => read_oddly(content),
        "count-calls" => {
            CALLS.set(CALLS.get() + 1);
            assert_eq!(CALLS.get(), 1, "an instance was used twice");
        }
        _ => {}
    }
}

fn spin() {
    let mut number = 0_u64;
    while black_box(number) < u64::MAX {
        number = number.wrapping_add(2) & (u64::MAX >> 1);
    }
}

fn allocate() {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    loop {
        blocks.push(black_box(vec![1; 1 << 20]));
    }
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    let block = black_box([depth; 64]);
    recurse(depth + 1).wrapping_add(block.iter().sum())
}

#[expect(clippy::panic, reason = "that is the point")]
fn explode() {
    panic!("the hold is on fire");
}

/// Reads paths that must not exist; panics if a read succeeds.
fn read_oddly(content: &dyn Content) {
    let paths = ["../detect", "/etc/passwd", "", ".", "a/../detect", "detect\0", "./detect", "\u{202e}detect"];
    for path in paths {
        assert!(content.read_at(path, 0, 10).is_err(), "{path:?} can be read");
    }
    assert_eq!(content.read_at("large", u64::MAX, u32::MAX), Ok(Vec::new()), "past the end");
    assert!(content.read_at("large", 0, u32::MAX).is_ok_and(|bytes| bytes.len() == 1 << 20), "one mebibyte at most");
    assert!(content.page("", None, u32::MAX).len() <= 1000, "pages are bounded");
    assert_eq!(content.page("", Some("\u{10ffff}"), 10), Vec::new(), "after the end");
}

fn emit(behaviour: &str, output: &mut dyn Output) {
    let none = serde_json::Map::new();
    let location = Location::file("manifests/a.yaml").starting_at(7, 0);
    let mut refused = |object: &[u8], want: Refusal| {
        let got = output.emit(object, None, Some(location.clone()));
        assert_eq!(got, Err(want), "the host accepted an invalid object");
    };
    match behaviour {
        "emit-garbage" => refused(b"\xff\xfe garbage", Refusal::Malformed),
        "emit-nameless" => refused(br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#, Refusal::Malformed),
        "emit-deep" => refused(&b"[".repeat(100_000), Refusal::Malformed),
        "emit-twice" => refused(&object("first", &none), Refusal::Duplicate),
        "emit-huge" => refused(&vec![b' '; 4 << 20], Refusal::TooLarge),
        // Continues after the limit error, as a hostile guest would.
        "emit-million" => (0..1_000_000_u32).for_each(|index| {
            let _ = output.emit(&object(&format!("object-{index}"), &none), None, None);
        }),
        "emit-bad-and-panic" => {
            refused(b"garbage", Refusal::Malformed);
            explode();
        }
        "probe-million" => {
            let selector = Selector { kind: "Pod".into(), ..Selector::default() };
            let probe = Probe { selector, rule: "true".into(), ..Probe::default() };
            while output.probe(&probe).is_ok() {}
        }
        "report-million" => {
            let finding = Diagnostic::warning("Noise", "noise".repeat(1000)).at("manifests/a.yaml");
            (0..10_000).for_each(|_| output.report(&finding));
        }
        _ => {}
    }
}

fn fail(behaviour: &str, content: &dyn Content) -> Result<(), Failure> {
    let finding = || Diagnostic::error("Hostile", text(content, "argument").unwrap_or_default()).at("manifests/a.yaml");
    match behaviour {
        "invalid-content" => Err(Failure::InvalidContent(vec![finding()])),
        "invalid-config" => Err(Failure::InvalidConfig(vec![finding()])),
        "unsupported" => Err(Failure::Unsupported(vec![finding()])),
        "internal" => Err(Failure::Internal(vec![finding()])),
        "nothing-found" => Err(Failure::InvalidContent(Vec::new())),
        "other" => Err(Failure::Other { reason: "LicenceExpired".into(), findings: vec![finding()] }),
        "huge-diagnostic" => {
            let finding = Diagnostic::error("H".repeat(1 << 20), "ä".repeat(1 << 20)).at("p".repeat(1 << 20));
            Err(Failure::InvalidContent(vec![finding]))
        }
        "many-diagnostics" => Err(Failure::InvalidContent(vec![finding(); 1000])),
        _ => Ok(()),
    }
}
