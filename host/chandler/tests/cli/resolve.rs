//! `chandler resolve`: asks as a Resolution does, without a cluster.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::chandler;

/// A catalog in which `top` 1.1.0 needs a newer `base`.
fn catalog(directory: &Path, base_replaces: &str) -> String {
    let bundle = |package: &str, version: &str, more: &str| {
        format!(
            "---\nschema: olm.bundle\npackage: {package}\nname: {package}.v{version}\nimage: example.com/{package}:v{version}\n\
             properties: [{{type: olm.package, value: {{packageName: {package}, version: {version}}}}}{more}]\n"
        )
    };
    let package = |name: &str, entries: &str| {
        format!(
            "---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: \
             stable\nentries: [{entries}]\n"
        )
    };
    let needs = |range: &str| {
        format!(", {{type: olm.package.required, value: {{packageName: base, versionRange: '{range}'}}}}")
    };
    let text = [
        package("base", &format!("{{name: base.v1.0.0}}, {{name: base.v2.0.0, replaces: {base_replaces}}}")),
        package("top", "{name: top.v1.0.0}, {name: top.v1.1.0, replaces: top.v1.0.0}"),
        bundle("base", "1.0.0", ""),
        bundle("base", "2.0.0", ""),
        bundle("top", "1.0.0", &needs(">=1.0.0")),
        bundle("top", "1.1.0", &needs(">=2.0.0")),
    ];
    fs::write(directory.join("catalog.yaml"), text.concat()).unwrap();
    directory.to_str().unwrap().to_owned()
}

#[test]
fn installed_bundles_change_as_the_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = catalog(directory.path(), "base.v1.0.0");
    let ask = |range: &str, policy: &[&str]| {
        let top = format!("top@{range}");
        let question =
            ["resolve", &*top, "--catalog", &catalog, "--installed", "base@1.0.0", "--installed", "top@1.0.0"];
        chandler([&question[..], policy, &["-o", "json"]].concat(), "")
    };
    let versions = |range: &str, policy: &[&str]| -> (String, String) {
        let answer = ask(range, policy);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
        let version = |place: usize| answer["decision"]["members"][place]["version"].as_str().unwrap().to_owned();
        (version(0), version(1))
    };
    let of = |base: &str, top: &str| (base.to_owned(), top.to_owned());
    let policy = |name| ["--dependency-upgrades", name];
    for (range, policy, expected) in [
        ("*", &[][..], of("2.0.0", "1.1.0")),
        ("<1.1", &[], of("2.0.0", "1.0.0")),
        ("<1.1", &policy("minimal"), of("1.0.0", "1.0.0")),
        ("*", &policy("minimal"), of("2.0.0", "1.1.0")),
        ("*", &policy("pinned"), of("1.0.0", "1.0.0")),
        (">=1.1", &policy("pinned"), of("2.0.0", "1.1.0")),
        ("*", &policy("never"), of("1.0.0", "1.0.0")),
    ] {
        assert_eq!(versions(range, policy), expected, "{range} {policy:?}");
    }
    let refused = ask(">=1.1", &policy("never"));
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("base 1.0.0 is installed and pinned"), "{}", refused.stderr);
    // Packages that are held back are named, with the reason.
    let held = ask("*", &policy("pinned")).stderr;
    let line = "top 1.0.0 stays behind 1.1.0, which is held back by: top 1.1.0 needs package base >=2.0.0";
    assert!(held.contains(line) && held.contains("base 1.0.0 is installed and stays"), "{held}");
}

#[test]
fn channels_that_lint_refuses_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = catalog(directory.path(), "base.v0.9.0");
    let linted = chandler(["catalog", "lint", &catalog], "");
    assert_eq!(linted.code, Some(1), "{}", linted.stdout);
    let refused = chandler(["resolve", "base", "--catalog", &catalog], "");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for part in ["catalog.yaml:6", "stable", "base.v1.0.0", "chandler catalog lint"] {
        assert!(refused.stderr.contains(part), "{part:?} is not in {}", refused.stderr);
    }
    let single = chandler(["resolve", "base", "--catalog", &catalog, "--mode", "single"], "");
    assert_eq!(single.code, Some(0), "{}", single.stderr);
}
