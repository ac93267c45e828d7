//! Every manifest of `deploy/` that a page, a message, a comment or another manifest names exists.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::files;

/// What names manifests.
const NAMING: &[&str] =
    &["docs", "host", "plugins", "sdk", "tests", "xtask", "deploy", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The names of YAML files that follow `before` in a text.
fn named<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let names = text.split(before).skip(1).filter_map(|rest| rest.split(|c| !is_name(c)).next());
    let is_manifest = |name: &&str| Path::new(name).extension().is_some_and(|extension| extension == "yaml");
    names.map(|name| name.trim_end_matches('.')).filter(is_manifest).collect()
}

#[test]
fn manifests_that_are_named_exist() {
    let (root, mut paths) = (files::root(), Vec::new());
    for path in NAMING {
        files::find(&root.join(path), &["md", "rs", "yaml", "snap"], &|_| false, &mut paths);
    }
    let (mut known, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let mut names = named(&text, "deploy/");
        // The comments of manifests name each other without the directory.
        if path.starts_with(root.join("deploy")) {
            names.extend(named(&text, " ").into_iter().filter(|name| name.starts_with("rbac")));
        }
        for name in names {
            let file: PathBuf = root.join("deploy").join(name);
            if file.exists() {
                known.insert(name.to_owned());
            } else {
                missing.insert(format!("{}: deploy/{name}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(known.len() > 8, "the names are found: {known:?}");
}

#[test]
fn names_end_with_the_extension() {
    let text = "apply `deploy/rbac.yaml`, deploy/rbac-watch.yaml. The files of deploy/ and deploy/*.yaml";
    assert_eq!(named(text, "deploy/"), ["rbac.yaml", "rbac-watch.yaml"]);
}

/// By default, the controller refuses a bundle without an account: readers must not meet that first.
#[test]
fn commands_that_install_a_first_bundle_name_its_account() {
    let mut commands = 0;
    for page in ["README.md", "docs/install.md"] {
        let text = files::read(page);
        for line in text.lines().filter(|line| line.starts_with("$ chandler install ")) {
            commands += 1;
            assert!(line.contains(" --service-account "), "{page}: {line}");
        }
        for example in text.split("```yaml").skip(1).filter_map(|rest| rest.split("```").next()) {
            let is_deployment = example.contains("kind: BundleDeployment\n");
            assert!(!is_deployment || example.contains("  serviceAccount:\n"), "{page}: {example}");
        }
    }
    assert!(commands > 2, "the commands are found");
}
