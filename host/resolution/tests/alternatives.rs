//! What would be chosen instead, beside packages of others.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use chandler_resolution::alternatives::alternatives;
use chandler_resolver::{MemoryCatalogs, Problem, resolve};
use serde_json::{Value, json};

/// A package with the versions 1.0.0 and 2.0.0, without an upgrade between them.
fn package(name: &str) -> Vec<Value> {
    let bundle = |version: &str| {
        json!({"schema": "olm.bundle", "package": name, "name": format!("{name}.v{version}"), "image": "example.com/a",
               "properties": [{"type": "olm.package", "value": {"packageName": name, "version": version}}]})
    };
    let channel = |channel: &str, version: &str| json!({"schema": "olm.channel", "package": name, "name": channel, "entries": [{"name": format!("{name}.v{version}")}]});
    vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
        channel("stable", "1.0.0"),
        channel("next", "2.0.0"),
        bundle("1.0.0"),
        bundle("2.0.0"),
    ]
}

/// What other Resolutions installed is part of every question. Where nothing fits, it was listed as if it would be chosen then.
#[test]
fn packages_of_others_are_no_alternatives() {
    let catalogs = MemoryCatalogs::new().with("main", [package("app"), package("theirs")].concat());
    let installed = |name: &str, hold: &str| json!({"package": name, "name": format!("{name}.v1.0.0"), "version": "1.0.0", "hold": hold});
    let problem: Problem = serde_json::from_value(json!({
        "required": [{"package": "app", "channels": ["next"]}], "catalogs": [{"name": "main"}],
        "installed": [installed("app", "Newest"), installed("theirs", "Pinned")],
    }))
    .unwrap();
    let ask = |problem: &Problem| resolve(problem, &catalogs);
    let answer = ask(&problem);
    assert!(answer.as_ref().unwrap().refusal().is_some());
    let found = alternatives(&problem, &answer, ask);
    assert_eq!(found, ["with upgrades: SelfCertified: app 2.0.0", "without version and channels: app 1.0.0"]);
}
