//! Compares the results for sixty real and synthetic bundles with OLM v1's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use std::{collections::BTreeMap, fs};

use chandler_expected::{Mode, Namespaces, Outcome, Verdict};
use serde_json::Value;

use crate::support::{fixtures, render, values};

/// Refusals with other messages, since other libraries write them.
const OWN_WORDS: [&str; 2] = ["stat manifests", "error parsing objects in \"manifests/README.md\""];

/// Compares a result, including the messages of refusals.
fn compare(want: Value, outcome: Outcome) -> Result<&'static str, String> {
    if let (Some(text), Outcome::Refused(_, findings)) = (want["error"].as_str(), &outcome) {
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        let own_words = OWN_WORDS.iter().any(|words| text.starts_with(words));
        // OLM v1 stops at the first step that refuses; further findings are allowed here, but none may be missing.
        let mut lines = text.lines().filter(|line| !line.ends_with("multiple errors found:"));
        let missing = lines.find(|line| !messages.iter().any(|message| line.contains(*message)));
        let first = messages.first().is_some_and(|message| text.contains(*message));
        match missing {
            Some(line) if !own_words => return Err(format!("refusal text: want {line:?}, got {messages:?}")),
            None if !first => return Err(format!("refusal text: want {text:?} first, got {messages:?}")),
            _ => {}
        }
    }
    match chandler_expected::compare(want, outcome) {
        Verdict::SameObjects => Ok("objects alike"),
        Verdict::SameRefusal(_) => Ok("refused alike"),
        Verdict::Different { class, text } => Err(format!("{class}: {text}")),
    }
}

#[test]
fn the_corpus_renders_as_with_olm_v1() {
    let Some(fixtures) = fixtures() else { return };
    let corpus = fixtures.join("corpus");
    let index: Value = serde_json::from_slice(&fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let mut classes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for bundle in index["bundles"].as_array().unwrap() {
        let name = bundle["bundle"].as_str().unwrap();
        for mode in bundle["modes"].as_object().unwrap().keys() {
            let namespaces = Namespaces { install: "oracle-system".to_owned(), watched: "watched".to_owned() };
            let config = mode.parse::<Mode>().unwrap().config(&namespaces);
            let want = fs::read(corpus.join(format!("expected/{name}.{mode}.json"))).unwrap();
            let want = serde_json::from_slice(&want).unwrap();
            let got = match render(&corpus.join("bundles").join(name), "oracle-system", &Value::Object(config)) {
                Ok(release) => Outcome::Objects(values(release).collect()),
                Err(failure) => Outcome::from(&failure),
            };
            match compare(want, got) {
                Ok(class) => *classes.entry(class).or_default() += 1,
                Err(difference) => failures.push(format!("{name} {mode}: {difference}")),
            }
        }
    }
    println!("{classes:?}, different: {}", failures.len());
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(classes.values().sum::<usize>() >= 180, "the corpus shrank: {classes:?}");
}
