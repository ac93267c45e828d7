//! `docs/registry-v1.md` names every code of a finding, and the page about differences from OLM v1 only existing tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use std::{collections::BTreeSet, fs, path::Path};

/// The content of all files with this extension below a directory.
fn read(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &fs::read_to_string(path).unwrap();
        }
    }
}

fn source(directory: &str) -> String {
    let mut text = String::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut text);
    text
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The page that explains each difference from OLM v1, with its test.
const DIFFERENCES: &str = "contributing/registry-v1-differences.md";

/// The texts in backticks.
fn quoted(document: &str) -> BTreeSet<&str> {
    document.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_code_is_named() {
    let calls = ["error(", "warning(", "finding(", "wrong(", "info(", "info(place,"];
    let source = source("src");
    let document = page("registry-v1.md");
    let named = quoted(&document);
    let mut codes = BTreeSet::new();
    // A code is the first string in a call that creates a finding.
    let parts: Vec<&str> = source.split('"').collect();
    for pair in parts.windows(2) {
        let is_call = calls.iter().any(|call| pair[0].trim_end().ends_with(call));
        let is_code = pair[1].starts_with(|c: char| c.is_ascii_uppercase())
            && pair[1].bytes().all(|byte| byte.is_ascii_alphanumeric())
            && pair[1].bytes().filter(u8::is_ascii_uppercase).count() > 1;
        if is_call && is_code {
            codes.insert(pair[1]);
        }
    }
    assert!(codes.len() > 50, "{codes:?}");
    let missing: Vec<_> = codes.difference(&named).collect();
    assert!(missing.is_empty(), "docs/registry-v1.md does not name {missing:?}");
}

#[test]
fn every_test_that_is_named_exists() {
    let tests = source("tests") + &source("src");
    let document = page(DIFFERENCES);
    let names = quoted(&document).into_iter().filter(|name| {
        name.matches('_').count() > 2
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'0'..=b'9'))
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "docs/{DIFFERENCES} names tests that do not exist: {missing:?}");
}
