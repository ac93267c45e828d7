//! `docs/plain.md` names every finding and every key of the configuration, and no others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeSet, fs, path::Path};

use chandler_plain::Plain;
use chandler_sdk::{Provisioner, testing::Bundle};
use regex::Regex;
use serde_json::Value;

/// Codes of findings from another crate: of file parsing, and of the lists of objects.
const OF_THE_SDK: [&str; 4] = ["UnreadableFile", "InvalidYaml", "SuspiciousYaml", "DuplicateListKey"];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    Regex::new(pattern).unwrap().captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn every_finding_is_documented() {
    let mut codes: BTreeSet<String> = OF_THE_SDK.map(str::to_owned).into();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in fs::read_dir(sources).expect("the sources") {
        let source = fs::read_to_string(file.expect("a file").path()).expect("text");
        codes.extend(found(r#""([A-Z][a-z]+(?:[A-Z][a-z]+)+)","#, &source));
    }
    codes.remove("ClusterServiceVersion");
    let page = text("../../docs/plain.md");
    let (_, findings) = page.split_once("## Findings").expect("the section on findings");
    assert_eq!(found("`([A-Z][A-Za-z]+)`", findings), codes);
}

#[test]
fn every_key_is_documented() {
    let schema = Plain::config_schema(&Bundle::new([("manifests/a", "")])).expect("no failure").expect("a schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let keys: BTreeSet<String> = schema["properties"].as_object().expect("properties").keys().cloned().collect();
    let page = text("../../docs/plain.md");
    let (_, section) = page.split_once("## Configuration").expect("the section on the configuration");
    let (section, _) = section.split_once("###").expect("sections on the keys");
    assert_eq!(found(r"(?m)^\| `([A-Za-z]+)` \|", section), keys);
}
