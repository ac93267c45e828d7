//! Upgrades of CRDs beside the checkout, with the reference's result for each.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::fs;

use chandler_crd_upgrade::{Policy, compare};
use chandler_test_support::needs::fixture;
use serde_json::Value;

fn shared(path: &str) -> Option<Value> {
    let text = fs::read_to_string(fixture(path)?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn verdicts_are_those_of_the_reference() {
    let Some(vectors) = shared("vectors/crd_upgrade_safety.json") else { return };
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 13, "{}", cases.len());
    for case in cases {
        let name = &case["name"];
        let read = |which: &str| shared(case[which].as_str().unwrap()).unwrap();
        let report = compare(&read("old"), &read("new"), &Policy::default());
        let text: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
        let text = text.join("\n");
        let Some(expected) = case["errorContains"].as_array() else {
            assert_eq!(text, "", "{name}");
            continue;
        };
        assert_ne!(text, "", "{name}");
        for part in expected.iter().map(|part| part.as_str().unwrap()) {
            match part.strip_prefix('!') {
                Some(absent) => assert!(!text.contains(absent), "{name}: {absent:?} in\n{text}"),
                None => assert!(text.contains(part), "{name}: no {part:?} in\n{text}"),
            }
        }
    }
}
