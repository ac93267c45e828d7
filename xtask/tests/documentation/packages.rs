//! The published crates contain all that they need.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

use crate::files::root;

/// The published crates, with their directories.
const PUBLISHED: [(&str, &str); 2] = [("chandler-sdk", "sdk/guest"), ("chandler-yaml", "sdk/yaml")];

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).args(["--offline"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Paths outside the package that compiled code names; tests may name others.
fn included(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.filter(|line| line.contains("\"../../")).collect()
}

#[test]
fn packages_contain_what_they_compile() {
    for (package, directory) in PUBLISHED {
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", package]);
        let listed: BTreeSet<&str> = listed.lines().collect();
        for file in &listed {
            let path = root().join(directory).join(file);
            if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                // The guide for authors is compiled by documentation tests alone, and cargo packs it as README.md.
                let outside: Vec<&str> = included(&text)
                    .into_iter()
                    .filter(|line| *line != r#"#[doc = include_str!("../../README.md")]"#)
                    .collect();
                assert_eq!(outside, [""; 0], "{package}: {file} names files that are not in the package");
            }
        }
        if package == "chandler-sdk" {
            assert!(listed.contains("wit/provisioner.wit") && listed.contains("README.md"), "{listed:?}");
            let guest = fs::read_to_string(root().join(directory).join("src/guest.rs")).unwrap();
            assert!(guest.contains("path: \"wit\""), "the bindings are made of the contract in the package");
        }
    }
}

#[test]
fn published_crates_depend_on_published_crates_and_say_what_registries_show() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let mut published: Vec<&str> = packages
        .iter()
        .filter(|package| package["publish"].is_null())
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    published.sort_unstable();
    assert_eq!(
        published,
        PUBLISHED.map(|(name, _)| name),
        "all others have `publish.workspace = true`, which is false"
    );
    for package in packages.iter().filter(|package| published.contains(&package["name"].as_str().unwrap())) {
        let name = &package["name"];
        for field in ["description", "license", "repository", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_string() && dependency["kind"] != "dev" {
                let version = format!("^{}", package["version"].as_str().unwrap());
                assert!(published.contains(&dependency["name"].as_str().unwrap()), "{name}: {}", dependency["name"]);
                assert_eq!(dependency["req"], version, "{name}: {}", dependency["name"]);
            }
        }
    }
}
