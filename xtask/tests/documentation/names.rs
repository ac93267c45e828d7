//! The pages of the documentation name only files and tests that exist: a reviewer of docs/security.md follows them.

use std::{collections::BTreeSet, fs, path::Path};

use crate::files;

/// Directories with sources, and the files with prose.
const SOURCES: &[&str] = &["docs", "host", "plugins", "sdk", "tests", "xtask"];
const PAGES: &[&str] = &["docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The names of the functions of a source. A case of the conformance suite is a function, too.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

/// The texts between backticks of a page, outside of code blocks.
fn quoted(page: &str) -> Vec<String> {
    files::prose(page).join("\n").split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a quoted text is the name of a test: a path of identifiers whose last has several underscores and no capital. The names of metrics
/// have a test of their own, in host/monitoring.
fn test_name(quoted: &str) -> Option<&str> {
    let name = quoted.rsplit("::").next()?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_metric = ["chandler_", "process_"].iter().any(|prefix| quoted.starts_with(prefix));
    (is_name && !is_metric && name.matches('_').count() >= 3).then_some(name)
}

/// The path of a source file that a quoted text begins with.
fn source_path(quoted: &str) -> Option<&str> {
    let path = quoted.split("::").next()?;
    let is_path =
        Path::new(path).extension().is_some_and(|extension| extension == "rs") && !path.contains([' ', '*', '<']);
    is_path.then_some(path)
}

#[test]
fn pages_name_only_files_and_tests_that_exist() {
    let (root, mut sources, mut pages) = (files::root(), Vec::new(), Vec::new());
    for directory in SOURCES {
        files::find(&root.join(directory), &["rs"], &|_| false, &mut sources);
    }
    for page in PAGES {
        files::find(&root.join(page), &["md"], &|_| false, &mut pages);
    }
    let code: Vec<String> = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let known: BTreeSet<&str> = code.iter().flat_map(|text| functions(text)).collect();
    let (mut checked, mut missing) = (0, Vec::new());
    for page in &pages {
        for quoted in quoted(&fs::read_to_string(page).unwrap()) {
            let lost_test = test_name(&quoted).filter(|name| !known.contains(name));
            let lost_file = source_path(&quoted).filter(|path| !sources.iter().any(|source| source.ends_with(path)));
            checked += usize::from(test_name(&quoted).is_some()) + usize::from(source_path(&quoted).is_some());
            if lost_test.is_some() || lost_file.is_some() {
                missing.push(format!("{}: {quoted}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 100, "the names are found: {checked}");
}
