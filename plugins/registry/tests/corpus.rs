//! Sixty real and synthetic bundles, compared with what the reference renderer makes of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print, and so may what they share"
)]

mod support;

use std::{collections::BTreeMap, fs};

use chandler_sdk::{Failure, testing::Recorder};
use serde_json::{Value, json};
use support::{canonical, difference, fixtures, identity, render, values};

/// What the reference's refusals are about.
fn class_of_text(text: &str) -> &'static str {
    let classes = [
        ("invalid configuration: ", "config"),
        ("unsupported bundle: ", "unsupported"),
        ("invalid target namespaces", "config"),
    ];
    classes.iter().find(|(part, _)| text.contains(part)).map_or("content", |(_, class)| class)
}

fn class_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::InvalidConfig(_) => "config",
        Failure::Unsupported(_) => "unsupported",
        Failure::InvalidContent(_) => "content",
        Failure::Internal(_) => "internal",
    }
}

fn messages(failure: &Failure) -> Vec<String> {
    match failure {
        Failure::InvalidConfig(list) | Failure::Unsupported(list) | Failure::InvalidContent(list) => {
            list.iter().map(|finding| finding.message.clone()).collect()
        }
        Failure::Internal(message) => vec![message.clone()],
    }
}

/// Refusals that are worded otherwise: those of other libraries.
const OWN_WORDS: [&str; 2] = ["stat manifests", "error parsing objects in \"manifests/README.md\""];

/// The reference passes on objects without apiVersion, which no API server takes; here they get the obvious one.
fn with_api_version(mut object: Value) -> Value {
    if object.get("apiVersion").is_none() {
        object["apiVersion"] = match object["kind"].as_str() {
            Some("ClusterRole") => json!("rbac.authorization.k8s.io/v1"),
            Some("Service") => json!("v1"),
            kind => panic!("no apiVersion for {kind:?}"),
        };
    }
    object
}

fn compare(want: &Value, got: Result<Recorder, Failure>) -> Result<&'static str, String> {
    match (want.get("error").and_then(Value::as_str), got) {
        (Some(text), Err(failure)) => {
            let (want, got) = (class_of_text(text), class_of(&failure));
            if want != got {
                return Err(format!("refusal class: want {want} ({text}), got {got}: {:?}", messages(&failure)));
            }
            let messages = messages(&failure);
            let own_words = OWN_WORDS.iter().any(|words| text.starts_with(words));
            // The reference stops at the first step that refuses; here more may follow, but nothing is missing.
            let lines = text.lines().filter(|line| !line.ends_with("multiple errors found:"));
            let missing =
                lines.into_iter().find(|line| !messages.iter().any(|message| line.contains(message.as_str())));
            let first = messages.first().is_some_and(|message| text.contains(message.as_str()));
            match missing {
                Some(line) if !own_words => Err(format!("refusal text: want {line:?}, got {messages:?}")),
                None if !first => Err(format!("refusal text: want {text:?} first, got {messages:?}")),
                _ => Ok("refused alike"),
            }
        }
        (Some(text), Ok(_)) => Err(format!("want refusal {text:?}, got objects")),
        (None, Err(failure)) => Err(format!("want objects, got refusal {:?}", messages(&failure))),
        (None, Ok(rendered)) => {
            let want = want["objects"].as_array().unwrap().iter().cloned().map(with_api_version);
            let want = canonical(want, false);
            let got = canonical(values(rendered), false);
            let names = |objects: &[Value]| objects.iter().map(identity).collect::<Vec<_>>();
            let (want_names, got_names) = (names(&want), names(&got));
            if want_names != got_names {
                let missing: Vec<_> = want_names.iter().filter(|name| !got_names.contains(name)).collect();
                let extra: Vec<_> = got_names.iter().filter(|name| !want_names.contains(name)).collect();
                return Err(format!("objects: missing {missing:?}, extra {extra:?}"));
            }
            let found = want.iter().zip(&got).find_map(|(want, got)| difference(want, got, &identity(want)));
            found.map_or(Ok("objects alike"), Err)
        }
    }
}

#[test]
fn the_corpus_renders_as_the_reference_renders_it() {
    let Some(fixtures) = fixtures() else { return };
    let corpus = fixtures.join("corpus");
    let index: Value = serde_json::from_slice(&fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let mut classes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for bundle in index["bundles"].as_array().unwrap() {
        let name = bundle["bundle"].as_str().unwrap();
        for mode in bundle["modes"].as_object().unwrap().keys() {
            let (watch, provider) = match mode.strip_suffix("-nocert") {
                Some(watch) => (watch, "none"),
                None => (mode.as_str(), "cert-manager"),
            };
            let mut config = json!({"certificateProvider": provider, "compatibility": "reference"});
            match watch {
                "own" => config["watchNamespace"] = json!("oracle-system"),
                "single" => config["watchNamespace"] = json!("watched"),
                _ => {}
            }
            let want = fs::read(corpus.join(format!("expected/{name}.{mode}.json"))).unwrap();
            let want: Value = serde_json::from_slice(&want).unwrap();
            let got = render(&corpus.join("bundles").join(name), "oracle-system", &config);
            match compare(&want, got) {
                Ok(class) => *classes.entry(class).or_default() += 1,
                Err(difference) => failures.push(format!("{name} {mode}: {difference}")),
            }
        }
    }
    println!("{classes:?}, different: {}", failures.len());
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(classes.values().sum::<usize>() >= 180, "the corpus shrank: {classes:?}");
}
