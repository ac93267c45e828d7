//! Where a manifest turns off that cargo finds tests or examples by itself, none is left out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::command;

/// The crates below a directory whose manifest has this line, each with its manifest.
fn crates(directory: &Path, line: &str, found: &mut Vec<(PathBuf, String)>) {
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    if manifest.lines().any(|one| one == line) {
        found.push((directory.to_owned(), manifest));
    }
    for path in entries(directory) {
        if path.is_dir() && !path.ends_with("target") {
            crates(&path, line, found);
        }
    }
}

fn with(line: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for directory in ["docs", "host", "plugins", "sdk", "tests"] {
        crates(&command::root().join(directory), line, &mut found);
    }
    assert!(!found.is_empty(), "no manifest has {line:?}");
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The Rust files below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let files = entries(directory).into_iter().flat_map(below);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The first lines of the examples in the documentation of a source.
fn examples(source: &str) -> Vec<&str> {
    let documentation = source.lines().map(str::trim).filter_map(|line| {
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        text.trim().strip_prefix("```")
    });
    let languages = documentation.step_by(2);
    languages.filter(|language| ["", "rust", "no_run", "should_panic", "compile_fail"].contains(language)).collect()
}

#[test]
fn every_file_of_tests_is_a_module_or_a_target() {
    let mut left_out = Vec::new();
    for (directory, manifest) in with("autotests = false") {
        let main = fs::read_to_string(directory.join("tests/main.rs")).unwrap();
        for path in entries(&directory.join("tests")) {
            let is_source = path.extension().is_some_and(|extension| extension == "rs") || path.join("mod.rs").exists();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_module = main.lines().any(|line| line == format!("mod {name};"));
            let is_target = manifest.lines().any(|line| line == format!("name = \"{name}\""));
            if is_source && name != "main" && !is_module && !is_target {
                left_out.push(path);
            }
        }
    }
    assert!(left_out.is_empty(), "name them in main.rs beside them: {left_out:#?}");
}

#[test]
fn every_example_is_run() {
    assert_eq!(examples("/// ```\n/// a();\n/// ```\n//! ```text\n//! a\n//! ```"), [""]);
    let crates = with("doctest = false").into_iter().map(|(directory, _)| directory.join("src"));
    let files = crates.flat_map(|directory| sources(&directory));
    let not_run: Vec<PathBuf> = files.filter(|path| !examples(&fs::read_to_string(path).unwrap()).is_empty()).collect();
    assert!(not_run.is_empty(), "remove `doctest = false` from the manifests of {not_run:#?}");
}
